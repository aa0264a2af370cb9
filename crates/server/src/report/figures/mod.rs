//! What the server tells about itself to machines and to its dashboard: one table of figures, and three forms
//! of it.
//!
//! `figure` is what a row is, `table` names every figure once: its kind, its meaning, the field of INFO that
//! says the same. `view` is what they are read from. `history` keeps some of them for the page. `exposition`
//! writes them for Prometheus, `dashboard` as JSON for the page, `docs` into docs/metrics.md.
//!
//! The counters themselves are not here (see [`crate::metrics`]), nor is INFO.

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
