//! Requests of the sorted set commands. Scores are quarters of few digits, or infinite: both servers write
//! them alike. Members that all have one score, for ranges by name, have keys of their own.

use super::request::{Request, request};
use super::stream::Generator;
use super::words::Arena;

/// Members in use: few, so that requests meet; of the large arena many, so that sets pass every limit.
const SMALL_MEMBERS: u16 = 12;
const LARGE_MEMBERS: u16 = 3000;
/// Members of the longest ZADD.
const MEMBERS_MAX: usize = 300;

impl Generator {
    /// A request of one of the sorted set commands.
    pub(crate) fn sorted_set_request(&mut self) -> Request {
        let key = self.sorted_set_key();
        match self.rng.u8(0..70) {
            0..=14 => self.zadd(key),
            15..=17 => {
                let score = self.score();
                request("ZINCRBY")
                    .word(key)
                    .word(score)
                    .word(self.scored_member())
            }
            18..=21 => {
                let count = self.rng.usize(1..=6);
                let members: Vec<_> = (0..count).map(|_| self.scored_member()).collect();
                request("ZREM").word(key).words(members)
            }
            22..=24 => {
                let name = self.pick(&["ZSCORE", "ZRANK", "ZREVRANK", "ZMSCORE"]);
                request(name).word(key).word(self.scored_member())
            }
            25 | 26 => request("ZCARD").word(key),
            27..=36 => self.range(key),
            37 | 38 => {
                let (min, max) = (self.bound(), self.bound());
                request("ZCOUNT").word(key).word(min).word(max)
            }
            39 => {
                let (min, max) = (self.bound(), self.bound());
                request("ZREMRANGEBYSCORE").word(key).word(min).word(max)
            }
            40 => {
                let (start, stop) = (self.rank(), self.rank());
                request("ZREMRANGEBYRANK").word(key).word(start).word(stop)
            }
            41..=43 => {
                let pop = request(self.pick(&["ZPOPMIN", "ZPOPMAX"])).word(key);
                match self.chance(50) {
                    true => pop.word(self.integer()),
                    false => pop,
                }
            }
            44 => {
                let side = self.pick(&["MIN", "MAX"]);
                let pop = request("ZMPOP")
                    .word("2")
                    .word(key)
                    .word(self.sorted_set_key());
                pop.word(self.cased(side))
            }
            45..=47 => {
                let (start, stop) = (self.rank(), self.rank());
                let store = request("ZRANGESTORE").word(self.sorted_set_key()).word(key);
                store.word(start).word(stop)
            }
            48..=55 => self.combination(key),
            56..=63 => self.by_name(),
            64..=66 => {
                let random = request("ZRANDMEMBER").word(key);
                match self.chance(80) {
                    true => random.word(self.integer()),
                    false => random,
                }
            }
            _ => request("ZSCAN").word(key).word("0"),
        }
    }

    fn zadd(&mut self, key: Vec<u8>) -> Request {
        let mut words = Vec::new();
        for option in ["NX", "XX", "GT", "LT", "CH", "INCR"] {
            if self.chance(10) {
                words.push(self.cased(option));
            }
        }
        let count = match (self.arena, self.chance(10)) {
            (Arena::Small, _) => self.rng.usize(1..=4),
            (Arena::Large, false) => self.rng.usize(1..=20),
            (Arena::Large, true) => self.rng.usize(100..=MEMBERS_MAX),
        };
        for _ in 0..count {
            words.push(self.score());
            words.push(self.scored_member());
        }
        request("ZADD").word(key).words(words)
    }

    fn range(&mut self, key: Vec<u8>) -> Request {
        let mut words = vec![key];
        let name = self.pick(&[
            "ZRANGE",
            "ZRANGE",
            "ZREVRANGE",
            "ZRANGEBYSCORE",
            "ZREVRANGEBYSCORE",
        ]);
        let by_score = name.ends_with("BYSCORE") || name == "ZRANGE" && self.chance(40);
        for _ in 0..2 {
            words.push(if by_score { self.bound() } else { self.rank() });
        }
        if by_score && name == "ZRANGE" {
            words.push(self.cased("BYSCORE"));
        }
        if name == "ZRANGE" && self.chance(40) {
            words.push(self.cased("REV"));
        }
        if by_score && self.chance(40) {
            words.extend([self.cased("LIMIT"), self.rank(), self.rank()]);
        }
        if self.chance(50) {
            words.push(self.cased("WITHSCORES"));
        }
        request(name).words(words)
    }

