//! The libraries of scripts: functions of our own, and the tables of their names.

mod base;
mod globals;
mod math;
mod redis;
mod sort;
mod strings;
mod tables;

pub(crate) use globals::build;
