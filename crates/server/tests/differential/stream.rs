//! The random stream: which command comes next, how it is spoiled, and what must never be sent.
//!
//! Invariants:
//! 1. A seed and a configuration always give the same stream.
//! 2. Two correct servers answer the stream alike whatever the milliseconds between them: nothing expires
//!    while it runs ([`is_safe`]), and what each server may answer as it likes is followed by a request that
//!    both must answer alike.
//! 3. No request makes a server allocate more than a few megabytes.

use std::ops::RangeInclusive;

use fastrand::Rng;

use super::request::{Request, request};
use super::support::Proto;
use super::words::Arena;

/// One step of the stream.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A request whose reply is compared.
    Send(Request),
    /// A whole iteration with SCAN, or HSCAN of a key, and these options, whose union of pages is compared.
    Walk(Request, Vec<Vec<u8>>),
}

/// The source of requests. Its methods are spread over the modules of the command families.
pub(crate) struct Generator {
    pub(super) rng: Rng,
    pub(super) arena: Arena,
    /// How many distinct times were handed out.
    pub(super) times: u32,
    proto: Proto,
    /// Whether DBSIZE is asked. While keys are over but not yet removed it is each server's own affair.
    pub(super) counts_keys: bool,
    /// Entries of streams that were added, of one round of times.
    pub(super) entries: u64,
    /// Requests of a hundred that are scripts.
    pub(super) script_percent: u32,
    /// Scripts that were sent.
    pub(super) scripts: Vec<Vec<Step>>,
}

/// Requests of a hundred that are scripts.
const SCRIPTS: u32 = 3;
/// Words after a command's name in [`Generator::arities`].
const ARITY_MAX: usize = 5;
/// Seconds, and milliseconds, that are neither over nor far away.
const NEAR_S: RangeInclusive<i64> = 1..=9_999;
const NEAR_MS: RangeInclusive<i64> = 1..=9_999_999;
/// Offsets that are legal but would allocate a string of many megabytes.
const HEAVY_BYTES: RangeInclusive<i64> = 2_000_000..=(1 << 29);
const HEAVY_BITS: RangeInclusive<i64> = 16_000_000..=(1 << 32);
/// Counts of HRANDFIELD that are legal but would be answered with many megabytes.
const HEAVY_COUNTS: RangeInclusive<i64> = -i64::MAX..=-1_000;
/// Offsets counted in fields of up to 64 bits.
const HEAVY_FIELDS: RangeInclusive<i64> = 250_000..=(1 << 32);

