//! A hash of an import: DEL, HSET with some fields at a time, and PEXPIREAT, which every server knows. Fields
//! that expire take HPEXPIREAT, which servers know since Redis 7.4; one that does not refuses the key.
//!
//! Others may see a part of a hash until all of it is written. A hash of any size takes the memory of one
//! batch, but in a cluster, where its requests may have to be sent again to another node.

use resp::format_i64;

use super::lanes::Lanes;
use crate::limits::{IMPORT_BATCH_BYTES, IMPORT_BATCH_FIELDS};

/// A hash whose fields come.
pub(super) struct Hash {
    /// The lane of its key.
    pub(super) at: usize,
    expiry_ms: Option<i64>,
    /// HSET and its arguments so far.
    words: Vec<Vec<u8>>,
    bytes: usize,
    /// Those of the fields that expire, and when.
    timed: Vec<(Vec<u8>, u64)>,
}

impl Hash {
    /// The hash of a key, which has been begun on a lane.
    pub(super) fn new(at: usize, key: &[u8], expiry_ms: Option<i64>) -> Hash {
        Hash {
            at,
            expiry_ms,
            words: vec![b"HSET".to_vec(), key.to_vec()],
            bytes: key.len(),
            timed: Vec::new(),
        }
    }

    /// Adds a field. Whether there are enough for a request.
    pub(super) fn add(&mut self, field: &[u8], value: &[u8], expiry_ms: Option<u64>) -> bool {
        if let Some(expiry) = expiry_ms {
            self.timed.push((field.to_vec(), expiry));
        }
        self.words.extend([field.to_vec(), value.to_vec()]);
        self.bytes += field.len() + value.len();
        self.words.len() >= 2 * IMPORT_BATCH_FIELDS || self.bytes >= IMPORT_BATCH_BYTES
    }

    /// Queues the fields that were added.
    pub(super) fn queue_fields(&mut self, lanes: &mut Lanes) {
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
        self.queue_fields(lanes);
        if let Some(expiry) = self.expiry_ms {
            let mut digits = [0; resp::number::INTEGER_TEXT_LEN];
            let number = format_i64(expiry, &mut digits);
            lanes.queue_for_key(self.at, &[b"PEXPIREAT", &self.words[1][..], number]);
        }
    }
}
