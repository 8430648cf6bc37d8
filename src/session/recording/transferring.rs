//! Outcomes of transfers in a recording.

use crate::{protocol::errors::Failure, session::jobs::transfer::TransferText};
use serde::{Deserialize, Serialize};

/// The result of making the text of a transfer. A replay takes it as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transferring {
    /// The text.
    Text(Box<TransferText>),
    /// It was stopped.
    Cancelled,
    /// No model wrote it.
    Provider {
        /// The provider.
        provider: Option<String>,
        /// The model.
        model: Option<String>,
        /// The status of its answer.
        status: Option<u16>,
        /// Whether another try may succeed.
        retryable: bool,
        /// The error text.
        what: String,
    },
    /// It failed in another way.
    Failed(String),
}

impl From<&Result<TransferText, Failure>> for Transferring {
    fn from(result: &Result<TransferText, Failure>) -> Self {
        match result {
            Ok(text) => Self::Text(Box::new(text.clone())),
            Err(Failure::Cancelled) => Self::Cancelled,
            Err(Failure::Provider { provider, model, status, retryable, what }) => Self::Provider {
                provider: provider.clone(),
                model: model.clone(),
                status: *status,
                retryable: *retryable,
                what: what.clone(),
            },
            Err(Failure::Internal(what)) => Self::Failed(what.clone()),
            Err(other) => Self::Failed(other.to_string()),
        }
    }
}

impl From<Transferring> for Result<TransferText, Failure> {
    fn from(transferring: Transferring) -> Self {
        match transferring {
            Transferring::Text(text) => Ok(*text),
            Transferring::Cancelled => Err(Failure::Cancelled),
            Transferring::Provider { provider, model, status, retryable, what } => {
                Err(Failure::Provider { provider, model, status, retryable, what })
            }
            Transferring::Failed(what) => Err(Failure::Internal(what)),
        }
    }
}
