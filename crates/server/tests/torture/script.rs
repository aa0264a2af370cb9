//! The script: what a run does, line by line, as data and as text.
//!
//! A plan is a script made from a seed, a find is a script that was recorded and shrunk, and both are run by
//! `run.rs`. Any subset of the lines of a script is a script: lines that make no sense where they stand do
//! nothing. That is what shrinking relies on.
//!
//! ```text
//! # a comment
//! server appendfsync=always log-segment-size=2mb   options of the next start
//! depth 1                                          requests of a connection that may be unanswered at a time
//! 3 SET 3:v1 @300000.17 PX 50                      connection 3 sends a request; @LENGTH.SEED stands for bytes
//! 3 RESTORE 3:h1 0 $30.17                          $FIELDS.SEED stands for what DUMP gives of a hash
//! 3 RESTORE 3:s1 0 #30.7.17                        #ENTRIES.TIME.SEED stands for the DUMP of a stream
//! 3 HSCAN 3:h1 & COUNT 5                           & stands for the cursor that the last page answered
//! 3 XDEL 3:t1 ^2                                   ^NUMBER stands for the ID of an entry, the last one is 0
//! beside 3 XADD 3:s1 * f v                         another connection sends it; 3 has settled
//! 3 cut 40 SET 3:v1 @300000.17                     it sends 40 % of a request, closes, and connects again
//! queue add|group|read|newest|unblock|kill|delete|drop|settle 2    see `readers.rs`
//! kick 3                                           CLIENT KILL of connection 3
//! finish 3                                         the end of what connection 3 sends; its answers come
//! op BGREWRITEAOF                                  a request of the operator's connection
//! map all|half                                     slots that the server has, with the option cluster=yes
//! settle | idle | sleep 20 | relog | check | verify
//! trouble volatile|full|syncs|writes|none          DEBUG DISK
//! backup b1 | open b1 | snapshot                   a backup; a second server on it, or on a snapshot
//! start | kill | start-kill 20 | stop | shutdown SAFE,NOSAVE
//! each 5..8 {n%4} SET 3:v{n} @300000.{n}           the line once for each of 5, 6 and 7
//! ```

use std::fmt;

use crate::torture::commands::payload;
use crate::torture::slots::Slots;

/// A word of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    Word(Vec<u8>),
    /// So many bytes that follow from a seed.
    Text {
        len: usize,
        seed: u32,
    },
    /// What DUMP gives of a hash of so many fields that follow from a seed.
    Payload {
        fields: usize,
        seed: u32,
    },
    /// The DUMP of a stream of so many entries up to a time that follow from a seed.
    Entries {
        count: usize,
        ms: u64,
        seed: u32,
    },
    /// Where the scan goes on; 0 until that is known.
    Cursor,
    /// The ID of an entry of the stream that the request names, as far as answers have told of it. From the
    /// last one on they have numbers.
    Known(usize),
}

/// The length after which the bytes of a [`Arg::Text`] repeat: a prime, so that misplaced blocks of any usual
/// size show.
const PERIOD: usize = 4093;

impl Arg {
    pub(crate) fn word(text: impl Into<Vec<u8>>) -> Arg {
        Arg::Word(text.into())
    }