impl Generator {
    pub(crate) fn new(seed: u64, proto: Proto) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            arena: Arena::Small,
            times: 0,
            proto,
            counts_keys: true,
            entries: 0,
            script_percent: SCRIPTS,
            scripts: Vec::new(),
        }
    }

    /// The next step, with those that must follow it at once on the same connection.
    pub(crate) fn next(&mut self) -> Vec<Step> {
        self.arena = if self.chance(8) {
            Arena::Large
        } else {
            Arena::Small
        };
        if self.chance(self.script_percent) {
            return self.script_steps();
        }
        match self.rng.u16(0..400) {
            0 => return vec![Step::Walk(request("SCAN"), self.scan_options())],
            1 => {
                let hscan = request("HSCAN").word(self.hash_key());
                return vec![Step::Walk(hscan, self.hscan_options())];
            }
            2 => {
                let sscan = request("SSCAN").word(self.set_key());
                return vec![Step::Walk(sscan, self.hscan_options())];
            }
            _ => {}
        }
        loop {
            let mut candidate = if self.chance(88) {
                self.data_request()
            } else {
                self.session_request()
            };
            if self.chance(5) {
                self.spoil(&mut candidate);
            }
            let name = String::from_utf8_lossy(&candidate.words[0]).into_owned();
            candidate.words[0] = self.cased(&name);
            if is_safe(&candidate) && (self.counts_keys || candidate.upper(0) != b"DBSIZE") {
                return self.with_consequences(candidate);
            }
        }
    }

    /// Every command of `names` with nothing, one, two, ... words after it.
    pub(crate) fn arities(names: &str) -> Vec<Request> {
        let sentences = names.split_whitespace().flat_map(|name| {
            (0..=ARITY_MAX).map(move |count| {
                let words = std::iter::repeat_n(b"s1".to_vec(), count);
                request(name).words(words)
            })
        });
        sentences.filter(is_safe).collect()
    }

    /// A request of one of the commands on data.
    pub(crate) fn data_request(&mut self) -> Request {
        match self.rng.u8(0..100) {
            0..=33 => self.string_request(),
            34..=57 => self.key_request(),
            58..=63 => self.stream_request(),
            64..=75 => self.bit_request(),
            76..=83 => self.hash_request(),
            84..=87 => self.set_request(),
            88..=89 => self.hyperloglog_request(),
            90 => self.sort_request(),
            91..=95 => self.sorted_set_request(),
            _ => self.list_request(),
        }
    }

    /// Breaks a request: a wrong number of words, or a word where it does not belong.
    pub(super) fn spoil(&mut self, request: &mut Request) {
        let count = request.words.len();
        match self.rng.u8(0..5) {
            0 => request.words.truncate(self.rng.usize(1..=count)),
            1 if count > 1 => {
                request.words.remove(self.rng.usize(1..count));
            }
            2 if count > 1 => {
                let word = request.words[self.rng.usize(1..count)].clone();
                request.words.insert(self.rng.usize(1..=count), word);
            }
            3 if count > 1 => {
                let at = self.rng.usize(1..count);
                request.words[at] = self.stray();
            }
            _ => {
                let stray = self.stray();
                request.words.insert(self.rng.usize(1..=count), stray);
            }
        }
    }

    /// Appends what makes the rest of the stream comparable after this request.
    pub(super) fn with_consequences(&mut self, sent: Request) -> Vec<Step> {
        let follow_up = match &sent.upper(0)[..] {
            // Each server takes a key of its own choice: it must be among all keys.
            b"RANDOMKEY" => Some(request("KEYS *")),
            // And fields of its own choice: they must be among all fields.
            b"HRANDFIELD" if sent.words.len() > 1 => {
                Some(request("HGETALL").word(sent.words[1].clone()))
            }
            b"SRANDMEMBER" if sent.words.len() > 1 => {
                Some(request("SMEMBERS").word(sent.words[1].clone()))
            }
            b"ZRANDMEMBER" if sent.words.len() > 1 => Some(
                request("ZRANGE")
                    .word(sent.words[1].clone())
                    .word("0")
                    .word("-1"),
            ),
            // The stream compares one protocol at a time; that HELLO changes it was seen in its reply.
            b"HELLO" => Some(request("HELLO").word(self.proto.number().to_string())),
            // A key set with a time that is over is counted until someone asks for it.
            b"SET" if sent.words.len() > 3 => Some(request("EXISTS").word(sent.words[1].clone())),
            _ => None,
        };
        std::iter::once(sent)
            .chain(follow_up)
            .map(Step::Send)
            .collect()
    }
}

/// The number in a word, read more generously than any server does.
fn integer(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.trim().parse().ok()
}

