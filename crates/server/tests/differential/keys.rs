//! Requests of the commands that work on keys of any type: existence, expiry, renaming, iteration, whole
//! databases.

use super::request::{Request, request};
use super::stream::Generator;

impl Generator {
    /// A request of one of the key commands.
    pub(crate) fn key_request(&mut self) -> Request {
        match self.rng.u8(0..60) {
            0..=5 => {
                let name = self.pick(&["DEL", "DEL", "UNLINK"]);
                request(name).words(self.keys(1, 3))
            }
            6..=8 => {
                let name = self.pick(&["EXISTS", "EXISTS", "TOUCH"]);
                request(name).words(self.keys(1, 4))
            }
            9 | 10 => request("TYPE").word(self.key()),
            11..=22 => self.expire(),
            23..=29 => {
                let name = self.pick(&["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"]);
                request(name).word(self.key())
            }
            30 | 31 => request("PERSIST").word(self.key()),
            32 => request("KEYS").word(self.pattern()),
            33 | 34 => self.scan(),
            35..=38 => {
                let name = self.pick(&["RENAME", "RENAMENX"]);
                request(name).words(self.keys(2, 2))
            }
            39..=42 => self.copy(),
            43..=45 => request("MOVE").word(self.key()).word(self.database()),
            46..=51 => self.object(),
            52..=54 => request("DBSIZE"),
            55 | 56 => request("RANDOMKEY"),
            57 => request("SWAPDB")
                .word(self.database())
                .word(self.database()),
            _ => self.flush(),
        }
    }

    fn expire(&mut self) -> Request {
        let name = self.pick(&["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"]);
        let per_second = if name.starts_with('P') { 1000 } else { 1 };
        let time = if name.ends_with("AT") {
            self.moment(per_second)
        } else {
            self.lifetime(per_second)
        };
        let mut expire = request(name).word(self.key()).word(time);
        let conditions = self.pick(&[0, 0, 1, 1, 1, 2]);
        for _ in 0..conditions {
            let condition = self.pick(&["NX", "XX", "GT", "LT", "GT", "LT", "KEEPTTL"]);
            expire = expire.word(self.cased(condition));
        }
        expire
    }

    /// One call of SCAN. What a page holds is each server's own affair; the walk over all pages is compared
    /// apart.
    fn scan(&mut self) -> Request {
        let cursor = if self.chance(70) {
            b"0".to_vec()
        } else {
            self.integer()
        };
        request("SCAN").word(cursor).words(self.scan_options())
    }

    /// Options of SCAN, mostly legal.
    pub(crate) fn scan_options(&mut self) -> Vec<Vec<u8>> {
        let mut words = Vec::new();
        let options = self.pick(&[0, 1, 1, 2, 3]);
        for _ in 0..options {
            let option = self.pick(&["MATCH", "COUNT", "TYPE"]);
            words.push(self.cased(option));
            words.push(match option {
                "MATCH" => self.pattern(),
                "COUNT" if self.chance(80) => self.rng.u8(1..30).to_string().into_bytes(),
                "COUNT" => self.integer(),
                _ => self
                    .pick(&["string", "STRING", "list", "hash", "nosuchtype"])
                    .into(),
            });
        }
        words
    }

    fn copy(&mut self) -> Request {
        let mut copy = request("COPY").words(self.keys(2, 2));
        if self.chance(40) {
            copy = copy.word(self.cased("DB")).word(self.database());
        }
        if self.chance(50) {
            copy = copy.word(self.cased("REPLACE"));
        }
        copy
    }

    fn object(&mut self) -> Request {
        let subcommand = self.pick(&[
            "ENCODING", "ENCODING", "ENCODING", "REFCOUNT", "IDLETIME", "FREQ", "SIZE",
        ]);
        request("OBJECT")
            .word(self.cased(subcommand))
            .word(self.key())
    }

    fn flush(&mut self) -> Request {
        // An empty keyspace teaches little, so it is mostly spared.
        if self.chance(80) {
            return request("DBSIZE");
        }
        let name = self.pick(&["FLUSHDB", "FLUSHDB", "FLUSHALL"]);
        let mode = self.pick(&["", "ASYNC", "SYNC", "LAZY"]);
        if mode.is_empty() {
            return request(name);
        }
        request(name).word(self.cased(mode))
    }
}
