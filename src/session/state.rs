//! State of a session apart from its operations: entries, settings, model, instructions, and the values that follow
//! from them.

mod client;
mod cold;
mod glance;
pub mod output;
pub mod request;

pub use super::data::SessionData;
pub use client::{Capabilities, ModelChoice};

use self::client::Client;
use super::{
    fault::{Fault, planted},
    log_work::Fetched,
};
use crate::{
    compaction::{
        gauge::{Fullness, Gauge},
        meter::{self, Meter},
    },
    conversation::{
        entry::Header,
        instructions::Instructions,
        path::{Path, Revision},
        tokens::Estimator,
    },
    ids::{EntryId, SessionId},
    log::{blobs::Blobs, history::History, repair::Repair},
    models::{
        self, ModelRef,
        learned::{Learned, Taught},
    },
    prompts::Prompts,
    protocol::{
        errors::Failure,
        types::{self, LONGEST_TITLE, SessionInfo, Status, Usage},
    },
    settings::{
        Flaw, Layers, Limits, Problem, Settings, Sourced,
        checked::{Checked, check, tighten},
        layers::without_ceiling,
        trust::{Trust, allowed},
    },
    text,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// Values that a session is opened with, beside its file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Beginning {
    /// Data that the client gave.
    pub given: SessionData,
    /// Model that the client gave.
    pub model: Option<ModelRef>,
    /// Layers of the settings below the session's own, with their prompts.
    pub layers: Layers,
    /// Whether the settings of the file apply without limits.
    pub trust: Trust,
    /// Windows learned from providers.
    pub windows: Learned,
    /// Folder of images beside the file.
    pub images: Option<PathBuf>,
    /// Whether the tables of the tokenizer were loaded.
    pub counts: bool,
    /// The capabilities of the client.
    #[serde(default, flatten)]
    pub capabilities: Capabilities,
}

/// The view on a path: settings, model, system prompt and tools.
#[derive(Clone)]
pub struct View {
    sourced: Arc<Sourced>,
    given: SessionData,
    trust: Trust,
    instructions: Arc<Instructions>,
    estimator: Estimator,
    model: Option<ModelRef>,
    model_in_header: Option<ModelRef>,
    thinking_in_header: Option<String>,
    /// The time at which the session was made of another one.
    forked: Option<String>,
    /// The windows that were learned when the view was made.
    pub learned: Learned,
    blobs: Option<Blobs>,
}

/// The progress of a session towards counts in the place of estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tokenizer {
    /// Its tables are not loaded.
    NotLoaded,
    /// Its tables are loaded.
    Loaded,
    /// It has counted every entry of the context. This is for good.
    Counted,
}

/// The model of a session and the size of its window, in tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInForce {
    /// The model.
    pub model: Option<ModelRef>,
    /// The window.
    pub window: u64,
}

/// The state of a session.
pub struct State {
    /// Id.
    pub id: SessionId,
    /// File; `None` for an ephemeral session.
    pub file: Option<PathBuf>,
    history: History,
    /// Faults of the file.
    pub repairs: Vec<Repair>,
    /// Images beside the file.
    blobs: Option<Blobs>,
    header: Header,
    /// Title in the file's head, as oh-my-pi writes it.
    title: Option<String>,
    /// Data that the client gave at the opening.
    given: SessionData,
    /// The client's data over the stored data.
    data: Arc<SessionData>,
    instructions: Arc<Instructions>,
    /// Revision of the path that `data` and `instructions` were read from.
    looked_at: Revision,
    /// Sums of the path, after their first use.
    meter: Mutex<Option<Meter>>,
    tokenizer: Tokenizer,
    client: Client,
    layers: Layers,
    sourced: Arc<Sourced>,
    /// Windows learned from providers.
    pub learned: Learned,
    /// Entries that were fetched for the request that is handled next.
    pub fetched: Option<Fetched>,
    /// Whether the settings of the file apply without limits.
    trust: Trust,
}

