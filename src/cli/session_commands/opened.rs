//! A session that a command opens in a daemon of its own.

use crate::cli::{
    client::{Client, Start},
    named,
};
use serde_json::{Value, json};
use std::path::Path;

/// The right to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Rights {
    /// Other programs may have the session open. It is only read.
    Read,
    /// The session is locked.
    Write,
}

/// A session, and the daemon that has it open.
pub(in crate::cli) struct Opened {
    pub client: Client,
    /// As `session/load` answers it.
    pub session: Value,
}

/// Opens a session.
///
/// # Errors
/// When there is none, or another program has it open: what to do next.
pub(in crate::cli) fn open(named: Option<&Path>, data: Option<&Path>, rights: Rights) -> Result<Opened, String> {
    let path = named::file(named, data)?;
    let start = Start { home: None, over: None, data: None, capabilities: json!({}), is_apart: false, trace: None };
    let mut client = Client::start_as(start, |_, _| {})?;
    let loaded = client
        .call("session/load", json!({ "path": named::on_the_wire(&path)?, "readOnly": rights == Rights::Read }))?;
    Ok(Opened { client, session: loaded["session"].clone() })
}

impl Opened {
    /// Calls a method of the session.
    ///
    /// # Errors
    /// When it fails.
    pub fn call(&mut self, method: &str, mut params: Value) -> Result<Value, String> {
        params["sessionId"] = self.session["sessionId"].clone();
        self.client.call(method, params)
    }
}
