//! HTTP for operators: figures, health, and the dashboard.
//!
//! One thread serves it, on a port of its own, apart from the workers. Reading order: `serve` is the thread
//! and its bounds, `connection` one client's bytes, `request` and `response` the two halves of the protocol,
//! `routes` the paths and their access rules, `keys` the browser of keys, `page` the files of the dashboard.
//!
//! The figures themselves are in [`crate::report::figures`].

mod connection;
mod keys;
mod request;
mod response;
mod routes;
mod serve;

pub(crate) use serve::{Http, listen};
