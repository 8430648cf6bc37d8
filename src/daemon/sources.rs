//! Finds the sessions that others refer to, open here or not.

use super::{Daemon, lock};
use crate::{
    ids::SessionId,
    log::sealed::Blocking,
    protocol::errors::Failure,
    session::{
        handle::Urgent,
        source::{Source, Told},
    },
};
use std::sync::Arc;
use tokio::sync::oneshot;

impl Daemon {
    /// Tells the live context of a session.
    pub(super) fn source(self: &Arc<Self>, from: SessionId, told: Told) {
        let door = lock(&self.registry).door(&from).cloned();
        let home = self.home();
        let find = async move {
            let mut looked = None;
            if let Some(door) = door {
                let (tell, answer) = oneshot::channel();
                door.send_urgent(Urgent::Look(Box::new(move |state| drop(tell.send(Source::of(state))))));
                // No answer: the session was closed, or could not be opened.
                looked = answer.await.ok();
            }
            let read = move || match looked {
                Some(Ok(source)) => Ok(source),
                Some(Err(Some(file))) => Source::read(file, &home, &Blocking::is_allowed_here()),
                Some(Err(None)) | None => Source::find(&from, &home, &Blocking::is_allowed_here()),
            };
            let found = tokio::task::spawn_blocking(move || read().and_then(Source::with_messages)).await;
            told(found.unwrap_or_else(|_| {
                Err(Failure::Internal("a defect of abridged kept the other session from being read".to_owned()))
            }));
        };
        self.runtime.spawn(find);
    }
}
