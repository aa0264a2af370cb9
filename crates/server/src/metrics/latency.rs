//! The latency monitor: the worst moments of each kind of event, for LATENCY LATEST and HISTORY.
//!
//! An event is kept when it took at least `latency-monitor-threshold` milliseconds.

use std::collections::{BTreeMap, VecDeque};

/// Samples kept of each event.
const KEPT: usize = 160;

/// One moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// When (Unix, s).
    pub(crate) at_s: i64,
    pub(crate) took_ms: u64,
}

/// What is known of one kind of event.
#[derive(Default)]
pub(crate) struct Event {
    pub(crate) samples: VecDeque<Sample>,
    pub(crate) worst_ms: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct LatencyMonitor {
    events: BTreeMap<&'static str, Event>,
}

impl LatencyMonitor {
    /// Notes an event; several in the same second count as their worst.
    pub(crate) fn add(&mut self, event: &'static str, at_s: i64, took_ms: u64) {
        let known = self.events.entry(event).or_default();
        known.worst_ms = known.worst_ms.max(took_ms);
        match known.samples.back_mut() {
            Some(last) if last.at_s == at_s => last.took_ms = last.took_ms.max(took_ms),
            _ => {
                if known.samples.len() == KEPT {
                    known.samples.pop_front();
                }
                known.samples.push_back(Sample { at_s, took_ms });
            }
        }
    }

    pub(crate) fn events(&self) -> &BTreeMap<&'static str, Event> {
        &self.events
    }

    /// Forgets one event (or all); returns how many were known.
    pub(crate) fn reset(&mut self, name: Option<&str>) -> usize {
        let before = self.events.len();
        match name {
            Some(name) => self.events.retain(|event, _| *event != name),
            None => self.events.clear(),
        }
        before - self.events.len()
    }
}
