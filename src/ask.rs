//! Asking a model.

pub mod means;