    /// The bytes that are sent. A text begins with a letter, so that it is no number.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (len, seed) = match self {
            Arg::Word(word) => return word.clone(),
            Arg::Text { len, seed } => (*len, *seed),
            Arg::Payload { fields, seed } => return payload::of_hash(*fields, *seed),
            Arg::Entries { count, ms, seed } => return payload::of_stream(*count, *ms, *seed),
            Arg::Cursor => return b"0".to_vec(),
            Arg::Known(_) => return b"0-1".to_vec(),
        };
        let mut chunk = vec![0; len.min(PERIOD)];
        fastrand::Rng::with_seed(seed.into()).fill(&mut chunk);
        if let Some(first) = chunk.first_mut() {
            *first = b'v';
        }
        let mut bytes = chunk.repeat(len.div_ceil(PERIOD));
        bytes.truncate(len);
        bytes
    }

    fn parse(token: &str) -> Result<Arg, String> {
        let bad = || format!("not an argument: {token}");
        if token == "&" {
            return Ok(Arg::Cursor);
        }
        if let Some(number) = token.strip_prefix('^') {
            return Ok(Arg::Known(number.parse().map_err(|_| bad())?));
        }
        if let Some(text) = token.strip_prefix('#') {
            let parts: Vec<&str> = text.split('.').collect();
            let [count, ms, seed] = parts[..] else {
                return Err(bad());
            };
            return Ok(Arg::Entries {
                count: count.parse().map_err(|_| bad())?,
                ms: ms.parse().map_err(|_| bad())?,
                seed: seed.parse().map_err(|_| bad())?,
            });
        }
        if let Some(text) = token.strip_prefix(['@', '$']) {
            let (amount, seed) = text.split_once('.').ok_or_else(bad)?;
            let amount = amount.parse().map_err(|_| bad())?;
            let seed = seed.parse().map_err(|_| bad())?;
            return Ok(match token.starts_with('@') {
                true => Arg::Text { len: amount, seed },
                false => Arg::Payload {
                    fields: amount,
                    seed,
                },
            });
        }
        let mut word = Vec::new();
        let mut bytes = token.bytes();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                word.push(byte);
                continue;
            }
            let digits = [bytes.next(), bytes.next()].map(|digit| digit.map(char::from));
            let [Some(high), Some(low)] = digits else {
                return Err(bad());
            };
            let value = u8::from_str_radix(&format!("{high}{low}"), 16);
            word.push(value.map_err(|_| bad())?);
        }
        Ok(Arg::Word(word))
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arg::Text { len, seed } => write!(f, "@{len}.{seed}"),
            Arg::Payload { fields, seed } => write!(f, "${fields}.{seed}"),
            Arg::Entries { count, ms, seed } => write!(f, "#{count}.{ms}.{seed}"),
            Arg::Cursor => f.write_str("&"),
            Arg::Known(number) => write!(f, "^{number}"),
            Arg::Word(word) => {
                for (index, &byte) in word.iter().enumerate() {
                    let is_plain = byte.is_ascii_graphic() && byte != b'%';
                    if is_plain && (index > 0 || !b"@$&#^".contains(&byte)) {
                        write!(f, "{}", char::from(byte))?;
                    } else {
                        write!(f, "%{byte:02x}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// A request: the command's name and its arguments.
pub(crate) type Request = Vec<Arg>;

/// One line; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Server(Vec<String>),
    Depth(usize),
    Request(usize, Request),
    Cut(usize, u8, Request),
    Beside(usize, Request),
    /// A verb about the stream for which connections wait, and a number.
    Queue(String, usize),
    Kick(usize),
    Finish(usize),
    Operator(Request),
    Settle,
    Idle,
    Sleep(u64),
    Relog,
    Map(Slots),
    Check,
    Verify,
    Trouble(String),
    Backup(String),
    Open(String),
    Snapshot,
    Start,
    Kill,
    StartKill(u64),
    Stop,
    /// SHUTDOWN with these words, between which are commas.
    Shutdown(String),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |f: &mut fmt::Formatter<'_>, request: &Request| {
            request.iter().try_for_each(|arg| write!(f, " {arg}"))
        };
        match self {
            Line::Server(options) => write!(f, "server {}", options.join(" ")),
            Line::Depth(depth) => write!(f, "depth {depth}"),
            Line::Request(lane, request) => {
                write!(f, "{lane}")?;
                words(f, request)
            }
            Line::Cut(lane, share, request) => {
                write!(f, "{lane} cut {share}")?;
                words(f, request)
            }
            Line::Beside(lane, request) => {
                write!(f, "beside {lane}")?;
                words(f, request)
            }
            Line::Queue(verb, number) => write!(f, "queue {verb} {number}"),
            Line::Kick(lane) => write!(f, "kick {lane}"),
            Line::Finish(lane) => write!(f, "finish {lane}"),
            Line::Operator(request) => {
                f.write_str("op")?;
                words(f, request)
            }
            Line::Settle => f.write_str("settle"),
            Line::Idle => f.write_str("idle"),
            Line::Sleep(ms) => write!(f, "sleep {ms}"),
            Line::Relog => f.write_str("relog"),
            Line::Map(Slots::All) => f.write_str("map all"),
            Line::Map(Slots::Half) => f.write_str("map half"),
            Line::Check => f.write_str("check"),
            Line::Verify => f.write_str("verify"),
            Line::Trouble(word) => write!(f, "trouble {word}"),
            Line::Backup(name) => write!(f, "backup {name}"),
            Line::Open(name) => write!(f, "open {name}"),
            Line::Snapshot => f.write_str("snapshot"),
            Line::Start => f.write_str("start"),
            Line::Kill => f.write_str("kill"),
            Line::StartKill(ms) => write!(f, "start-kill {ms}"),
            Line::Stop => f.write_str("stop"),
            Line::Shutdown(words) => write!(f, "shutdown {words}"),
        }
    }
}

impl Line {
    fn parse(text: &str) -> Result<Line, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let bad = || format!("not a line of a script: {text}");
        let number = |at: usize| -> Result<u64, String> {
            let word = words.get(at).ok_or_else(bad)?;
            word.parse().map_err(|_| bad())
        };
        let word = |at: usize| words.get(at).map(|&word| word.to_owned()).ok_or_else(bad);
        let request = |from: usize| -> Result<Request, String> {
            let args = words.get(from..).filter(|args| !args.is_empty());
            args.ok_or_else(bad)?
                .iter()
                .map(|token| Arg::parse(token))
                .collect()
        };
        Ok(match words[0] {
            "server" => Line::Server(words[1..].iter().map(|&word| word.to_owned()).collect()),
            "depth" => Line::Depth(number(1)? as usize),
            "beside" => Line::Beside(number(1)? as usize, request(2)?),
            "queue" => Line::Queue(word(1)?, number(2)? as usize),
            "kick" => Line::Kick(number(1)? as usize),
            "finish" => Line::Finish(number(1)? as usize),
            "op" => Line::Operator(request(1)?),
            "settle" => Line::Settle,
            "idle" => Line::Idle,
            "sleep" => Line::Sleep(number(1)?),
            "relog" => Line::Relog,
            "map" => Line::Map(match &word(1)?[..] {
                "all" => Slots::All,
                "half" => Slots::Half,
                _ => return Err(bad()),
            }),
            "check" => Line::Check,
            "verify" => Line::Verify,
            "trouble" => Line::Trouble(word(1)?),
            "backup" => Line::Backup(word(1)?),
            "open" => Line::Open(word(1)?),
            "snapshot" => Line::Snapshot,
            "start" => Line::Start,
            "kill" => Line::Kill,
            "start-kill" => Line::StartKill(number(1)?),
            "stop" => Line::Stop,
            "shutdown" => Line::Shutdown(word(1)?),
            _ => {
                let lane = number(0)? as usize;
                if words.get(1) == Some(&"cut") {
                    Line::Cut(lane, number(2)?.min(99) as u8, request(3)?)
                } else {
                    Line::Request(lane, request(1)?)
                }
            }
        })
    }
}