impl State {
    /// A state of these parts. `data` and `model` come from the client at the opening.
    ///
    /// # Errors
    /// When the settings are invalid.
    #[expect(clippy::too_many_arguments, reason = "they are what a session is")]
    pub fn new(
        header: Header,
        file: Option<PathBuf>,
        title: Option<String>,
        history: History,
        mut given: SessionData,
        model: Option<ModelRef>,
        layers: &Layers,
        trust: Trust,
    ) -> Result<Self, Problem> {
        let learned = Learned::default().in_session(&header.id);
        let stored = stored(history.path(), trust);
        let settings = given.clone().over(stored.clone()).in_force(layers, None)?.settings;
        given.hold_for(|| model_of(&settings, history.path(), model.as_ref(), || model_in(&header)));
        let data = Arc::new(given.clone().over(stored));
        let sourced = Arc::new(data.in_force(layers, file.as_deref())?);
        Ok(Self {
            layers: layers.clone(),
            id: header.id.clone(),
            blobs: None,
            file,
            looked_at: history.path().revision(),
            instructions: Arc::new(data.instructions(history.path())),
            meter: Mutex::new(None),
            tokenizer: Tokenizer::NotLoaded,
            history,
            repairs: Vec::new(),
            header,
            title,
            given,
            data,
            client: Client { chosen: model, capabilities: Capabilities::default() },
            sourced,
            learned,
            fetched: None,
            trust,
        })
    }

    /// Replaces the data of the client.
    ///
    /// # Errors
    /// When the settings are invalid. Nothing changes then.
    pub fn give(&mut self, mut given: SessionData, model: Option<ModelRef>) -> Result<(), Failure> {
        let settings = given.clone().in_force(&self.layers, None).map_err(Failure::invalid_settings)?.settings;
        let chosen = model.as_ref().or(self.client.chosen.as_ref());
        given.hold_for(|| model_of(&settings, self.path(), chosen, || self.model_in_header()));
        let given = given.over(self.given.clone());
        let data = Arc::new(given.clone().over(stored(self.path(), self.trust)));
        let sourced = data.in_force(&self.layers, self.file.as_deref()).map_err(Failure::invalid_settings)?;
        self.sourced = Arc::new(sourced);
        (self.given, self.data) = (given, data);
        self.instructions = Arc::new(self.data.instructions(self.path()));
        self.forget_sums();
        self.client.chosen = model.or(self.client.chosen.take());
        Ok(())
    }

    /// Records that the data in force, including the client's, were stored with the session.
    pub fn stored_data(&mut self) {
        self.given = match self.trust {
            Trust::Trusted => SessionData::default(),
            // The client stored these settings; a later load of the file cannot know that and takes only some of them.
            // The system prompt and the tools belong to the branch that they were stored on.
            Trust::Untrusted => {
                let SessionData { settings, limits, .. } = stored(self.history.path(), Trust::Trusted);
                SessionData { settings, limits, ..SessionData::default() }
            }
        };
        self.read_data();
    }

    /// Records a model that was stored with the session. It has precedence over the client's choice at the opening.
    pub fn stored_model(&mut self) {
        self.client.chosen = None;
    }

    /// Sets the images beside the file.
    pub fn set_images(&mut self, blobs: Option<Blobs>) {
        self.blobs = blobs;
    }

    /// The values that a replay of the session begins with.
    #[must_use]
    pub fn beginning(&self) -> Beginning {
        Beginning {
            given: self.given.clone(),
            model: self.client.chosen.clone(),
            layers: self.layers.clone(),
            trust: self.trust,
            windows: self.learned.clone(),
            images: self.blobs.as_ref().map(|blobs| blobs.folder().to_owned()),
            counts: self.tokenizer != Tokenizer::NotLoaded,
            capabilities: self.client.capabilities,
        }
    }

    /// Sets the capabilities of the client.
    pub fn set_capabilities(&mut self, capabilities: Capabilities) {
        self.client.capabilities = capabilities;
    }

