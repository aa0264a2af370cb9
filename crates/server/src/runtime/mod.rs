//! The program: start, control thread, signals, end, and what it does instead of serving.

pub(crate) mod check_log;
mod control;
mod health;
mod pid_file;
mod service;
mod shutdown;
pub(crate) mod start;
