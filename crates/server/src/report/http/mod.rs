//! HTTP for those who look after a server: figures, health, and a page that shows them.
//!
//! One thread serves it, on a port of its own, apart from the workers. Reading order: `serve` is the thread
//! and its bounds, `connection` one client's bytes, `request` and `response` the two halves of the protocol,
//! `routes` what each path answers and who may ask, `keys` the browser of keys, `page` the files of the
//! dashboard.
//!
//! What the figures mean and where they come from is not here: see [`crate::report::figures`].

mod connection;
mod keys;
mod request;
mod response;
mod routes;
mod serve;

pub(crate) use serve::{Http, listen};
