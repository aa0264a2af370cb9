//! The HTTP port: what it answers, to whom, and what a client can do to it.

mod answers;
mod browser;
mod deploy;
mod figures;
mod history;
mod hostile;
mod keys;
mod survey;

use crate::support;
