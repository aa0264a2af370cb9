//! Requests of the hash commands.

use super::request::{Request, request};
use super::stream::Generator;
use super::words::Arena;

/// Fields in use: few, so that requests meet; of the large arena many, so that hashes pass every limit.
const SMALL_FIELDS: u16 = 12;
const LARGE_FIELDS: u16 = 2000;
/// Pairs of the longest HSET.
const PAIRS_MAX: usize = 300;

impl Generator {
    /// A request of one of the hash commands.
    pub(crate) fn hash_request(&mut self) -> Request {
        match self.rng.u8(0..60) {
            0..=13 => {
                let name = self.pick(&["HSET", "HSET", "HSET", "HMSET"]);
                request(name)
                    .word(self.hash_key())
                    .words(self.field_pairs())
            }
            14..=16 => request("HSETNX")
                .word(self.hash_key())
                .word(self.field())
                .word(self.hash_value()),
            17..=23 => request("HDEL").word(self.hash_key()).words(self.fields()),
            24..=27 => request("HGET").word(self.hash_key()).word(self.field()),
            28..=30 => request("HMGET").word(self.hash_key()).words(self.fields()),
            31..=36 => {
                let name = self.pick(&["HGETALL", "HGETALL", "HKEYS", "HVALS", "HLEN"]);
                request(name).word(self.hash_key())
            }
            37..=40 => {
                let name = self.pick(&["HSTRLEN", "HEXISTS"]);
                request(name).word(self.hash_key()).word(self.field())
            }
            41..=46 => request("HINCRBY")
                .word(self.hash_key())
                .word(self.field())
                .word(self.integer()),
            47..=51 => request("HINCRBYFLOAT")
                .word(self.hash_key())
                .word(self.field())
                .word(self.float()),
            52..=55 => self.hrandfield(),
            _ => self.hscan(),
        }
    }

    /// A key of the current arena that mostly holds a hash.
    pub(crate) fn hash_key(&mut self) -> Vec<u8> {
        match (self.arena, self.chance(15)) {
            (_, true) => self.key(),
            (Arena::Small, false) => format!("h{}", self.rng.u8(0..6)).into_bytes(),
            (Arena::Large, false) => format!("g{}", self.rng.u8(0..3)).into_bytes(),
        }
    }

    fn field(&mut self) -> Vec<u8> {
        if self.arena == Arena::Large {
            return format!("f{}", self.rng.u16(0..LARGE_FIELDS)).into_bytes();
        }
        match self.rng.u8(0..10) {
            0..=6 => format!("f{}", self.rng.u16(0..SMALL_FIELDS)).into_bytes(),
            7 | 8 => self.integer(),
            _ => self.value(),
        }
    }

    /// A value of a field: also in the large arena few of them are long.
    fn hash_value(&mut self) -> Vec<u8> {
        match self.arena == Arena::Large && self.chance(98) {
            true => format!("value {}", self.rng.u16(..)).into_bytes(),
            false => self.value(),
        }
    }

    /// How many fields a request names.
    fn field_count(&mut self) -> usize {
        match (self.arena, self.chance(10)) {
            (Arena::Small, _) => self.rng.usize(1..=4),
            (Arena::Large, false) => self.rng.usize(1..=20),
            (Arena::Large, true) => self.rng.usize(100..=PAIRS_MAX),
        }
    }

    fn fields(&mut self) -> Vec<Vec<u8>> {
        let count = self.field_count();
        (0..count).map(|_| self.field()).collect()
    }

    /// Fields and values in turn.
    fn field_pairs(&mut self) -> Vec<Vec<u8>> {
        let fields = self.fields();
        let with_value = |field| [field, self.hash_value()];
        fields.into_iter().flat_map(with_value).collect()
    }

    fn hrandfield(&mut self) -> Request {
        let mut hrandfield = request("HRANDFIELD").word(self.hash_key());
        if self.chance(80) {
            hrandfield = hrandfield.word(self.integer());
            if self.chance(40) {
                hrandfield = hrandfield.word(self.cased("WITHVALUES"));
            }
        }
        hrandfield
    }

    /// One call of HSCAN. As with SCAN, the walk over all pages is compared apart.
    fn hscan(&mut self) -> Request {
        let key = self.hash_key();
        let cursor = self.cursor();
        request("HSCAN")
            .word(key)
            .word(cursor)
            .words(self.hscan_options())
    }

    /// Options of HSCAN, mostly legal.
    pub(crate) fn hscan_options(&mut self) -> Vec<Vec<u8>> {
        let mut words = self.scan_options();
        // TYPE is an option of SCAN alone.
        if self.chance(90) {
            let mut pairs = words.chunks(2);
            let is_type = |pair: &[Vec<u8>]| pair[0].eq_ignore_ascii_case(b"TYPE");
            if pairs.any(is_type) {
                words.clear();
            }
        }
        words
    }
}