    /// Whether the client asks the model that a context names.
    #[must_use]
    pub fn client_switches_models(&self) -> bool {
        self.client.capabilities.model_choice == ModelChoice::Context
    }

    /// Whether the client goes on with the session that `session_replaced` names.
    #[must_use]
    pub fn client_follows_sessions(&self) -> bool {
        self.client.capabilities.follows_sessions
    }

    /// The entries.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Changes the history. No other way changes the path, so the values that are read from the path always belong to
    /// the current one.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut History) -> R) -> R {
        let result = change(&mut self.history);
        // The path of a sleeping session is empty.
        if !self.history.is_asleep() && self.looked_at != self.path().revision() {
            self.read_data();
        }
        result
    }

    /// Reads the session's values from the path.
    fn read_data(&mut self) {
        self.looked_at = self.path().revision();
        let data = Arc::new(self.given.clone().over(stored(self.history.path(), self.trust)));
        let before = std::mem::replace(&mut self.data, data);
        self.instructions = Arc::new(self.data.instructions(self.path()));
        self.forget_sums();
        if before.settings == self.data.settings && before.limits == self.data.limits {
            return;
        }
        match self.data.in_force(&self.layers, self.file.as_deref()) {
            Ok(sourced) => self.sourced = Arc::new(sourced),
            Err(problem) => tracing::warn!(%problem, "the settings stored with the session are not used"),
        }
    }

    /// Drops the sums, whose basis has changed.
    fn forget_sums(&mut self) {
        *self.meter.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Records whether the tables of the tokenizer are loaded.
    pub fn tokenizer_is(&mut self, loaded: bool) {
        if loaded && self.tokenizer == Tokenizer::NotLoaded {
            self.tokenizer = Tokenizer::Loaded;
        }
    }

    /// The estimator that a write counts its entries with, where its tables are loaded.
    #[must_use]
    pub fn counts_with(&self) -> Option<Estimator> {
        let loaded = self.tokenizer != Tokenizer::NotLoaded;
        Some(self.wanted_estimator()).filter(|estimator| loaded && *estimator == Estimator::Tiktoken)
    }

    /// Moves to the tokenizer for good, if its tables are loaded and few tokens are left to count. `done` entries are
    /// counted already. Returns whether the session uses the tokenizer. Entries that other work has counted meanwhile
    /// make no difference, so that the same inputs give the same estimator.
    pub fn settle_estimator(&mut self, done: &HashSet<EntryId>) -> bool {
        /// Largest number of uncounted tokens that are counted here: about a millisecond.
        const COUNTED_AT_ONCE: u64 = 4_000;
        if self.tokenizer != Tokenizer::Loaded || self.wanted_estimator() == Estimator::Chars {
            return self.tokenizer == Tokenizer::Counted;
        }
        let path = self.history.path();
        let left = || path[path.first_kept()..].iter().filter(|entry| !done.contains(&entry.id));
        if left().map(|entry| u64::from(entry.tokens(Estimator::Chars))).sum::<u64>() <= COUNTED_AT_ONCE {
            left().for_each(|entry| entry.count());
            self.tokenizer = Tokenizer::Counted;
        }
        self.tokenizer == Tokenizer::Counted
    }

    /// Estimator of a decision. Counting may be necessary first.
    #[must_use]
    pub fn wanted_estimator(&self) -> Estimator {
        self.sourced.settings.tokens.estimator.into()
    }

    /// Estimator of the session: characters until all entries were counted once, then the tokenizer for good.
    #[must_use]
    pub fn estimator(&self) -> Estimator {
        if self.tokenizer == Tokenizer::Counted { self.wanted_estimator() } else { Estimator::Chars }
    }

    /// Faults of the settings that are stored with the session.
    #[must_use]
    pub fn invalid_settings(&self) -> Vec<Repair> {
        let data = self.path().session_data().and_then(|value| SessionData::deserialize(value).ok());
        let problems = data.and_then(|data| data.settings).map(|settings| usable(&settings, self.trust).1);
        let repair = |problem: Problem| {
            let problem = Problem { line: None, ..problem };
            Repair { kind: "invalid_setting", line: None, detail: format!("stored with the session: {problem}") }
        };
        problems.unwrap_or_default().into_iter().map(repair).collect()
    }

    /// Data of the session that no entry stores.
    #[must_use]
    pub fn data(&self) -> &SessionData {
        &self.data
    }

    /// System prompt and tools in force.
    #[must_use]
    pub fn instructions(&self) -> &Arc<Instructions> {
        &self.instructions
    }

    /// Header line of the file.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Working folder.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.header.cwd
    }

    /// Applies the session's settings over new layers. Returns the settings in force, if they changed.
    ///
    /// # Errors
    /// When the session's settings are invalid over them. The old settings stay then.
    pub fn relayer(&mut self, layers: Layers) -> Result<Option<&Sourced>, Problem> {
        if layers == self.layers {
            return Ok(None);
        }
        let sourced = self.data.in_force(&layers, self.file.as_deref())?;
        self.layers = layers;
        let before = std::mem::replace(&mut self.sourced, Arc::new(sourced));
        // Prompts are not sent. The next summaries use them.
        let same = before.tells_the_same(&self.sourced);
        self.forget_sums();
        Ok((!same).then_some(&self.sourced))
    }

    /// Settings in force.
    #[must_use]
    pub fn settings(&self) -> &Arc<Sourced> {
        &self.sourced
    }

    /// The path to the leaf.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.history.path()
    }

    /// Whether the client gave other instructions at the opening than those that are stored with the session.
    #[must_use]
    pub fn has_instructions_of_its_load(&self) -> bool {
        let is_given = self.given.system_prompt.is_some() || self.given.tools.is_some();
        let stored = || stored(self.path(), self.trust).instructions(self.path());
        is_given && !self.instructions.are_the_same_as(&stored())
    }

    /// Whether the path is unknown before a compaction of another program.
    #[must_use]
    pub fn lacks_past(&self) -> bool {
        self.history.index().is_none() && self.path().lacks_its_past()
    }

    /// Leaf that clients see.
    #[must_use]
    pub fn visible_leaf(&self) -> Option<EntryId> {
        self.path().visible_leaf().cloned()
    }

    /// The view on the path, for work outside of the session.
    #[must_use]
    pub fn view(&self) -> View {
        View {
            sourced: self.sourced.clone(),
            given: self.given.clone(),
            trust: self.trust,
            instructions: self.instructions.clone(),
            estimator: self.estimator(),
            model: self.client.chosen.clone(),
            model_in_header: self.model_in_header(),
            thinking_in_header: self.text_in_header("thinkingLevel").map(str::to_owned),
            forked: self.header.parent_session.as_ref().map(|_| self.header.timestamp.clone()),
            learned: self.learned.clone(),
            blobs: self.blobs.clone(),
        }
    }

    fn text_in_header(&self, key: &str) -> Option<&str> {
        self.header.rest.get(key)?.as_str()
    }

    fn model_in_header(&self) -> Option<ModelRef> {
        model_in(&self.header)
    }

    /// Model of a path.
    #[must_use]
    pub fn model(&self, path: &Path) -> Option<ModelRef> {
        model_of(&self.sourced.settings, path, self.client.chosen.as_ref(), || self.model_in_header())
    }

    /// The windows of a model that were learned.
    #[must_use]
    pub fn taught(&self, model: Option<&ModelRef>) -> Taught {
        model.map(|model| self.learned.taught(&self.sourced.settings, model)).unwrap_or_default()
    }

    /// Model of the session, with its window.
    #[must_use]
    pub fn model_in_force(&self) -> ModelInForce {
        let model = self.model(self.path());
        let taught = Taught { seen: None, ..self.taught(model.as_ref()) };
        let window = models::window(&self.sourced.settings, taught, model.as_ref()).tokens;
        ModelInForce { model, window }
    }

    /// Fullness of the context. The cost depends on the entries since the last call.
    #[must_use]
    pub fn measure(&self) -> Fullness {
        self.with_meter(|meter| self.measure_with(meter))
    }

    /// Reads the sums of the path as it is now.
    fn with_meter<R>(&self, read: impl FnOnce(&Meter) -> R) -> R {
        let path = self.path();
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        let (sourced, estimator) = (&self.sourced, self.estimator());
        match &mut *meter {
            Some(meter) => meter.follow(path, sourced, estimator),
            None => *meter = Some(Meter::of(path, sourced, estimator)),
        }
        read(meter.as_ref().expect("it was made above"))
    }

    /// The largest believed prompt of a model on the path, in tokens.
    #[must_use]
    pub fn largest_believed(&self, model: &ModelRef) -> Option<u64> {
        self.with_meter(|meter| meter.largest_believed(model))
    }

    /// The newest report of an answer on the path, as it was judged.
    #[must_use]
    pub fn newest_report(&self) -> Option<meter::Judged> {
        self.with_meter(|meter| meter.newest().cloned())
    }

    /// Sums of the path by an estimator. With `Tiktoken` this counts the uncounted entries.
    #[must_use]
    pub fn meter(&self, estimator: Estimator) -> Meter {
        Meter::of(self.path(), &self.sourced, estimator)
    }

    /// Fullness of the context by these sums.
    #[must_use]
    pub fn measure_with(&self, meter: &Meter) -> Fullness {
        let model = self.model(self.path());
        measured(&gauge(&self.sourced.settings, &self.instructions, &self.learned, model.as_ref()), meter)
    }

    /// Fullness of the context as the protocol has it.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::of(&self.measure(), self.path())
    }

    /// Whether the context is the one that it was when `expected` was the leaf.
    #[must_use]
    pub fn unchanged_since(&self, expected: &EntryId) -> bool {
        let path = self.path();
        let Some(place) = path.position(expected) else {
            return false;
        };
        path[place + 1..].iter().all(|entry| !entry.in_context() && !entry.rewrites())
    }

    /// Title. That of a file of others may have any length, and is shortened.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        let indexed = self.history.index().and_then(|index| index.title()).map(str::to_owned);
        let said = indexed.or_else(|| self.path().title()).or_else(|| self.title.clone());
        said.filter(|title| !title.is_empty()).map(|title| text::shortened(title, LONGEST_TITLE))
    }

    /// The session as the protocol has it.
    #[must_use]
    pub fn info(&self, status: Status) -> SessionInfo {
        let path = self.path();
        let newest = path.last().map(|entry| entry.timestamp.clone());
        SessionInfo {
            session_id: self.id.clone(),
            path: self.file.as_ref().map(|file| file.display().to_string()),
            cwd: self.header.cwd.clone(),
            title: self.title(),
            created_at: self.header.timestamp.clone(),
            updated_at: newest.filter(|at| !at.is_empty()).unwrap_or_else(|| self.header.timestamp.clone()),
            parent_session: self.header.parent_session.clone(),
            leaf_entry_id: path.visible_leaf().cloned(),
            entry_count: self.history.entry_count(),
            model: self.model(path),
            thinking_level: self.view().thinking_level(path),
            status,
            usage: self.usage(),
        }
    }

    /// Faults of the file as the protocol has them.
    #[must_use]
    pub fn repairs(&self) -> Vec<types::Repair> {
        self.repairs.iter().map(types::Repair::from).collect()
    }
}

