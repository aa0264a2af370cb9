//! Putting a load on a server and counting what comes of it. Nothing here knows how a report looks.
//!
//! Reading order: `plan` says what to do, `job` is what all threads of a run share, `run` starts them and
//! adds up, `worker` is one of them, `outcome` is what comes of it; `schedule` is the timetable of the open
//! loop, `tally` reads replies into `counts`; `find` makes runs until it knows a rate; `audience` are those
//! who listen to what is published; `cluster` is the map of nodes that a run follows.

pub(crate) mod audience;
pub(crate) mod clock;
pub(crate) mod cluster;
pub(crate) mod counts;
pub(crate) mod find;
pub(crate) mod idle;
mod job;
pub(crate) mod outcome;
pub(crate) mod plan;
mod progress;
pub(crate) mod run;
pub(crate) mod schedule;
mod tally;
mod worker;