/// Reads a script.
///
/// # Errors
/// Names the line that is none.
pub(crate) fn parse(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    let written = text.lines().map(str::trim);
    for line in written.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("each ") {
            None => lines.push(Line::parse(line)?),
            Some(each) => {
                let repeated =
                    repeat(each).ok_or_else(|| format!("not a line of a script: {line}"))?;
                for line in repeated {
                    lines.push(Line::parse(&line)?);
                }
            }
        }
    }
    Ok(lines)
}

/// The lines of `FROM..TO LINE`.
fn repeat(text: &str) -> Option<Vec<String>> {
    let (range, line) = text.split_once(' ')?;
    let (from, to) = range.split_once("..")?;
    let numbers = from.parse().ok()?..to.parse().ok()?;
    numbers.map(|number| fill_in(line, number)).collect()
}

/// Puts the number in place of `{n}`, and what is left of it by 4 in place of `{n%4}`.
fn fill_in(line: &str, number: u64) -> Option<String> {
    let mut filled = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        let value = match name.strip_prefix("n%") {
            Some(divisor) => number.checked_rem(divisor.parse().ok()?)?,
            None if name == "n" => number,
            None => return None,
        };
        filled.push_str(&format!("{before}{value}"));
        rest = after;
    }
    Some(filled + rest)
}

/// The text of a script.
pub(crate) fn print(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_script_is_its_text() {
    let text = "server appendfsync=always\ndepth 1\n3 SET 3:v1 @300000.17 PX 50\n3 cut 40 SET 3:v1 @5.1\n0 SET %40a %25%00%20\n\
        0 RESTORE %24a 0 $30.17\n0 SSCAN %26 & COUNT 5\n\
        0 RESTORE %23a 0 #30.7.17\n0 XDEL %5ea ^2\nbeside 3 XADD 3:s1 * f v\n\
        queue add 3\nkick 3\nfinish 3\nop DEBUG RELOAD\nsettle\nidle\nsleep 20\nrelog\nmap all\nmap half\ncheck\nverify\ntrouble full\nbackup b1\nopen b1\nsnapshot\nstart\nkill\n\
        start-kill 20\nstop\nshutdown SAFE,SAVE\n0 SET %40a %\n";
    let (good, bad) = text.split_at(text.len() - "0 SET %40a %\n".len());
    let lines = parse(good).expect("it is a script");
    assert_eq!(print(&lines), good);
    assert!(parse(bad).is_err() && parse("jump").is_err());
}

#[test]
fn each_repeats_a_line() {
    let lines = parse("each 7..9 {n%4} SET 3:v{n} @10.{n}").expect("it is a script");
    assert_eq!(print(&lines), "3 SET 3:v7 @10.7\n0 SET 3:v8 @10.8\n");
    for bad in [
        "each 7..9",
        "each 7 stop",
        "each 1..3 {m} DEL k",
        "each 1..3 {n%0} DEL k",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}
