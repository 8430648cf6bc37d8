//! `abridged report`: a page about one session, or about the sessions of a data folder. It reads files and locks only; the page
//! is one file that loads nothing.

mod chart;
mod html;
mod overview;
mod page;
mod sizes;
mod timeline;
mod written;

use super::{
    named, print,
    tree::file::SessionFile,
    watch::{self, look::Looks},
};
use crate::{
    conversation::entry::Entry,
    ids::ModelRef,
    log::{error::StoreError, index::Place},
    models::{self, Budget},
    protocol::types::{UsageSource, role_of},
    session::state::State,
};
use chart::Limits;
use jiff::Timestamp;
use page::{About, Excerpt, Excerpts, Source};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};
use timeline::{Compaction, Timeline};

/// Options of `abridged report`.
pub struct Request {
    /// A session file, or the beginning of an id. Default: the newest session.
    pub session: Option<PathBuf>,
    /// The sessions of the data folder, in the place of one session.
    pub all: bool,
    /// The page.
    pub out: PathBuf,
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
    /// The time that ages are measured against.
    pub now: Timestamp,
}

/// Writes the page.
///
/// # Errors
/// When there is no such session, its file cannot be read, or the page cannot be written: what to do next.
pub fn run(request: &Request) -> Result<i32, String> {
    let html = match request.all {
        true => overview::write(&mut watch::looks(request.data.as_deref())?, request.now),
        false => {
            let path = named::file(request.session.as_deref(), request.data.as_deref())?;
            // A file has a report also where there is no data folder.
            let mut looks = watch::looks(request.data.as_deref()).ok();
            let session = Session::read(&path, looks.as_mut()).map_err(|error| error.to_string())?;
            page::write(&session.about(&path), &session.timeline, &session.active(), &session)
        }
    };
    written::write(&request.out, &html)?;
    if request.out.as_os_str() != "-" {
        print::line(&print::plain(&request.out.display().to_string()));
    }
    Ok(0)
}

/// A session that was read for a report.
struct Session {
    file: SessionFile,
    /// The place of each entry.
    places: Vec<Place>,
    timeline: Timeline,
    /// The entries of the active path.
    active: Vec<Place>,
    /// The compactions and resets that no longer hold.
    undone: HashSet<usize>,
    /// Its state, as a daemon has it after a load.
    state: Option<State>,
}

impl Session {
    fn read(path: &Path, looks: Option<&mut Looks>) -> Result<Self, StoreError> {
        let file = SessionFile::open(path)?;
        let (mut timeline, mut places) = (Timeline::default(), Vec::new());
        file.each_entry(|place, entry| {
            places.push(place);
            let parent = file.parent(place).map(Place::number);
            timeline.add(&entry, parent, |id| file.place(id).map(Place::number));
            Ok::<(), StoreError>(())
        })?;
        timeline.end();
        let active = file.active();
        let undone = file.undone(&active)?.into_iter().map(Place::number).collect();
        let state = looks.and_then(|looks| looks.state(path, &file.found.header.cwd).ok());
        Ok(Self { file, places, timeline, active, undone, state })
    }

    fn active(&self) -> Vec<usize> {
        self.active.iter().map(|place| place.number()).collect()
    }

    fn about(&self, path: &Path) -> About {
        let header = &self.file.found.header;
        let usage = self.state.as_ref().map(State::usage);
        let last = self.active.last().and_then(|last| self.timeline.points.get(last.number()));
        let model = self.state.as_ref().and_then(|state| state.model(state.path()));
        let model = model.or_else(|| last.and_then(|last| last.model.as_deref().cloned()));
        let now = usage.as_ref().map(|usage| {
            let source = match usage.source {
                UsageSource::Estimate => "estimated",
                _ => "reported",
            };
            (usage.context_tokens, source)
        });
        About {
            id: header.id.to_string(),
            title: self.file.title().map(str::to_owned),
            file: html::argument(&path.display().to_string()),
            cwd: header.cwd.clone(),
            parent: header.parent_session.clone().filter(|parent| !parent.is_empty()),
            now: now.or_else(|| last.map(|last| (last.tokens, "estimated"))),
            limits: self.limits(model.as_ref()),
            model: model.map(|model| model.to_string()),
            faults: self.file.repairs.len(),
        }
    }
}

fn excerpt(entry: &Entry) -> Excerpt {
    let role = role_of(entry).unwrap_or_else(|| entry.kind.clone());
    Excerpt::of(entry.id.as_str(), &role, &entry.readable_text())
}

impl Source for Session {
    /// By the settings of today.
    fn limits(&self, model: Option<&ModelRef>) -> Limits {
        let Some(state) = &self.state else {
            let settings = crate::settings::Settings::default();
            let window = models::window(&settings, None, model).tokens;
            return Limits { window, threshold: Budget::of(window, &settings.compaction, 0, 0).threshold };
        };
        let settings = &state.settings().settings;
        let fullness = state.measure();
        let Budget { system, tools, .. } = fullness.budget;
        let window = models::window(settings, state.taught(model), model).tokens;
        Limits { window, threshold: Budget::of(window, &settings.compaction_for(model), system, tools).threshold }
    }

    /// The first and the last of these entries.
    fn covered(&self, number: usize, compaction: &Compaction, most: usize) -> Excerpts {
        let from = match compaction.first_kept {
            Some(kept) => self.timeline.points[kept].parent,
            None => self.timeline.points[number].parent,
        };
        let path = std::iter::successors(from, |number| self.timeline.points[*number].parent);
        let said = path.filter(|number| self.timeline.points[*number].is_said);
        let covered: Vec<usize> = said.take(compaction.covered as usize).collect();
        let last = most / 2;
        let first = most - last;
        let wanted = |at: &usize| *at < last || covered.len() - at <= first;
        let mut shown: Vec<Excerpt> = (0..covered.len())
            .filter(wanted)
            .filter_map(|at| self.file.entry(self.places[covered[at]]).ok().flatten())
            .map(|entry| excerpt(&entry))
            .collect();
        shown.reverse();
        Excerpts { left_out: covered.len() - shown.len(), shown }
    }

    fn is_undone(&self, number: usize) -> bool {
        self.undone.contains(&number)
    }
}
