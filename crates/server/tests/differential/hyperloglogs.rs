//! Requests of the commands of HyperLogLogs. GET shows the bytes.

use super::request::{Request, request};
use super::stream::Generator;
use super::words::Arena;

/// Elements in use, and the most that are added at once.
const ELEMENTS: u16 = 3_000;
const ELEMENTS_MAX: usize = 400;

impl Generator {
    /// A request of one of these commands.
    pub(crate) fn hyperloglog_request(&mut self) -> Request {
        match self.rng.u8(0..20) {
            0..=8 => {
                let count = match (self.arena, self.chance(10)) {
                    (Arena::Small, _) => self.rng.usize(0..=4),
                    (Arena::Large, false) => self.rng.usize(0..=20),
                    (Arena::Large, true) => self.rng.usize(100..=ELEMENTS_MAX),
                };
                let elements: Vec<_> = (0..count).map(|_| self.counted()).collect();
                let key = self.hyperloglog_key();
                request("PFADD").word(key).words(elements)
            }
            9..=12 => request("PFCOUNT").words(self.hyperloglog_keys()),
            13..=15 => request("PFMERGE").words(self.hyperloglog_keys()),
            16..=17 => request("GET").word(self.hyperloglog_key()),
            _ => {
                let name = self.pick(&["DECODE", "ENCODING", "ENCODING", "TODENSE"]);
                let pfdebug = request("PFDEBUG").word(self.cased(name));
                pfdebug.word(self.hyperloglog_key())
            }
        }
    }

    fn hyperloglog_keys(&mut self) -> Vec<Vec<u8>> {
        let count = self.rng.usize(1..=3);
        (0..count).map(|_| self.hyperloglog_key()).collect()
    }

    /// A key of the current arena that mostly holds a HyperLogLog.
    fn hyperloglog_key(&mut self) -> Vec<u8> {
        match (self.arena, self.chance(8)) {
            (_, true) => self.key(),
            (Arena::Small, false) => format!("y{}", self.rng.u8(0..5)).into_bytes(),
            (Arena::Large, false) => format!("v{}", self.rng.u8(0..4)).into_bytes(),
        }
    }

    fn counted(&mut self) -> Vec<u8> {
        match self.rng.u8(0..10) {
            0 => self.value(),
            _ => self.rng.u16(0..ELEMENTS).to_string().into_bytes(),
        }
    }
}