/// Whether a request keeps the invariants 2 and 3, and cannot ask for what only one server has.
pub(super) fn is_safe(request: &Request) -> bool {
    // The time of an ID would be that of the server.
    let has_any = |word: &[u8]| request.words.iter().any(|other| other == word);
    if request.upper(0) == b"XADD" && has_any(b"*") {
        return false;
    }
    let is_number_in = |index: usize, range: &RangeInclusive<i64>| {
        let number = request.words.get(index).and_then(|word| integer(word));
        number.is_some_and(|number| range.contains(&number))
    };
    let has_safe_options = |first: usize| {
        (first..request.words.len()).all(|index| match &request.upper(index)[..] {
            b"EX" => !is_number_in(index + 1, &NEAR_S),
            b"PX" => !is_number_in(index + 1, &NEAR_MS),
            _ => true,
        })
    };
    let begins_as_cursors_do = |index: usize| {
        let word = request.words.get(index);
        word.is_none_or(|word| word.first().is_some_and(u8::is_ascii_alphanumeric))
    };
    match &request.upper(0)[..] {
        // Among members of different scores there are no ranges by name.
        b"ZADD"
            if request.words[1..]
                .iter()
                .any(|word| word.starts_with(b"byname")) =>
        {
            let mut scores = request.words[2..].chunks(2);
            request.words[1].starts_with(b"byname") && scores.all(|pair| pair[0] == b"0")
        }
        b"EXPIRE" | b"SETEX" => !is_number_in(2, &NEAR_S),
        b"PEXPIRE" | b"PSETEX" | b"RESTORE" => !is_number_in(2, &NEAR_MS),
        b"SET" => has_safe_options(3),
        b"GETEX" => has_safe_options(2),
        // Which of several members it takes is each server's own affair.
        b"SPOP" => request.words.len() > 2 && !is_number_in(2, &(1..=100_000)),
        // Redis 7.0 negates a number that has no negative.
        b"LPOS" => {
            !(3..request.words.len()).any(|index| is_number_in(index, &(i64::MIN..=i64::MIN)))
        }
        b"SETRANGE" => !is_number_in(2, &HEAVY_BYTES),
        b"SETBIT" => !is_number_in(2, &HEAVY_BITS),
        b"HRANDFIELD" | b"SRANDMEMBER" | b"ZRANDMEMBER" => !is_number_in(2, &HEAVY_COUNTS),
        b"BITFIELD" => (2..request.words.len()).all(|index| {
            // The value of its SET may be as large as it likes, but telling it apart is not worth the
            // trouble.
            let field = request.words[index].strip_prefix(b"#").and_then(integer);
            !is_number_in(index, &HEAVY_BITS)
                && !field.is_some_and(|field| HEAVY_FIELDS.contains(&field))
        }),
        // Redis 7.0 and 8 differ in which of the other cursors they take.
        b"SCAN" => begins_as_cursors_do(1),
        b"HSCAN" | b"SSCAN" | b"ZSCAN" => begins_as_cursors_do(2),
        // The whole table, and all settings, are nobody's to compare; SYNC is one of redis-server alone.
        b"COMMAND" => request.words.len() > 2 && request.upper(2) != b"SYNC",
        b"CONFIG" => !request
            .words
            .iter()
            .any(|word| word.contains(&b'*') || word.contains(&b'?')),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_stream() {
        let stream = || {
            let mut generator = Generator::new(7, Proto::Resp2);
            let steps: Vec<_> = (0..500).flat_map(|_| generator.next()).collect();
            format!("{steps:?}")
        };
        assert_eq!(stream(), stream());
    }

    #[test]
    fn near_times_and_heavy_offsets_are_held_back() {
        for unsafe_text in [
            "EXPIRE k 5",
            "pexpire k 5000 NX",
            "SETEX k 9999 v",
            "SET k v NX px 200",
            "GETEX k EX 1",
            "SETRANGE k 536870911 x",
            "SETBIT k 4294967295 1",
            "BITFIELD k SET u8 #268435456 1",
            "HRANDFIELD k -4611686018427387904 WITHVALUES",
            "BITFIELD k GET u8 0 SET u8 100000000 1",
            "COMMAND",
            "COMMAND INFO",
            "CONFIG GET nosuch *",
        ] {
            assert!(!is_safe(&request(unsafe_text)), "{unsafe_text}");
        }
        for safe_text in [
            "EXPIRE k 0",
            "EXPIRE k -5",
            "EXPIRE k 10000 GT",
            "EXPIREAT k 5",
            "SET k 5",
            "SET EX 5",
            "SETRANGE k 536870913 x",
            "HRANDFIELD k -20",
            "SETBIT k 4294967297 1",
            "COMMAND GETKEYS GET k",
        ] {
            assert!(is_safe(&request(safe_text)), "{safe_text}");
        }
    }
}
