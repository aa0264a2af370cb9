//! Requests of the stream commands.
//!
//! IDs are small, and those that the server chooses have a small time that the request says: two servers give
//! the same ones. Trims with ~ are left out: which entries stay depends on the nodes of redis-server.

use super::request::{Request, request};
use super::stream::Generator;
use super::words::Arena;

/// Groups and consumers in use.
const GROUPS: [&str; 4] = ["g1", "g2", "g3", ""];
const CONSUMERS: [&str; 4] = ["anna", "bert", "", "17"];
/// Times of IDs are below this.
const TIMES: u64 = 60;

impl Generator {
    /// A request of one of the stream commands.
    pub(crate) fn stream_request(&mut self) -> Request {
        match self.rng.u8(0..101) {
            100 => request("DEL").word(self.stream_key()),
            0..=29 => self.xadd(),
            30..=32 => request("XLEN").word(self.stream_key()),
            33..=39 => self.xrange(),
            40..=43 => {
                let xdel = request("XDEL").word(self.stream_key());
                xdel.words(self.ids())
            }
            44..=46 => {
                let xtrim = request("XTRIM").word(self.stream_key());
                xtrim.words(self.trim())
            }
            47..=48 => self.xsetid(),
            49..=52 => self.xread(),
            53..=62 => self.xgroup(),
            63..=76 => self.xreadgroup(),
            77..=83 => {
                let xack = request("XACK").word(self.stream_key());
                xack.word(self.group()).words(self.ids())
            }
            84..=88 => self.xpending(),
            89..=92 => self.xclaim(),
            93..=95 => self.xautoclaim(),
            _ => self.xinfo(),
        }
    }

    /// A key that mostly holds a stream.
    pub(crate) fn stream_key(&mut self) -> Vec<u8> {
        match self.chance(5) {
            true => self.key(),
            false => format!("x{}", self.rng.u8(0..4)).into_bytes(),
        }
    }

    fn group(&mut self) -> Vec<u8> {
        match self.chance(60) {
            true => GROUPS[0].as_bytes().to_vec(),
            false => self.pick(&GROUPS).as_bytes().to_vec(),
        }
    }

    fn consumer(&mut self) -> Vec<u8> {
        self.pick(&CONSUMERS).as_bytes().to_vec()
    }

    /// An ID, seldom one that is none.
    fn id(&mut self) -> Vec<u8> {
        let (ms, seq) = (self.rng.u64(0..TIMES), self.rng.u64(0..4));
        let text = match self.rng.u8(0..100) {
            0..=59 => format!("{ms}-{seq}"),
            60..=84 => ms.to_string(),
            85..=89 => {
                let far = (1 << 48) - 2 + self.rng.u64(0..4);
                format!("{far}-{}", far - self.rng.u64(0..2))
            }
            90..=93 => format!("{}-{}", u64::MAX, u64::MAX - self.rng.u64(0..2)),
            _ => {
                let odd = [
                    "-", "+", "$", ">", "x", "5-*", "1-1-1", "", "007-01", "1--05",
                ];
                self.pick(&odd).to_owned()
            }
        };
        text.into_bytes()
    }

    fn ids(&mut self) -> Vec<Vec<u8>> {
        let count = self.rng.usize(1..=5);
        (0..count).map(|_| self.id()).collect()
    }

    /// An end of a range.
    fn id_bound(&mut self) -> Vec<u8> {
        match self.rng.u8(0..10) {
            0..=2 => b"-".to_vec(),
            3..=5 => b"+".to_vec(),
            6 => [b"(", &self.id()[..]].concat(),
            _ => self.id(),
        }
    }

    fn count(&mut self) -> Vec<u8> {
        match self.chance(90) {
            true => self.rng.i8(-1..20).to_string().into_bytes(),
            false => self.integer(),
        }
    }

    fn trim(&mut self) -> Vec<Vec<u8>> {
        let strategy = self.pick(&["MAXLEN", "MAXLEN", "MINID"]);
        let mut words = vec![self.cased(strategy)];
        if self.chance(40) {
            words.push(b"=".to_vec());
        }
        words.push(match strategy {
            "MAXLEN" => self.count(),
            _ => self.id(),
        });
        if self.chance(5) {
            words.push(self.cased("LIMIT"));
            words.push(self.count());
        }
        words
    }

    fn xadd(&mut self) -> Request {
        let mut xadd = request("XADD").word(self.stream_key());
        if self.chance(8) {
            xadd = xadd.word(self.cased("NOMKSTREAM"));
        }
        if self.chance(8) {
            xadd = xadd.words(self.trim());
        }
        // Mostly one after the last: times grow with the requests, and begin again.
        self.entries = (self.entries + 1) % (TIMES * 40);
        let id = match self.rng.u8(0..20) {
            0 => self.id(),
            1..=12 => format!("{}-*", self.entries / 40).into_bytes(),
            _ => format!("{}-{}", self.entries / 40, self.entries % 40).into_bytes(),
        };
        let names = self.pick(&["temp state x", "a b c", "7 0 -1", "n"]);
        let names: Vec<&str> = names.split(' ').collect();
        let count = self.rng.usize(1..=names.len());
        xadd = xadd.word(id);
        for name in &names[..count] {
            let value = match self.arena {
                Arena::Small => self.value(),
                Arena::Large => vec![b'v'; self.rng.usize(0..3_000)],
            };
            xadd = xadd.word(*name).word(value);
        }
        xadd
    }

