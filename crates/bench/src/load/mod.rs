//! What is sent: keys, values, requests and their mix. Nothing here knows a connection or a clock.
//!
//! Reading order: `numbers` (with `zipf`) draws keys, `home` those of a cluster's node, `sizes` and `data`
//! make values, `template` is an encoded request, `outgoing` where it is written to, `workload` a mix of
//! them, and `catalogue` lists the tests that have names.

pub(crate) mod catalogue;
pub(crate) mod data;
pub(crate) mod home;
pub(crate) mod numbers;
pub(crate) mod outgoing;
pub(crate) mod sizes;
pub(crate) mod template;
pub(crate) mod workload;
mod zipf;
