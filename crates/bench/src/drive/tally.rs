//! Requests that are under way on a connection, and what their replies are counted as.
//!
//! Invariant: replies come in the order of requests, so the front of the queue is what is answered next.

use super::clock::{self, Ticks, now};
use super::counts::Slice;
use crate::load::workload::Shape;
use crate::wire::link::{NO_AUTH, error_text};
use crate::wire::replies::Kind;
use std::collections::VecDeque;

/// Requests of one shape that were sent at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    at: Ticks,
    count: u32,
    shape: u32,
}

/// Adds a request to those of its kind that were sent with it.
#[inline]
pub(super) fn enqueue(sent: &mut VecDeque<Sent>, shape: u32, at: Ticks) {
    match sent.back_mut() {
        Some(last) if last.at == at && last.shape == shape => last.count += 1,
        _ => sent.push_back(Sent {
            at,
            count: 1,
            shape,
        }),
    }
}

/// Notes that what was written is being sent, and says when.
#[inline]
pub(super) fn stamp(sent: &mut VecDeque<Sent>) -> Ticks {
    let now = now();
    for batch in sent {
        batch.at = now;
    }
    now
}

/// Where replies are counted while they are read.
pub(super) struct Tally<'a> {
    pub(super) shapes: &'a [Shape],
    pub(super) slice: &'a mut Slice,
    /// The node of a cluster that answers.
    pub(super) node: Option<usize>,
    /// A reply named another node.
    pub(super) is_moved: bool,
    pub(super) sent: &'a mut VecDeque<Sent>,
    pub(super) owed: &'a mut u32,
    /// How many requests have got their last reply.
    pub(super) answered: usize,
    /// There was a reply that nothing had asked for.
    pub(super) unasked: bool,
    /// An error reply that every further request would get.
    pub(super) refusal: Option<String>,
    /// Error replies are to be shown.
    pub(super) shows_errors: bool,
    /// The first of them.
    pub(super) shown: Option<String>,
    pub(super) now: Ticks,
    pub(super) measure_from: Ticks,
}

impl Tally<'_> {
    #[inline]
    pub(super) fn count(&mut self, kind: Kind, mut count: u32, bytes: &[u8]) {
        if kind == Kind::Push {
            return;
        }
        if self.now == 0 {
            // Once per read: all replies of it came at the same time.
            self.now = now();
        }
        while count > 0 {
            let Some(first) = self.sent.front_mut() else {
                self.unasked = true;
                return;
            };
            let shape = &self.shapes[first.shape as usize];
            if shape.replies > 1 {
                count -= 1;
                self.note(shape.row, first_at(self.sent), kind, 1, bytes);
                *self.owed = if *self.owed == 0 {
                    shape.replies
                } else {
                    *self.owed
                } - 1;
                if *self.owed == 0 {
                    self.complete(shape.row, 1);
                }
                continue;
            }
            let taken = count.min(first.count);
            let at = first.at;
            count -= taken;
            self.note(shape.row, at, kind, taken, bytes);
            self.complete(shape.row, taken);
        }
    }

    /// Counts what replies say, whether or not they complete a request.
    #[inline]
    fn note(&mut self, row: usize, at: Ticks, kind: Kind, count: u32, bytes: &[u8]) {
        if kind == Kind::Value {
            return;
        }
        if kind == Kind::Error {
            self.hear(bytes);
        }
        if at < self.measure_from {
            return;
        }
        if let Some(node) = self.node {
            self.note_at(node, kind, count, bytes);
        }
        let row = &mut self.slice.rows[row];
        match kind {
            Kind::Nil => row.misses += u64::from(count),
            Kind::Error => {
                row.errors += u64::from(count);
                row.first_error.get_or_insert_with(|| error_text(bytes));
            }
            Kind::Value | Kind::Push => {}
        }
    }

    /// The same for a node of a cluster.
    fn note_at(&mut self, node: usize, kind: Kind, count: u32, bytes: &[u8]) {
        let row = &mut self.slice.nodes[node];
        match kind {
            Kind::Nil => row.misses += u64::from(count),
            Kind::Error => {
                row.errors += u64::from(count);
                if is_redirection(bytes) {
                    self.slice.moved += u64::from(count);
                }
            }
            Kind::Value | Kind::Push => {}
        }
    }

    /// Looks at an error reply beyond counting it.
    fn hear(&mut self, bytes: &[u8]) {
        self.is_moved |= self.node.is_some() && is_redirection(bytes);
        if self.shows_errors && self.shown.is_none() {
            self.shown = Some(error_text(bytes));
        }
        if self.refusal.is_none() && bytes.get(1..).is_some_and(is_refusal) {
            self.refusal = Some(error_text(bytes));
        }
    }

    /// Counts requests that have got their last reply.
    #[inline]
    fn complete(&mut self, row: usize, count: u32) {
        let Some(first) = self.sent.front_mut() else {
            return;
        };
        if first.at >= self.measure_from {
            let latency_ns = clock::ns_between(first.at, self.now);
            self.slice.rows[row].record(latency_ns, u64::from(count));
            if let Some(node) = self.node {
                self.slice.nodes[node].record(latency_ns, u64::from(count));
            }
        }
        first.count -= count;
        if first.count == 0 {
            self.sent.pop_front();
        }
        self.answered += count as usize;
    }
}

fn is_redirection(bytes: &[u8]) -> bool {
    bytes
        .get(1..)
        .is_some_and(|text| text.starts_with(b"MOVED ") || text.starts_with(b"ASK "))
}

fn is_refusal(text: &[u8]) -> bool {
    text.starts_with(NO_AUTH.as_bytes())
}

fn first_at(sent: &VecDeque<Sent>) -> Ticks {
    sent.front().map_or(0, |first| first.at)
}
