//! Requests of the list commands that do not wait.

use super::request::{Request, request};
use super::stream::Generator;
use super::words::Arena;

/// Elements in use: few, so that some are there several times.
const ELEMENTS: u16 = 12;
/// Elements of the longest push.
const ELEMENTS_MAX: usize = 400;

impl Generator {
    /// A request of one of the list commands.
    pub(crate) fn list_request(&mut self) -> Request {
        match self.rng.u8(0..70) {
            0..=15 => {
                let name = self.pick(&["LPUSH", "RPUSH", "RPUSH", "LPUSHX", "RPUSHX"]);
                request(name).word(self.list_key()).words(self.elements())
            }
            16..=22 => {
                let name = self.pick(&["LPOP", "RPOP"]);
                let pop = request(name).word(self.list_key());
                match self.chance(40) {
                    true => pop.word(self.integer()),
                    false => pop,
                }
            }
            23..=26 => {
                let name = self.pick(&["LINDEX", "LINDEX", "LLEN"]);
                let read = request(name).word(self.list_key());
                match name {
                    "LLEN" => read,
                    _ => read.word(self.integer()),
                }
            }
            27..=33 => self.ranged("LRANGE"),
            34..=36 => self.ranged("LTRIM"),
            37..=40 => {
                let lset = request("LSET").word(self.list_key());
                let index = match self.chance(60) {
                    true => self.rng.i8(-3..3).to_string().into_bytes(),
                    false => self.integer(),
                };
                lset.word(index).word(self.element())
            }
            41..=46 => {
                let linsert = request("LINSERT").word(self.list_key());
                let place = self.pick(&["BEFORE", "AFTER"]);
                let linsert = linsert.word(self.cased(place));
                linsert.word(self.element()).word(self.element())
            }
            47..=51 => {
                let lrem = request("LREM").word(self.list_key());
                lrem.word(self.integer()).word(self.element())
            }
            52..=56 => {
                let mut lpos = request("LPOS").word(self.list_key()).word(self.element());
                for option in ["RANK", "COUNT", "MAXLEN"] {
                    if self.chance(30) {
                        lpos = lpos.word(self.cased(option)).word(self.integer());
                    }
                }
                lpos
            }
            57..=61 => {
                let lmove = request("LMOVE").word(self.list_key());
                lmove
                    .word(self.list_key())
                    .word(self.end())
                    .word(self.end())
            }
            62..=64 => request("RPOPLPUSH")
                .word(self.list_key())
                .word(self.list_key()),
            _ => {
                let count = self.rng.usize(1..=3);
                let keys: Vec<_> = (0..count).map(|_| self.list_key()).collect();
                let lmpop = request("LMPOP").word(count.to_string()).words(keys);
                let lmpop = lmpop.word(self.end());
                match self.chance(40) {
                    true => lmpop.word(self.cased("COUNT")).word(self.integer()),
                    false => lmpop,
                }
            }
        }
    }

    fn ranged(&mut self, name: &str) -> Request {
        let ranged = request(name).word(self.list_key());
        ranged.word(self.integer()).word(self.integer())
    }

    fn end(&mut self) -> Vec<u8> {
        let end = self.pick(&["LEFT", "RIGHT"]);
        self.cased(end)
    }

    /// A key of the current arena that mostly holds a list.
    pub(crate) fn list_key(&mut self) -> Vec<u8> {
        match (self.arena, self.chance(8)) {
            (_, true) => self.key(),
            (Arena::Small, false) => format!("l{}", self.rng.u8(0..6)).into_bytes(),
            (Arena::Large, false) => format!("m{}", self.rng.u8(0..4)).into_bytes(),
        }
    }

    fn element(&mut self) -> Vec<u8> {
        match self.rng.u8(0..10) {
            0..=3 => format!("e{}", self.rng.u16(0..ELEMENTS)).into_bytes(),
            4..=6 => self.rng.u16(0..ELEMENTS).to_string().into_bytes(),
            7 | 8 => self.integer(),
            _ => self.value(),
        }
    }

    fn elements(&mut self) -> Vec<Vec<u8>> {
        let count = match (self.arena, self.chance(10)) {
            (Arena::Small, _) => self.rng.usize(1..=4),
            (Arena::Large, false) => self.rng.usize(1..=20),
            (Arena::Large, true) => self.rng.usize(100..=ELEMENTS_MAX),
        };
        // One long element is enough.
        let long = self.element();
        let rest = (1..count).map(|_| format!("e{}", self.rng.u16(0..ELEMENTS)).into_bytes());
        let mut elements: Vec<_> = rest.collect();
        elements.push(long);
        elements
    }
}
