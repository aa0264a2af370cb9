//! Requests of the commands that work on keys of any type: existence, expiry, renaming, iteration, whole
//! databases.

use super::request::{Request, request};
use super::stream::Generator;

/// What DUMP gives: of three strings, of one that is compressed, and what RESTORE refuses.
const PAYLOADS: &[&[u8]] = &[
    b"\x00\x05hello\x0a\x00cr\xdfve4 \x0a",
    b"\x00\xc0\x0c\x0a\x00<*\xf8Q\x5c\x04\xbc\xd5",
    b"\x00\x0b12345678901\x0a\x000NR\xd7'\x17e\x10",
    b"\x00\xc3\x06\x15\x01xx\xe0\x0a\x00\x0a\x00\x94\x1a\x83g`\x17\x19/",
    b"",
    b"\x00\x05hello\x0a\x00cr\xdfve4 \x0b",
    b"cabc\x0a\x00R\xed\xc3\xd2/\x0d96",
];

impl Generator {
    /// A request of one of the key commands.
    pub(crate) fn key_request(&mut self) -> Request {
        match self.rng.u8(0..63) {
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
            58..=60 => self.restore(),
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

    /// A cursor, mostly right. None begins with what Redis 7.0 takes and Redis 8 does not, or the reverse:
    /// who takes it looks for a key, and tells of a missing one.
    pub(crate) fn cursor(&mut self) -> Vec<u8> {
        let number = self.integer();
        let is_read_alike = number.first().is_some_and(u8::is_ascii_alphanumeric);
        match self.chance(70) || !is_read_alike {
            true => b"0".to_vec(),
            false => number,
        }
    }

    /// One call of SCAN. What a page holds is each server's own affair; the walk over all pages is compared
    /// apart.
    fn scan(&mut self) -> Request {
        let cursor = self.cursor();
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
                    .pick(&[
                        "string",
                        "STRING",
                        "list",
                        "hash",
                        "set",
                        "zset",
                        "nosuchtype",
                    ])
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

    fn restore(&mut self) -> Request {
        let payload = self.pick(PAYLOADS);
        let is_absolute = self.chance(30);
        let ttl = match self.rng.u8(0..4) {
            0 if is_absolute => self.moment(1000),
            0 => (self.distinct_s() * 1000).to_string().into_bytes(),
            1 => self.pick(&["-1", "x", "1.5", ""]).into(),
            _ => "0".into(),
        };
        let mut restore = request("RESTORE").word(self.key()).word(ttl).word(payload);
        let options = [(60, "REPLACE"), (2, "KEEPTTL")];
        for (percent, option) in options {
            if self.chance(percent) {
                restore = restore.word(self.cased(option));
            }
        }
        if is_absolute {
            restore = restore.word(self.cased("ABSTTL"));
        }
        if self.chance(10) {
            let option = self.pick(&["IDLETIME", "FREQ"]);
            let number = self.pick(&["0", "5", "255", "256", "-1", "x"]);
            restore = restore.word(self.cased(option)).word(number);
        }
        restore
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
