//! Errors of PostgreSQL as the faults that a session knows.

use crate::log::store::server::Fault;
use std::error::Error as _;
use tokio_postgres::{Error, error::SqlState};

/// The fault of a request that was sent.
#[must_use]
pub(super) fn of(error: &Error) -> Fault {
    let Some(refusal) = error.as_db_error() else { return Fault::Cut(words(error)) };
    let code = refusal.code();
    // The server ends the connection, perhaps after the change was made.
    if code.code().starts_with("57P") {
        return Fault::Cut(refusal.message().to_owned());
    }
    let (advice, retryable) = match code {
        &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => ("try again", true),
        &SqlState::READ_ONLY_SQL_TRANSACTION => {
            ("it is a read-only replica; name the primary in the address, or all servers, as host=a,b", true)
        }
        &SqlState::INSUFFICIENT_PRIVILEGE => {
            ("grant the role what docs/STORE.md lists under Roles, then try again", false)
        }
        &SqlState::DISK_FULL => ("make room at the server, then try again", true),
        &SqlState::TOO_MANY_CONNECTIONS => ("raise max_connections or put a pooler before it, then try again", true),
        &SqlState::UNDEFINED_TABLE | &SqlState::UNDEFINED_COLUMN | &SqlState::INVALID_SCHEMA_NAME => {
            ("its tables are gone or others; restart the daemon, which makes or checks them", false)
        }
        &SqlState::PROGRAM_LIMIT_EXCEEDED => ("the value is too large for the server", false),
        _ if code.code().starts_with("53") => ("give the server more resources, then try again", true),
        _ => ("see the log of the server", false),
    };
    Fault::Refused { why: format!("{} ({}); {advice}", refusal.message(), code.code()), retryable }
}

/// The fault of a connection that could not be made.
#[must_use]
pub(super) fn unconnected(error: &Error) -> Fault {
    match error.as_db_error() {
        // Passwords, roles and databases do not mend themselves, and a server that starts does.
        Some(refusal) if !["57P", "53"].iter().any(|class| refusal.code().code().starts_with(class)) => {
            let advice = "check user, password and database of its address";
            let why = format!("{} ({}); {advice}", refusal.message(), refusal.code().code());
            Fault::Refused { why, retryable: false }
        }
        _ => misconfigured(&words(error)).unwrap_or_else(|| Fault::Away(words(error))),
    }
}

/// The fault of a connection that no later attempt makes.
fn misconfigured(words: &str) -> Option<Fault> {
    let advice = if words.contains("invalid peer certificate") {
        "its certificate is not trusted, or is for another name: name the file of its root with sslrootcert in the address. The \
         certificate needs the server's name as subjectAltName, and may be no root itself"
    } else if words.contains("password missing") {
        "it asks for a password: give it in PGPASSWORD, in the setting storePasswordCommand, or in the address"
    } else if words.contains("server does not support TLS") {
        "it has no TLS: turn it on at the server, or add sslmode=disable to the address"
    } else {
        return None;
    };
    Some(Fault::Refused { why: format!("{words}; {advice}"), retryable: false })
}

/// An error with its causes.
fn words(error: &Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(it) = cause {
        let more = it.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = it.source();
    }
    words
}
