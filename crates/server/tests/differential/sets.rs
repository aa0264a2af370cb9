//! Requests of the set commands.

use super::request::{Request, request};
use super::stream::Generator;
use super::words::Arena;

/// Members in use: few, so that requests meet; of the large arena many, so that sets pass every limit.
const SMALL_MEMBERS: u16 = 12;
const LARGE_MEMBERS: u16 = 3000;
/// Members of the longest SADD.
const MEMBERS_MAX: usize = 400;
/// More members than any set has: SPOP takes all. Which one it takes of several is each server's own affair.
const ALL: &str = "9999999";

impl Generator {
    /// A request of one of the set commands.
    pub(crate) fn set_request(&mut self) -> Request {
        match self.rng.u8(0..60) {
            0..=15 => request("SADD").word(self.set_key()).words(self.members()),
            16..=22 => request("SREM").word(self.set_key()).words(self.members()),
            23..=26 => request("SMOVE")
                .word(self.set_key())
                .word(self.set_key())
                .word(self.member()),
            27..=30 => request("SISMEMBER")
                .word(self.set_key())
                .word(self.member()),
            31..=33 => request("SMISMEMBER")
                .word(self.set_key())
                .words(self.members()),
            34..=38 => {
                let name = self.pick(&["SMEMBERS", "SMEMBERS", "SCARD"]);
                request(name).word(self.set_key())
            }
            39..=43 => {
                let name = self.pick(&["SINTER", "SUNION", "SDIFF"]);
                request(name).words(self.set_keys())
            }
            44..=49 => {
                let name = self.pick(&["SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"]);
                request(name).word(self.set_key()).words(self.set_keys())
            }
            50 | 51 => {
                let keys = self.set_keys();
                let card = request("SINTERCARD")
                    .word(keys.len().to_string())
                    .words(keys);
                match self.chance(40) {
                    true => card.word(self.cased("LIMIT")).word(self.integer()),
                    false => card,
                }
            }
            52 => request("SPOP").word(self.set_key()).word(ALL),
            53..=56 => {
                let srandmember = request("SRANDMEMBER").word(self.set_key());
                match self.chance(80) {
                    true => srandmember.word(self.integer()),
                    false => srandmember,
                }
            }
            _ => {
                let sscan = request("SSCAN").word(self.set_key()).word("0");
                sscan.words(self.hscan_options())
            }
        }
    }

    /// A key of the current arena that mostly holds a set.
    pub(crate) fn set_key(&mut self) -> Vec<u8> {
        match (self.arena, self.chance(8)) {
            (_, true) => self.key(),
            (Arena::Small, false) => format!("t{}", self.rng.u8(0..6)).into_bytes(),
            (Arena::Large, false) => format!("u{}", self.rng.u8(0..4)).into_bytes(),
        }
    }

    fn set_keys(&mut self) -> Vec<Vec<u8>> {
        let count = self.rng.usize(1..=4);
        (0..count).map(|_| self.set_key()).collect()
    }

    fn member(&mut self) -> Vec<u8> {
        if self.arena == Arena::Large {
            let number = self.rng.u16(0..LARGE_MEMBERS);
            return match self.chance(70) {
                true => number.to_string().into_bytes(),
                false => format!("m{number}").into_bytes(),
            };
        }
        match self.rng.u8(0..10) {
            0..=3 => format!("m{}", self.rng.u16(0..SMALL_MEMBERS)).into_bytes(),
            4..=6 => self.rng.u16(0..SMALL_MEMBERS).to_string().into_bytes(),
            7 | 8 => self.integer(),
            _ => self.value(),
        }
    }

    fn members(&mut self) -> Vec<Vec<u8>> {
        let count = match (self.arena, self.chance(10)) {
            (Arena::Small, _) => self.rng.usize(1..=4),
            (Arena::Large, false) => self.rng.usize(1..=20),
            (Arena::Large, true) => self.rng.usize(100..=MEMBERS_MAX),
        };
        (0..count).map(|_| self.member()).collect()
    }
}
