//! What a session is, apart from what runs in it: its entries, its settings, and what can be said about them at once.

use super::{
    open::wrong_settings,
    store::{Log, Repair, Stats},
    usage::{Gauge, Measure},
};
use crate::{
    context::{self, Context},
    entry::{Body, Header},
    ids::{EntryId, SessionId},
    message::Message,
    models::ModelRef,
    protocol::{
        errors::Failure,
        types::{self, SessionInfo, Status},
    },
    settings::{Layers, Problem, Sourced},
    tree::{Path, Tree},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{path::PathBuf, sync::Arc};

/// What is stored with a session as an `abridged.session` entry.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionData {
    /// What the model is told before everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The tools it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Value>>,
    /// Settings of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Value>,
}

impl SessionData {
    /// Whether there is nothing to store.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.system_prompt.is_none() && self.tools.is_none() && self.settings.is_none()
    }

    /// What is given here over what was before.
    #[must_use]
    pub fn over(self, before: Self) -> Self {
        Self {
            system_prompt: self.system_prompt.or(before.system_prompt),
            tools: self.tools.or(before.tools),
            settings: self.settings.or(before.settings),
        }
    }
}

/// Where a session is kept.
#[derive(Debug)]
pub enum Home {
    /// In a file that is ours to write.
    File(Log),
    /// In a file we only look at.
    ReadOnly(PathBuf),
    /// Nowhere: it ends with the daemon.
    Memory,
}

/// What a session is.
pub struct State {
    /// Its id.
    pub id: SessionId,
    /// Its file.
    pub file: Option<PathBuf>,
    /// Its entries.
    pub tree: Tree,
    /// What was odd about its file.
    pub repairs: Vec<Repair>,
    /// How often the disk was touched.
    pub stats: Stats,
    header: Header,
    title: Option<String>,
    data: SessionData,
    model: Option<ModelRef>,
    layers: Layers,
    sourced: Arc<Sourced>,
}

impl State {
    /// A session of these parts. `data` and `model` are what the client gives for this time.
    ///
    /// # Errors
    /// When its settings are wrong.
    pub fn new(
        header: Header,
        file: Option<PathBuf>,
        title: Option<String>,
        tree: Tree,
        data: SessionData,
        model: Option<ModelRef>,
        layers: &Layers,
    ) -> Result<Self, Problem> {
        let stored = tree.entries().filter_map(|entry| entry.ours("session")).next_back();
        let stored = stored.and_then(|value| SessionData::deserialize(value).ok()).unwrap_or_default();
        let data = data.over(stored);
        let sourced = Arc::new(layers.with_session(data.settings.as_ref())?);
        Ok(Self {
            layers: layers.clone(),
            id: header.id.clone(),
            file,
            tree,
            repairs: Vec::new(),
            stats: Stats::default(),
            header,
            title,
            data,
            model,
            sourced,
        })
    }

    /// Takes what a client gives for this time, over what was before.
    ///
    /// # Errors
    /// When its settings are wrong; then nothing is taken.
    pub fn give(&mut self, data: SessionData, model: Option<ModelRef>) -> Result<(), Failure> {
        let data = data.over(self.data.clone());
        self.sourced = Arc::new(self.layers.with_session(data.settings.as_ref()).map_err(wrong_settings)?);
        self.data = data;
        self.model = model.or(self.model.take());
        Ok(())
    }