    fn combination(&mut self, key: Vec<u8>) -> Request {
        let name = self.pick(&["ZUNION", "ZINTER", "ZDIFF", "ZINTERCARD"]);
        let stores = name != "ZINTERCARD" && self.chance(50);
        let count = self.rng.usize(1..=3);
        let mut words = Vec::new();
        if stores {
            words.push(key);
        }
        words.push(count.to_string().into_bytes());
        for _ in 0..count {
            words.push(match self.chance(25) {
                true => self.set_key(),
                false => self.sorted_set_key(),
            });
        }
        if matches!(name, "ZUNION" | "ZINTER") {
            if self.chance(40) {
                words.push(self.cased("WEIGHTS"));
                words.extend((0..count).map(|number| vec![b'1' + number as u8]));
            }
            if self.chance(40) {
                let aggregate = self.pick(&["SUM", "MIN", "MAX"]);
                words.extend([self.cased("AGGREGATE"), self.cased(aggregate)]);
            }
        }
        if !stores && name != "ZINTERCARD" && self.chance(50) {
            words.push(self.cased("WITHSCORES"));
        }
        match stores {
            true => request(&format!("{name}STORE")).words(words),
            false => request(name).words(words),
        }
    }

    /// A request about members that all have one score.
    fn by_name(&mut self) -> Request {
        let key = format!("byname{}", self.rng.u8(0..2)).into_bytes();
        match self.rng.u8(0..8) {
            0..=3 => {
                let mut words = vec![key];
                for _ in 0..self.rng.usize(1..=6) {
                    words.extend([b"0".to_vec(), self.scored_member()]);
                }
                request("ZADD").words(words)
            }
            4 | 5 => {
                let name = self.pick(&["ZRANGEBYLEX", "ZREVRANGEBYLEX"]);
                let (min, max) = (self.name_bound(), self.name_bound());
                request(name).word(key).word(min).word(max)
            }
            6 => {
                let (min, max) = (self.name_bound(), self.name_bound());
                request("ZLEXCOUNT").word(key).word(min).word(max)
            }
            _ => {
                let (min, max) = (self.name_bound(), self.name_bound());
                request("ZREMRANGEBYLEX").word(key).word(min).word(max)
            }
        }
    }

    /// A key of the current arena that mostly holds a sorted set.
    pub(crate) fn sorted_set_key(&mut self) -> Vec<u8> {
        match (self.arena, self.chance(8)) {
            (_, true) => self.key(),
            (Arena::Small, false) => format!("z{}", self.rng.u8(0..6)).into_bytes(),
            (Arena::Large, false) => format!("w{}", self.rng.u8(0..4)).into_bytes(),
        }
    }

    fn scored_member(&mut self) -> Vec<u8> {
        let most = match self.arena {
            Arena::Large => LARGE_MEMBERS,
            Arena::Small => SMALL_MEMBERS,
        };
        let number = self.rng.u16(0..most);
        match self.rng.u8(0..10) {
            0..=4 => format!("m{number}").into_bytes(),
            5..=8 => number.to_string().into_bytes(),
            _ => self.value(),
        }
    }

    fn score(&mut self) -> Vec<u8> {
        match self.rng.u8(0..20) {
            0 => self.pick(&["inf", "-inf", "1e3", "x", "nan"]).into(),
            1..=12 => self.rng.i32(-9..10).to_string().into_bytes(),
            _ => {
                let quarters = self.rng.i32(1..4000);
                format!("{}", f64::from(quarters) / 4.0).into_bytes()
            }
        }
    }

    /// An end of a range of scores.
    fn bound(&mut self) -> Vec<u8> {
        let mut bound = if self.chance(30) {
            b"(".to_vec()
        } else {
            Vec::new()
        };
        bound.extend(self.score());
        bound
    }

    /// An end of a range of names.
    fn name_bound(&mut self) -> Vec<u8> {
        match self.rng.u8(0..8) {
            0 => b"-".to_vec(),
            1 => b"+".to_vec(),
            kind => {
                let mut bound = if kind < 5 {
                    b"[".to_vec()
                } else {
                    b"(".to_vec()
                };
                bound.extend(self.scored_member());
                bound
            }
        }
    }

    fn rank(&mut self) -> Vec<u8> {
        self.rng.i32(-8..12).to_string().into_bytes()
    }
}
