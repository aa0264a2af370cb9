//! What a run has found out, in the forms that people and programs read.

pub(crate) mod chart;
pub(crate) mod compare;
pub(crate) mod csv;
pub(crate) mod document;
pub(crate) mod hdr;
pub(crate) mod html;
pub(crate) mod numbers;
pub(crate) mod output;
pub(crate) mod targets;
pub(crate) mod text;