    /// The folder it is about.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.header.cwd
    }

    /// Lays its own settings over new layers; what is in force now, where that is anything else than before.
    ///
    /// # Errors
    /// When its own settings are wrong over them; then the old ones stay.
    pub fn relayer(&mut self, layers: Layers) -> Result<Option<&Sourced>, Problem> {
        if layers == self.layers {
            return Ok(None);
        }
        let sourced = layers.with_session(self.data.settings.as_ref())?;
        self.layers = layers;
        if sourced == *self.sourced {
            return Ok(None);
        }
        self.sourced = Arc::new(sourced);
        Ok(Some(&self.sourced))
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &Arc<Sourced> {
        &self.sourced
    }

    /// The path to the leaf.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.tree.path()
    }

    /// The leaf as clients see it.
    #[must_use]
    pub fn visible_leaf(&self) -> Option<EntryId> {
        self.path().visible_leaf().map(|entry| entry.id.clone())
    }

    /// The model of a path: what the client said, else what the path says last, else the default.
    #[must_use]
    pub fn model(&self, path: &Path) -> Option<ModelRef> {
        let on_path = || {
            path.iter().rev().find_map(|entry| match &entry.body {
                Body::ModelChange { provider, model } => {
                    Some(ModelRef { provider: provider.clone(), id: model.clone() })
                }
                Body::Message(_) => match entry.message() {
                    Some(Message::Assistant(answer)) => {
                        Some(ModelRef { provider: answer.provider.clone()?, id: answer.model.clone()? })
                    }
                    _ => None,
                },
                _ => None,
            })
        };
        let in_header = || {
            let text = |key: &str| self.header.rest.get(key)?.as_str().map(str::to_owned);
            Some(ModelRef { provider: text("provider")?, id: text("modelId")? })
        };
        let own = self.model.clone().or_else(on_path).or_else(in_header);
        let settings = &self.sourced.settings;
        let default = settings.default_model.as_deref().and_then(ModelRef::parse);
        match own {
            Some(own) if settings.model(&own).is_some() || default.is_none() => Some(own),
            _ => default,
        }
    }

    /// What the context is measured against.
    pub fn gauge<'a>(&'a self, model: Option<&'a ModelRef>) -> Gauge<'a> {
        Gauge {
            settings: &self.sourced.settings,
            model,
            system_prompt: self.data.system_prompt.as_deref(),
            tools: self.data.tools.as_deref(),
        }
    }

    /// How full a path is, as far as that is known without counting.
    #[must_use]
    pub fn measure(&self, path: &Path) -> Measure {
        self.gauge(self.model(path).as_ref()).measure(path)
    }

    /// The context of a path.
    #[must_use]
    pub fn context(&self, path: &Path) -> Context {
        context::build(path)
    }

    /// Whether the context is what it was when `expected` was the leaf.
    #[must_use]
    pub fn unchanged_since(&self, expected: &EntryId) -> bool {
        let path = self.path();
        let Some(place) = path.position(expected) else {
            return false;
        };
        path[place + 1..].iter().all(|entry| {
            !entry.in_context()
                && !matches!(entry.body, Body::Compaction(_) | Body::ContextEdit(_) | Body::ResetBoundary)
                && entry.ours("undo").is_none()
        })
    }

    /// The session as clients see it.
    #[must_use]
    pub fn info(&self, status: Status) -> SessionInfo {
        let path = self.path();
        let mut name = self.tree.entries().filter_map(|entry| match &entry.body {
            Body::SessionInfo { name } => Some(name.clone()),
            _ => None,
        });
        let level = path.iter().rev().find_map(|entry| match &entry.body {
            Body::ThinkingLevel(level) => Some(level.clone()),
            _ => None,
        });
        let in_header = || self.header.rest.get("thinkingLevel")?.as_str().map(str::to_owned);
        let newest = self.tree.entries().last().map(|entry| entry.timestamp.clone());
        SessionInfo {
            session_id: self.id.clone(),
            path: self.file.as_ref().map(|file| file.display().to_string()),
            cwd: self.header.cwd.clone(),
            title: name.next_back().filter(|name| !name.is_empty()).or_else(|| self.title.clone()),
            created_at: self.header.timestamp.clone(),
            updated_at: newest.filter(|at| !at.is_empty()).unwrap_or_else(|| self.header.timestamp.clone()),
            parent_session: self.header.parent_session.clone(),
            leaf_entry_id: path.visible_leaf().map(|entry| entry.id.clone()),
            entry_count: Some(self.tree.len()),
            model: self.model(path),
            thinking_level: level.or_else(in_header).unwrap_or_else(|| "off".to_owned()),
            status,
            usage: self.measure(path).usage,
        }
    }

    /// What was odd about its file, as clients see it.
    #[must_use]
    pub fn repairs(&self) -> Vec<types::Repair> {
        self.repairs
            .iter()
            .map(|repair| types::Repair {
                kind: repair.kind.to_owned(),
                line: repair.line,
                detail: repair.detail.clone(),
            })
            .collect()
    }
}
