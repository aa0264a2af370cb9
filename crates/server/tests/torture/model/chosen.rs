//! IDs of entries that a server chooses, and those that requests name because replies have told of them.

use std::collections::VecDeque;

use super::{Model, command_name};
use crate::support::Value;
use crate::torture::script::{Arg, Request};
use crate::torture::streams::Id;
use crate::torture::values::{Data, Span};

/// The IDs that a server chooses for entries: those that the reply of a request tells, in order, or of a
/// request without a reply, IDs that stand for them. Of an entry that had gone before anybody saw it none
/// is known, and any will do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) told: Option<VecDeque<Option<Id>>>,
    /// The reply tells also of entries that were there with an idempotent ID.
    pub(crate) tells_duplicates: bool,
    /// How many stand for others, so far.
    pub(crate) unknown: u64,
}

impl Chosen {
    /// The next one after the last ID of a stream, of a request that ran in some time; none: the reply told
    /// of no entry, or of an ID that a server would not choose.
    pub(crate) fn next(&mut self, last: Id, at: Span) -> Option<Id> {
        let Some(told) = &mut self.told else {
            self.unknown += 1;
            return Some(Id::unknown(self.unknown, at.least));
        };
        match told.pop_front()? {
            Some(id) => Some(id).filter(|&id| may_choose(last, at, id)),
            None => Some(Id {
                ms: last.ms,
                seq: last.seq + 1,
            }),
        }
    }

    /// The ID of an entry that was there with an idempotent ID, as the reply tells it; `entry`: as far as it
    /// is known.
    pub(crate) fn duplicate(&mut self, entry: Option<Id>) -> Option<Id> {
        match &mut self.told {
            Some(told) if self.tells_duplicates => told.pop_front().flatten(),
            _ => entry,
        }
    }

    /// Whether the next ID is that of the server.
    pub(crate) fn is_next_known(&self) -> bool {
        let told = self.told.as_ref();
        told.is_none_or(|told| matches!(told.front(), Some(Some(_))))
    }
}

/// Whether a server that ran in some time may choose an ID after the last one.
fn may_choose(last: Id, at: Span, id: Id) -> bool {
    let is_of_now = id.seq == 0 && id.ms > last.ms && (at.least..=at.most).contains(&id.ms);
    let is_next = id.ms == last.ms && id.seq == last.seq + 1 && last.ms >= at.least;
    is_of_now || is_next
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
    pub(crate) fn ids_of(&self, request: &Request, reply: &Value) -> VecDeque<Option<Id>> {
        let chooses = |request: &Request| {
            command_name(request) == "xadd" && request.contains(&Arg::word("*"))
        };
        match (&self.queue, reply) {
            (Some(queue), Value::Array(replies)) if command_name(request) == "exec" => {
                let pairs = queue.requests.iter().zip(replies);
                let ids = pairs.filter(|(request, _)| chooses(request));
                let ids = ids.filter_map(|(_, reply)| Id::of(reply));
                ids.map(Some).collect()
            }
            (None, _) if chooses(request) => Id::of(reply).into_iter().map(Some).collect(),
            _ => VecDeque::new(),
        }
    }
}
