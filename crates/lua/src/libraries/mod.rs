//! The libraries of scripts: functions of our own, and the tables of their names.

mod base;
mod bit;
mod cjson;
mod globals;
mod math;
mod msgpack;
mod redis;
mod register;
mod sort;
mod strings;
mod structs;
mod tables;

pub(crate) use globals::{build, push_load_base};
pub(crate) use register::{FLAGS, is_name};
