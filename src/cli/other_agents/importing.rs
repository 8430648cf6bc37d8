//! `abridged import`: a session of one of another agent.

use super::found;
use crate::cli::{
    client::{Client, Start},
    named::on_the_wire,
    print,
    wrap::print_sentences,
};
use serde_json::json;
use std::path::PathBuf;

/// Options of `abridged import`.
pub struct Request {
    /// The file of a session, or the beginning of its id.
    pub session: PathBuf,
    /// The working folder of the new session.
    pub cwd: Option<PathBuf>,
    /// The data folder of the new session, in the place of the one of the environment.
    pub data: Option<PathBuf>,
    /// As JSON.
    pub json: bool,
}

/// Imports a session.
///
/// # Errors
/// When there is none, or it cannot be read or written.
pub fn run(request: &Request) -> Result<i32, String> {
    let path = found::path(&request.session, request.data.as_deref())?;
    let cwd = request.cwd.as_deref().map(std::path::absolute).transpose().map_err(|error| error.to_string())?;
    let data = request.data.as_deref().map(std::path::absolute).transpose().map_err(|error| error.to_string())?;
    let data = data.as_deref();
    let start = Start { home: None, over: None, data, capabilities: json!({}), is_apart: false, trace: None };
    let mut client = Client::start_as(start, |_, _| {})?;
    let cwd = cwd.as_deref().map(on_the_wire).transpose()?;
    let answer = client.call("session/import", json!({ "path": on_the_wire(&path)?, "cwd": cwd }))?;
    client.end()?;
    if request.json {
        print::document(&answer);
        return Ok(0);
    }
    for repair in answer["repairs"].as_array().into_iter().flatten() {
        print::note(repair["detail"].as_str().unwrap_or_default());
    }
    let session = &answer["session"];
    let text = |name: &str| print::plain(session[name].as_str().unwrap_or_default());
    print::line(&text("path"));
    print_sentences(&format!(
        "Session {} has {} entries. The original is unchanged.",
        text("sessionId"),
        session["entryCount"].as_u64().unwrap_or_default()
    ));
    Ok(0)
}
