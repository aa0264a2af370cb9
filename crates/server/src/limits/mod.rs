//! Every bound in the server that is not a setting, by name.
//!
//! A queue, buffer, loop or retry takes its bound from here, so that one folder tells how much of
//! anything there can be. A bound is imported as `crate::limits::NAME`: its file is of no concern to its
//! user.

mod commands;
mod connections;
mod large_values;
mod memory;
mod messages;
mod persistence;
mod report;

pub(crate) use commands::*;
pub(crate) use connections::*;
pub(crate) use large_values::*;
pub(crate) use memory::*;
pub(crate) use messages::*;
pub(crate) use persistence::*;
pub(crate) use report::*;
