//! The write of a transfer.

use crate::{
    conversation::entry::Entry,
    protocol::events::Event,
    session::{
        core::{costs::CostEntries, work::Task},
        jobs::transfer::TransferText,
        kind::Transferred,
    },
};
use std::sync::Arc;

/// The entries of a transfer, on their way to the disk.
pub(in crate::session::core) struct Delivery {
    pub task: Box<Task>,
    pub text: Option<TransferText>,
    pub costs: CostEntries,
    pub entries: Vec<Arc<Entry>>,
    /// The event after those of the entries.
    pub event: Option<Event>,
    pub result: Transferred,
}