impl View {
    /// Prompts in force.
    #[must_use]
    pub fn prompts(&self) -> &Prompts {
        &self.sourced.prompts
    }

    /// Model of a path.
    #[must_use]
    pub fn model(&self, path: &Path) -> Option<ModelRef> {
        model_of(&self.sourced.settings, path, self.model.as_ref(), || self.model_in_header.clone())
    }

    /// Thinking level of a path.
    #[must_use]
    pub fn thinking_level(&self, path: &Path) -> String {
        path.thinking_level().or_else(|| self.thinking_in_header.clone()).unwrap_or_else(|| "off".to_owned())
    }

    /// Images beside the session's file.
    #[must_use]
    pub fn blobs(&self) -> Option<&Blobs> {
        self.blobs.as_ref()
    }

    /// Settings in force.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.sourced.settings
    }

    /// System prompt and tools.
    #[must_use]
    pub fn instructions(&self) -> &Instructions {
        &self.instructions
    }

    /// The same, shared.
    #[must_use]
    pub fn shared_instructions(&self) -> Arc<Instructions> {
        self.instructions.clone()
    }

    /// The view on another path of the session, which may have another system prompt and other tools.
    #[must_use]
    pub fn of(self, path: &Path) -> Self {
        let data = self.given.clone().over(stored(path, self.trust));
        Self { instructions: Arc::new(data.instructions(path)), ..self }
    }

    /// Fullness of a path. With the tokenizer this may count for a while.
    #[must_use]
    pub fn measure(&self, path: &Path) -> Fullness {
        let meter = Meter::of(path, &self.sourced, self.estimator);
        measured(&gauge(&self.sourced.settings, &self.instructions, &self.learned, self.model(path).as_ref()), &meter)
    }
}

