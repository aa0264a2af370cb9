//! A stream of an import. Its groups come first, by a RESTORE of a stream that has them and no entries: so
//! it has the pending entries that are deleted, too, which no other command makes. Entries follow by XADD,
//! and XSETID says the rest.
//!
//! A stream that has entries and nothing else needs XADD alone, and a server of Redis 5; the others need one
//! of Redis 7.0. Memory holds the groups of one stream and a batch of its entries.

use rdb::{StreamGroups, StreamId, StreamPart, StreamState};

use super::lanes::Lanes;
use crate::limits::{IMPORT_BATCH_BYTES, IMPORT_BATCH_FIELDS};

/// A stream that comes part by part.
pub(super) struct Stream {
    groups: StreamGroups,
    /// The last entry that came, and how many have come.
    last: StreamId,
    len: u64,
    /// Requests that are not on their way, and bytes of them.
    requests: Vec<Vec<Vec<u8>>>,
    bytes: usize,
}

fn text(id: StreamId) -> Vec<u8> {
    id.to_string().into_bytes()
}

impl Stream {
    pub(super) fn new(groups: StreamGroups) -> Stream {
        Stream {
            groups,
            last: StreamId::default(),
            len: 0,
            requests: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds the next part. Whether there are enough requests to send them.
    pub(super) fn add(&mut self, key: &[u8], part: &StreamPart<'_>) -> bool {
        match part {
            StreamPart::Entry { id, fields } => {
                if self.len == 0 && !self.groups.groups().is_empty() {
                    // Entries have to be above the last ID, and it is near to theirs.
                    self.restore(
                        key,
                        &StreamState {
                            last: id.before(),
                            ..StreamState::default()
                        },
                    );
                }
                self.len += 1;
                self.last = *id;
                let mut words = vec![b"XADD".to_vec(), key.to_vec(), text(*id)];
                words.extend(fields.iter().map(<[u8]>::to_vec));
                self.push(words);
            }
            StreamPart::State(state) => self.state(key, state),
            // They are read before.
            StreamPart::Group { .. }
            | StreamPart::Pending { .. }
            | StreamPart::Consumer { .. }
            | StreamPart::Owned { .. } => {}
        }
        self.requests.len() >= IMPORT_BATCH_FIELDS || self.bytes >= IMPORT_BATCH_BYTES
    }

    fn state(&mut self, key: &[u8], state: &StreamState) {
        if self.len == 0 {
            return self.restore(key, state);
        }
        let made = StreamState {
            last: self.last,
            added: self.len,
            ..StreamState::default()
        };
        if (made.last, made.added, made.deleted) != (state.last, state.added, state.deleted) {
            self.push(vec![
                b"XSETID".to_vec(),
                key.to_vec(),
                text(state.last),
                b"ENTRIESADDED".to_vec(),
                state.added.to_string().into_bytes(),
                b"MAXDELETEDID".to_vec(),
                text(state.deleted),
            ]);
        }
    }

    fn restore(&mut self, key: &[u8], state: &StreamState) {
        let payload = self.groups.payload(state);
        let words = [b"RESTORE", key, b"0", &payload];
        self.push(words.map(<[u8]>::to_vec).to_vec());
    }

    fn push(&mut self, words: Vec<Vec<u8>>) {
        self.bytes += words.iter().map(Vec::len).sum::<usize>();
        self.requests.push(words);
    }

    /// Queues the requests for the lane of the key.
    pub(super) fn queue(&mut self, lanes: &mut Lanes, at: usize) {
        for words in self.requests.drain(..) {
            lanes.queue_for_key(at, &words);
        }
        self.bytes = 0;
    }
}
