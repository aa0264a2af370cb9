//! Latency monitor: samples of slow events by kind, for LATENCY LATEST and HISTORY.
//!
//! An event is kept if it took at least `latency-monitor-threshold` milliseconds.

use std::collections::{BTreeMap, VecDeque};

/// Samples kept of each kind.
const KEPT: usize = 160;

/// One slow event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Time, Unix s.
    pub(crate) at_s: i64,
    pub(crate) took_ms: u64,
}

/// Samples of one kind of event.
#[derive(Default)]
pub(crate) struct Event {
    pub(crate) samples: VecDeque<Sample>,
    pub(crate) worst_ms: u64,
}

/// Samples by kind of event.
#[derive(Default)]
pub(crate) struct LatencyMonitor {
    events: BTreeMap<&'static str, Event>,
}

impl LatencyMonitor {
    /// Adds an event. Several in the same second become one sample with the longest time.
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

    /// Removes one kind of event, or all. Returns the number of removed kinds.
    pub(crate) fn reset(&mut self, name: Option<&str>) -> usize {
        let before = self.events.len();
        match name {
            Some(name) => self.events.retain(|event, _| *event != name),
            None => self.events.clear(),
        }
        before - self.events.len()
    }
}
