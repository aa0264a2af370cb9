//! IDs of entries that a server chooses, and those that requests name because replies have told of them.

use std::collections::VecDeque;

use super::{Model, command_name};
use crate::support::Value;
use crate::torture::script::{Arg, Request};
use crate::torture::streams::Id;
use crate::torture::values::Data;

/// The IDs that a server chooses for entries: those that the reply of a request tells, in order, or of a
/// request without a reply, IDs that stand for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) told: Option<VecDeque<Id>>,
    /// How many stand for others, so far.
    pub(crate) unknown: u64,
}

impl Chosen {
    /// The next one, of a request that ran from a time on; none: the reply told of no entry.
    pub(crate) fn next(&mut self, from_ms: u64) -> Option<Id> {
        match &mut self.told {
            Some(told) => told.pop_front(),
            None => {
                self.unknown += 1;
                Some(Id::unknown(self.unknown, from_ms))
            }
        }
    }
}

impl Model {
    /// The ID of an entry of the stream that a request names; the last one has number 0.
    pub(super) fn known_id(&self, request: &Request, number: usize) -> Option<Id> {
        let data = |arg: &Arg| {
            self.keys
                .get(&(self.db, arg.bytes()))
                .map(|entry| &entry.data)
        };
        let stream = request.iter().skip(1).find_map(|arg| match data(arg)? {
            Data::Stream(stream) => Some(stream),
            _ => None,
        });
        stream?.entries.keys().rev().nth(number).copied()
    }

    /// The IDs that the reply of a request tells, and the server has chosen.
    pub(crate) fn ids_of(&self, request: &Request, reply: &Value) -> VecDeque<Id> {
        let chooses = |request: &Request| {
            command_name(request) == "xadd" && request.contains(&Arg::word("*"))
        };
        match (&self.queue, reply) {
            (Some((queue, _)), Value::Array(replies)) if command_name(request) == "exec" => {
                let pairs = queue.iter().zip(replies);
                let ids = pairs.filter(|(request, _)| chooses(request));
                ids.filter_map(|(_, reply)| Id::of(reply)).collect()
            }
            (None, _) if chooses(request) => Id::of(reply).into_iter().collect(),
            _ => VecDeque::new(),
        }
    }
}
