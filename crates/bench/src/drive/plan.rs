//! What a run is to do, after the command line was understood.

use super::schedule::Arrivals;
use std::time::Duration;

/// How a workload is put on a server.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Connections in all.
    pub(crate) clients: usize,
    /// Threads that share them.
    pub(crate) threads: usize,
    /// Requests that are sent together.
    pub(crate) pipeline: u32,
    pub(crate) pace: Pace,
    pub(crate) until: Until,
    /// How long requests are sent before they count.
    pub(crate) warmup: Duration,
    /// A connection is used again; otherwise each batch gets a new one.
    pub(crate) keep_alive: bool,
    pub(crate) seed: u64,
    /// The processors that the threads are pinned to, in turn; none if empty.
    pub(crate) cpus: Vec<usize>,
    /// Without any reply for so long, the run is given up.
    pub(crate) timeout: Duration,
    /// For how long a broken connection is opened again; zero ends the run with the first that breaks.
    pub(crate) reconnect: Duration,
    /// After how many requests a connection is given up for another.
    pub(crate) reconnect_interval: Option<u64>,
    /// Each connection has random numbers of its own.
    pub(crate) distinct_seeds: bool,
    /// Show error replies when they come, at most one a second.
    pub(crate) shows_errors: bool,
    /// Keep the latencies of every second.
    pub(crate) keeps_intervals: bool,
    /// Write a line of progress while it runs.
    pub(crate) has_progress: bool,
    /// Who listens to what is published.
    pub(crate) listening: Option<Listening>,
}

/// Connections that listen to every one of some channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listening {
    pub(crate) subscribers: usize,
    pub(crate) channels: Vec<Vec<u8>>,
}

/// When the next request is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// When the replies to the ones before have come.
    Closed,
    /// When the timetable says so: requests per second in all.
    Open { rate: f64, arrivals: Arrivals },
}

/// When the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// After so many requests, warm-up not counted.
    Requests(u64),
    /// After this time, warm-up not counted.
    Time(Duration),
}

impl Plan {
    /// The rate of the open loop.
    pub(crate) fn rate(&self) -> Option<f64> {
        match self.pace {
            Pace::Open { rate, .. } => Some(rate),
            Pace::Closed => None,
        }
    }
}
