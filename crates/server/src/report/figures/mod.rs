//! Figures of the server for machines and for its dashboard: one table in three forms.
//!
//! `figure` defines a row. `table` names every figure once: its kind, its meaning, and either a field of INFO
//! or a function that reads it. `view` is the state from which figures are read. `history` keeps some of them
//! for the dashboard. `exposition` writes them for Prometheus, `dashboard` as JSON, `docs` into
//! docs/metrics.md.
//!
//! The counters are in [`crate::metrics`], INFO is in `command::server`.

mod dashboard;
mod exposition;
mod figure;
mod history;
mod ready;
mod table;
mod view;

#[cfg(test)]
mod docs;

pub(crate) use dashboard::{dashboard, printable};
pub(crate) use exposition::exposition;
pub(crate) use history::History;
pub(crate) use ready::why_not_ready;
pub(crate) use view::View;