/// Model of a path: the client's choice, else the last one on the path, else the one of the header, else the default.
fn model_of(
    settings: &Settings,
    path: &Path,
    chosen: Option<&ModelRef>,
    in_header: impl FnOnce() -> Option<ModelRef>,
) -> Option<ModelRef> {
    settings.model_or_default(chosen.cloned().or_else(|| path.model()).or_else(in_header))
}

/// The model that a header names.
fn model_in(header: &Header) -> Option<ModelRef> {
    let text = |key: &str| Some(header.rest.get(key)?.as_str()?.to_owned());
    Some(ModelRef { provider: text("provider")?, id: text("modelId")? })
}

fn gauge<'a>(
    settings: &'a Settings,
    instructions: &'a Instructions,
    learned: &Learned,
    model: Option<&'a ModelRef>,
) -> Gauge<'a> {
    let learned = model.map(|model| learned.taught(settings, model)).unwrap_or_default();
    Gauge { settings, model, learned, instructions }
}

fn measured(gauge: &Gauge, meter: &Meter) -> Fullness {
    let fullness = gauge.measure(meter);
    let divisor = if planted(Fault::SizeHalved) { 2 } else { 1 };
    let (context_tokens, evident_tokens) = (fullness.context_tokens / divisor, fullness.evident_tokens / divisor);
    Fullness { context_tokens, evident_tokens, ..fullness }
}

