//! Requests of the string commands.

use super::request::{Request, request};
use super::stream::Generator;

impl Generator {
    /// A request of one of the string commands.
    pub(crate) fn string_request(&mut self) -> Request {
        match self.rng.u8(0..60) {
            0..=9 => self.set(),
            10..=14 => request("GET").word(self.key()),
            15..=17 => self.getex(),
            18 => request("GETDEL").word(self.key()),
            19 => request("GETSET").word(self.key()).word(self.value()),
            20 => self.setex(),
            21 => request("SETNX").word(self.key()).word(self.value()),
            22..=24 => {
                let name = self.pick(&["MSET", "MSET", "MSETNX"]);
                request(name).words(self.pairs())
            }
            25 | 26 => request("MGET").words(self.keys(1, 5)),
            27..=30 => request("APPEND").word(self.key()).word(self.value()),
            31 | 32 => request("STRLEN").word(self.key()),
            33..=36 => {
                let name = self.pick(&["GETRANGE", "GETRANGE", "SUBSTR"]);
                request(name)
                    .word(self.key())
                    .word(self.offset())
                    .word(self.offset())
            }
            37..=39 => request("SETRANGE")
                .word(self.key())
                .word(self.offset())
                .word(self.value()),
            40..=44 => {
                let name = self.pick(&["INCR", "DECR"]);
                request(name).word(self.counter())
            }
            45..=49 => {
                let name = self.pick(&["INCRBY", "DECRBY"]);
                request(name).word(self.counter()).word(self.integer())
            }
            50..=55 => request("INCRBYFLOAT")
                .word(self.counter())
                .word(self.float()),
            _ => self.lcs(),
        }
    }

    /// SET with any flags, also those that exclude each other.
    fn set(&mut self) -> Request {
        let mut set = request("SET").word(self.key()).word(self.value());
        let options = self.pick(&[0, 0, 0, 1, 1, 1, 2, 2, 3, 4]);
        for _ in 0..options {
            let option = self.pick(&["NX", "XX", "GET", "KEEPTTL", "EX", "PX", "EXAT", "PXAT"]);
            set = set.word(self.cased(option)).words(self.option_time(option));
        }
        set
    }

    /// What follows an expiry option; nothing after other options, and rarely nothing after these.
    fn option_time(&mut self, option: &str) -> Option<Vec<u8>> {
        if self.chance(3) {
            return None;
        }
        match option {
            "EX" => Some(self.lifetime(1)),
            "PX" => Some(self.lifetime(1000)),
            "EXAT" => Some(self.moment(1)),
            "PXAT" => Some(self.moment(1000)),
            _ => None,
        }
    }

    fn getex(&mut self) -> Request {
        let mut getex = request("GETEX").word(self.key());
        let options = self.pick(&[0, 1, 1, 1, 1, 2]);
        for _ in 0..options {
            let option = self.pick(&["PERSIST", "EX", "PX", "EXAT", "PXAT", "KEEPTTL"]);
            getex = getex
                .word(self.cased(option))
                .words(self.option_time(option));
        }
        getex
    }

    fn setex(&mut self) -> Request {
        let (name, per_second) = self.pick(&[("SETEX", 1), ("PSETEX", 1000)]);
        request(name)
            .word(self.key())
            .word(self.lifetime(per_second))
            .word(self.value())
    }

    /// Keys and values in turn.
    fn pairs(&mut self) -> Vec<Vec<u8>> {
        let keys = self.keys(1, 4);
        keys.into_iter()
            .flat_map(|key| [key, self.value()])
            .collect()
    }

    fn lcs(&mut self) -> Request {
        // Its cost is the product of both lengths: only short values, whatever the current arena.
        self.arena = super::words::Arena::Small;
        let mut lcs = request("LCS").words(self.keys(2, 2));
        let options = self.pick(&[0, 1, 1, 1, 2, 3]);
        for _ in 0..options {
            let option = self.pick(&["LEN", "IDX", "IDX", "MINMATCHLEN", "WITHMATCHLEN"]);
            lcs = lcs.word(self.cased(option));
            if option == "MINMATCHLEN" {
                lcs = lcs.word(self.integer());
            }
        }
        lcs
    }
}
