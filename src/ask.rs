//! Asking a model: for any purpose, with any turns and tools, at its provider or by the client.
//!
//! [`routes::Routes::ask`] sends one request, repeats it where that helps, and reports to its caller while the answer
//! arrives. Dropping its future cancels the request. Nothing else repeats a request.

pub mod access;
pub mod allowance;
pub mod client;
pub mod clock;
pub mod content;
pub mod failed;
pub mod later;
pub mod messages;
pub mod plain;
pub mod pool;
pub mod purpose;
pub mod rank;
pub mod request;
pub mod retry;
pub mod routes;
pub mod slots;
pub mod spent;
pub mod support;

#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "simulator"))]
pub mod virtual_clock;

use std::pin::Pin;

/// A boxed future, as the traits of this module return it.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
