//! A hash, a set, sorted or not, a list or a stream of an import: DEL, HSET, SADD, ZADD or RPUSH with some
//! items at a time (of a stream, see [`super::stream`]), and PEXPIREAT, which every server knows. Fields that
//! expire take HPEXPIREAT, which servers know since Redis 7.4; one that does not refuses the key.
//!
//! Others may see a part of it until all of it is written. A collection of any size takes the memory of one
//! batch, but in a cluster, where its requests may have to be sent again to another node.

use rdb::StreamPart;
use resp::format_i64;
use resp::number::{DOUBLE_TEXT_LEN, format_f64};

use super::lanes::Lanes;
use super::stream::Stream;
use crate::limits::{IMPORT_BATCH_BYTES, IMPORT_BATCH_FIELDS};

/// A collection whose items come.
pub(super) struct Collection {
    /// The lane of its key.
    pub(super) at: usize,
    expiry_ms: Option<i64>,
    /// HSET, SADD, ZADD or RPUSH and its arguments so far; of a stream no more than the key.
    words: Vec<Vec<u8>>,
    bytes: usize,
    /// Those of the fields that expire, and when.
    timed: Vec<(Vec<u8>, u64)>,
    stream: Option<Stream>,
}

impl Collection {
    /// The collection of a key, which has been begun on a lane. `stream` is there if it is one.
    pub(super) fn new(
        at: usize,
        kind: rdb::Collection,
        key: &[u8],
        expiry_ms: Option<i64>,
        stream: Option<Stream>,
    ) -> Collection {
        let command: &[u8] = match kind {
            rdb::Collection::Set => b"SADD",
            rdb::Collection::SortedSet => b"ZADD",
            rdb::Collection::List => b"RPUSH",
            rdb::Collection::Hash => b"HSET",
            rdb::Collection::Stream => b"XADD",
        };
        Collection {
            at,
            expiry_ms,
            words: vec![command.to_vec(), key.to_vec()],
            bytes: key.len(),
            timed: Vec::new(),
            stream,
        }
    }

    /// Adds a part of a stream. Whether there are enough for a request.
    pub(super) fn add_part(&mut self, part: &StreamPart<'_>) -> bool {
        let stream = self.stream.as_mut();
        stream.is_some_and(|stream| stream.add(&self.words[1], part))
    }

    /// Adds a field. Whether there are enough for a request.
    pub(super) fn add(&mut self, field: &[u8], value: &[u8], expiry_ms: Option<u64>) -> bool {
        if let Some(expiry) = expiry_ms {
            self.timed.push((field.to_vec(), expiry));
        }
        self.words.extend([field.to_vec(), value.to_vec()]);
        self.bytes += field.len() + value.len();
        self.is_enough()
    }

    /// Adds a member or an element. Whether there are enough for a request.
    pub(super) fn add_member(&mut self, member: &[u8]) -> bool {
        self.words.push(member.to_vec());
        self.bytes += member.len();
        self.is_enough()
    }

    /// Adds a member with its score. Whether there are enough for a request.
    pub(super) fn add_scored(&mut self, member: &[u8], score: f64) -> bool {
        let mut digits = [0; DOUBLE_TEXT_LEN];
        let score = format_f64(score, &mut digits);
        self.words.extend([score.to_vec(), member.to_vec()]);
        self.bytes += member.len() + score.len();
        self.is_enough()
    }

    fn is_enough(&self) -> bool {
        self.words.len() >= 2 * IMPORT_BATCH_FIELDS || self.bytes >= IMPORT_BATCH_BYTES
    }

    /// Queues the items that were added.
    pub(super) fn queue_items(&mut self, lanes: &mut Lanes) {
        if let Some(stream) = &mut self.stream {
            stream.queue(lanes, self.at);
        }
        if self.words.len() > 2 {
            lanes.queue_for_key(self.at, &self.words);
            self.words.truncate(2);
            self.bytes = self.words[1].len();
        }
        let timed = std::mem::take(&mut self.timed);
        for one_time in timed.chunk_by(|(_, one), (_, other)| one == other) {
            let (time, count) = (one_time[0].1.to_string(), one_time.len().to_string());
            let mut words: Vec<&[u8]> = vec![b"HPEXPIREAT", &self.words[1], time.as_bytes()];
            words.extend([&b"FIELDS"[..], count.as_bytes()]);
            words.extend(one_time.iter().map(|(field, _)| &field[..]));
            lanes.queue_for_key(self.at, &words);
        }
    }

    /// Queues what is left, and the expiry.
    pub(super) fn queue_end(&mut self, lanes: &mut Lanes) {
        self.queue_items(lanes);
        if let Some(expiry) = self.expiry_ms {
            let mut digits = [0; resp::number::INTEGER_TEXT_LEN];
            let number = format_i64(expiry, &mut digits);
            lanes.queue_for_key(self.at, &[b"PEXPIREAT", &self.words[1][..], number]);
        }
    }
}