impl From<&Repair> for types::Repair {
    fn from(repair: &Repair) -> Self {
        Self { kind: repair.kind.to_owned(), line: repair.line, detail: repair.detail.clone() }
    }
}

/// A foreign file must not send a conversation or a key to another address.
fn usable(settings: &Value, trust: Trust) -> (Value, Vec<Problem>) {
    let Checked { value, mut problems } = check(&settings.to_string(), None);
    let settings = value.unwrap_or_else(|| Value::Object(Map::new()));
    if trust == Trust::Trusted {
        return (settings, problems);
    }
    // A file of another folder leaves the ceiling of tokens to the person who opens it.
    let mut settings = without_ceiling(allowed(&settings, trust).0);
    let outside = tighten(&mut settings, trust).into_iter().map(|it| {
        let what = format!("{}; a session file may set {}", it.found, it.range);
        Problem { key: it.place.to_string(), flaw: Flaw::Untrusted, ..Problem::broken(what) }
    });
    problems.extend(outside);
    (settings, problems)
}

/// Session data that a path stores, as far as it is valid and trusted.
fn stored(path: &Path, trust: Trust) -> SessionData {
    let mut data: SessionData =
        path.session_data().and_then(|value| SessionData::deserialize(value).ok()).unwrap_or_default();
    data.settings = data.settings.map(|settings| usable(&settings, trust).0);
    if trust == Trust::Untrusted {
        data.limits = data.limits.map(Limits::of_others);
    }
    data
}