    fn xrange(&mut self) -> Request {
        let name = self.pick(&["XRANGE", "XREVRANGE"]);
        let range = request(name).word(self.stream_key());
        let range = range.word(self.id_bound()).word(self.id_bound());
        match self.chance(40) {
            true => range.word(self.cased("COUNT")).word(self.count()),
            false => range,
        }
    }

    fn xsetid(&mut self) -> Request {
        let mut xsetid = request("XSETID").word(self.stream_key()).word(self.id());
        if self.chance(40) {
            xsetid = xsetid.word(self.cased("ENTRIESADDED")).word(self.count());
        }
        if self.chance(40) {
            xsetid = xsetid.word(self.cased("MAXDELETEDID")).word(self.id());
        }
        xsetid
    }

    /// `STREAMS` with some keys and as many IDs. IDs of the second kind ask for new entries.
    fn streams(&mut self, new: &str) -> Vec<Vec<u8>> {
        let count = self.rng.usize(1..=2);
        let mut words = vec![self.cased("STREAMS")];
        words.extend((0..count).map(|_| self.stream_key()));
        for _ in 0..count {
            words.push(match self.chance(60) {
                true => new.as_bytes().to_vec(),
                false => self.id(),
            });
        }
        words
    }

    fn xread(&mut self) -> Request {
        let mut xread = request("XREAD");
        if self.chance(50) {
            xread = xread.word(self.cased("COUNT")).word(self.count());
        }
        xread.words(self.streams("0"))
    }

    fn xreadgroup(&mut self) -> Request {
        let read = request("XREADGROUP").word(self.cased("GROUP"));
        let mut read = read.word(self.group()).word(self.consumer());
        if self.chance(80) {
            read = read.word(self.cased("COUNT")).word(self.count());
        }
        if self.chance(10) {
            read = read.word(self.cased("NOACK"));
        }
        read.words(self.streams(">"))
    }

    fn xgroup(&mut self) -> Request {
        let deed = self.pick(&[
            "CREATE",
            "CREATE",
            "CREATE",
            "CREATE",
            "CREATE",
            "SETID",
            "CREATECONSUMER",
            "DELCONSUMER",
            "DESTROY",
        ]);
        let xgroup = request("XGROUP").word(self.cased(deed));
        let mut xgroup = xgroup.word(self.stream_key()).word(self.group());
        match deed {
            "CREATE" | "SETID" => {
                xgroup = xgroup.word(match self.rng.u8(0..4) {
                    0 => b"$".to_vec(),
                    1 | 2 => b"0".to_vec(),
                    _ => self.id(),
                });
                if deed == "CREATE" && self.chance(80) {
                    xgroup = xgroup.word(self.cased("MKSTREAM"));
                }
                if self.chance(25) {
                    xgroup = xgroup.word(self.cased("ENTRIESREAD")).word(self.count());
                }
                xgroup
            }
            "CREATECONSUMER" | "DELCONSUMER" => xgroup.word(self.consumer()),
            _ => xgroup,
        }
    }

    /// Any idle time that all entries have, or none.
    fn idle(&mut self) -> Vec<u8> {
        self.pick(&["0", "0", "0", "100000000", "-5"])
            .as_bytes()
            .to_vec()
    }

    fn xpending(&mut self) -> Request {
        let mut pending = request("XPENDING").word(self.stream_key());
        pending = pending.word(self.group());
        if self.chance(40) {
            return pending;
        }
        if self.chance(20) {
            pending = pending.word(self.cased("IDLE")).word(self.idle());
        }
        pending = pending.word(self.id_bound()).word(self.id_bound());
        pending = pending.word(self.count());
        match self.chance(40) {
            true => pending.word(self.consumer()),
            false => pending,
        }
    }

    fn xclaim(&mut self) -> Request {
        let xclaim = request("XCLAIM").word(self.stream_key());
        let xclaim = xclaim.word(self.group()).word(self.consumer());
        let mut xclaim = xclaim.word(self.idle()).words(self.ids());
        for _ in 0..self.rng.usize(0..3) {
            let option = self.pick(&["FORCE", "JUSTID", "IDLE", "TIME", "RETRYCOUNT", "LASTID"]);
            xclaim = xclaim.word(self.cased(option));
            match option {
                "FORCE" | "JUSTID" => {}
                "LASTID" => xclaim = xclaim.word(self.id()),
                _ => xclaim = xclaim.word(self.count()),
            }
        }
        xclaim
    }

    fn xautoclaim(&mut self) -> Request {
        let claim = request("XAUTOCLAIM").word(self.stream_key());
        let claim = claim.word(self.group()).word(self.consumer());
        let mut claim = claim.word(self.idle()).word(self.id_bound());
        if self.chance(50) {
            claim = claim.word(self.cased("COUNT")).word(self.count());
        }
        if self.chance(30) {
            claim = claim.word(self.cased("JUSTID"));
        }
        claim
    }

    fn xinfo(&mut self) -> Request {
        let of = self.pick(&["GROUPS", "CONSUMERS", "STREAM", "STREAM"]);
        let xinfo = request("XINFO").word(self.cased(of));
        let xinfo = xinfo.word(self.stream_key());
        match (of, self.rng.u8(0..3)) {
            ("CONSUMERS", _) => xinfo.word(self.group()),
            ("STREAM", 0) => xinfo.word(self.cased("FULL")),
            ("STREAM", 1) => {
                let full = xinfo.word(self.cased("FULL"));
                full.word(self.cased("COUNT")).word(self.count())
            }
            _ => xinfo,
        }
    }
}
