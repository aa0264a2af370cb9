//! The plan: a script from a seed, one life of the server after the other.

mod streams;
mod words;

use crate::torture::commands::{COMMANDS, Effect, LASTING, Row};
use crate::torture::inspect::SEPARATOR;
use crate::torture::run::LANES;
use crate::torture::script::{Arg, Line, Request};
use crate::torture::slots::{self, Slots};

/// Names of each class of keys.
const VALUES: u32 = 12;
const NUMBERS: u32 = 3;
const BIG_NUMBERS: u32 = 2;
const SHORT_LIVES: u32 = 3;
const HASHES: u32 = 4;
/// And of sets.
const SETS: u32 = 4;
const SORTED_SETS: u32 = 4;
const PLACES: u32 = 2;
/// And of lists.
const LISTS: u32 = 4;
const HYPERLOGLOGS: u32 = 3;
const STREAMS: u32 = 3;
const TIMED_STREAMS: u32 = 2;
const NEVER_THERE: u32 = 2;
const POPULATED: u32 = 2;
/// The first time of the IDs of entries, and how many entries are added before the next one.
const FIRST_TIME: u64 = 5;
const ENTRIES_OF_TIME: u64 = 1000;
/// Words of shapes that are for servers whose memory is scarce.
const SCARCE: [&str; 3] = ["{vast}", "{mwide}", "{ewide}"];
/// Keys that no other request names.
const SELDOM: u32 = 64;

/// Milliseconds of a moment that is far away.
const FUTURE_MS: u64 = 4_102_444_800_000;

/// What the plan of a crash is about: nothing but kills, losses of power and orderly ends, under one policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crash {
    pub(crate) appendfsync: &'static str,
    /// The shortest value that has a file of its own.
    pub(crate) blob_size: &'static str,
    /// The share of the lives that end with a loss of power unless they end in good order; others are killed.
    pub(crate) power_percent: u8,
    /// Before the storm, a life pauses for so long at most. A storm pauses too, unless this is 0.
    pub(crate) pauses_ms: u64,
    /// The most requests that come at once, before the end of a life.
    pub(crate) storm: usize,
    /// Most values are some bytes long.
    pub(crate) is_small: bool,
}

/// See the module.
pub(crate) struct Plan {
    random: fastrand::Rng,
    lines: Vec<Line>,
    /// Lines of requests in a life.
    longest: usize,
    /// Sizes of large values are divided by this.
    shrink: usize,
    backups: u32,
    open: Vec<String>,
    /// The disk has trouble in this life.
    has_trouble: bool,
    /// The server is a node of a cluster.
    is_cluster: bool,
    /// The server has a limit of memory.
    pub(crate) is_scarce: bool,
    crash: Option<Crash>,
    /// Nothing makes all connections wait for each other.
    in_storm: bool,
    /// Entries of streams that were added.
    entries: u64,
    /// Streams have idempotent IDs. The plan loads no snapshot, because a snapshot does not have them.
    pub(crate) is_idempotent: bool,
}

impl Plan {
    /// The plan of a seed; of every third one the server is a node of a cluster. A short one has shorter
    /// lives and smaller values.
    pub(crate) fn new(seed: u64, is_short: bool) -> Plan {
        Plan {
            random: fastrand::Rng::with_seed(seed),
            lines: Vec::new(),
            longest: if is_short { 150 } else { 500 },
            shrink: if is_short { 4 } else { 1 },
            backups: 0,
            open: Vec::new(),
            has_trouble: false,
            is_cluster: seed % 3 == 2,
            is_scarce: false,
            crash: None,
            in_storm: false,
            entries: 0,
            is_idempotent: seed % 4 < 2,
        }
    }

    /// The plan of a seed that is about crashes.
    pub(crate) fn crash(seed: u64, crash: Crash) -> Plan {
        Plan {
            longest: 600,
            is_cluster: false,
            crash: Some(crash),
            ..Plan::new(seed, false)
        }
    }

    /// The next life: from a start to the server's end.
    pub(crate) fn life(&mut self) -> Vec<Line> {
        self.has_trouble = false;
        self.begin();
        let count = self.random.usize(10..self.longest);
        let trouble_at = match self.crash {
            Some(_) => usize::MAX,
            None => self.random.usize(..count * 6),
        };
        let mut pauses_ms = self.crash.map_or(0, |crash| crash.pauses_ms);
        let mut at = 0;
        while at < count {
            if at >= trouble_at && !self.has_trouble {
                self.trouble();
            }
            at += 1;
            if pauses_ms > 0 && self.chance(40) {
                let ms = self.random.u64(1..200).min(pauses_ms);
                pauses_ms -= ms;
                self.lines.push(Line::Sleep(ms));
            }
            match self.random.u32(..200) {
                0..6 if !self.has_trouble => self.maintain(),
                6..9 if !self.has_trouble => self.disturb(),
                9..18 => at += self.transaction(),
                18..20 => at += self.watch_stream(),
                20..23 => at += self.burst(),
                23..25 => at += self.fill(),
                25 if self.chance(4) && !self.has_trouble => at += self.layers(),
                26..30 if self.is_cluster => self.map(),
                30..34 if !self.has_trouble => self.killed_script(),
                34..38 => at += self.grow(),
                38..50 if self.crash.is_none() && !self.has_trouble => self.queue(),
                _ => {
                    let lane = self.lane();
                    let request = self.request(lane);
                    self.lines.push(Line::Request(lane, request));
                }
            }
        }
        self.end();
        std::mem::take(&mut self.lines)
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.random.u32(..one_in) == 0
    }

    fn lane(&mut self) -> usize {
        self.random.usize(..LANES)
    }

    fn begin(&mut self) {
        match self.crash {
            Some(crash) => self.begin_crash(crash),
            None => self.begin_any(),
        }
        if let Some(name) = self.open.pop() {
            self.lines.push(Line::Open(name));
        }
    }

    fn begin_crash(&mut self, crash: Crash) {
        let Crash {
            appendfsync,
            blob_size,
            ..
        } = crash;
        let threads = self.random.usize(1..3);
        let options =
            format!("appendfsync={appendfsync} log-blob-size={blob_size} threads={threads}");
        self.lines.push(Line::Server(
            options.split(' ').map(str::to_owned).collect(),
        ));
        // It dies while it starts, and again.
        while self.chance(4) {
            self.lines.push(Line::StartKill(self.random.u64(..150)));
        }
        self.lines.extend([Line::Check, Line::Start]);
        if self.random.u8(..100) < crash.power_percent {
            self.lines.push(Line::Trouble("volatile".to_owned()));
        }
        let depth = if self.random.bool() {
            1
        } else {
            self.random.usize(2..24)
        };
        self.lines.push(Line::Depth(depth));
    }

    fn begin_any(&mut self) {
        let mut options: Vec<String> = Vec::new();
        let mut choose = |random: &mut fastrand::Rng, name: &str, values: &[&str]| {
            let value = values[random.usize(..values.len())];
            if !value.is_empty() {
                options.push(format!("{name}={value}"));
            }
        };
        let random = &mut self.random;
        choose(
            random,
            "appendfsync",
            &["always", "always", "everysec", "everysec", "no"],
        );
        choose(random, "log-segment-size", &["2mb", "2mb", "2mb", "4mb"]);
        choose(
            random,
            "log-blob-size",
            &["", "16kb", "64kb", "256kb", "256kb"],
        );
        choose(random, "threads", &["1", "2", "2", "3"]);
        choose(random, "io", &["auto", "epoll", "portable"]);
        choose(random, "log-lazy-load-size", &["", "1"]);
        choose(random, "maxmemory", &["", "", "", "", "", "64mb"]);
        choose(random, "save", &["", "", "1,10"]);
        let is_small = options
            .iter()
            .any(|option| option.starts_with("maxmemory="));
        self.is_scarce = is_small;
        if is_small {
            options.push("maxmemory-clients=32mb".to_owned());
        }
        if self.is_cluster {
            options.push(slots::OPTION.to_owned());
            self.map();
        }
        self.lines.push(Line::Server(options));
        if self.chance(6) {
            self.lines.push(Line::StartKill(self.random.u64(..60)));
            if self.chance(2) {
                self.lines.push(Line::StartKill(self.random.u64(..60)));
            }
        }
        self.lines.push(Line::Start);
        if self.chance(3) {
            self.lines.push(Line::Trouble("volatile".to_owned()));
        }
        let depth = if is_small || self.chance(4) {
            1
        } else {
            self.random.usize(2..24)
        };
        self.lines.push(Line::Depth(depth));
    }

    /// Many requests of all connections, the last of which are on their way at what comes next.
    fn storm(&mut self, most: usize, has_pauses: bool) {
        self.in_storm = true;
        self.lines.push(Line::Depth(self.random.usize(4..24)));
        for _ in 0..self.random.usize(50..most) {
            if has_pauses && self.chance(1500) {
                self.lines.push(Line::Sleep(self.random.u64(1..200)));
            }
            if self.chance(12) {
                self.transaction();
            } else {
                let lane = self.lane();
                let request = self.request(lane);
                self.lines.push(Line::Request(lane, request));
            }
        }
        self.in_storm = false;
    }

    fn end(&mut self) {
        if let Some(crash) = self.crash
            && !self.chance(4)
        {
            self.storm(crash.storm, crash.pauses_ms > 0);
            let end = if self.chance(6) {
                Line::Stop
            } else {
                Line::Kill
            };
            return self.lines.push(end);
        }
        match self.random.u32(..10) {
            0..2 => self.lines.push(Line::Settle),
            2..5 if !self.has_trouble => {
                let rewrite = vec![Arg::word("BGREWRITEAOF")];
                self.lines.extend([Line::Operator(rewrite), Line::Idle]);
                if self.random.bool() {
                    // Until what was emptied has gone.
                    self.lines.push(Line::Sleep(300));
                }
            }
            5 if !self.has_trouble => {
                let lane = self.lane();
                let name = if self.random.bool() || self.is_cluster {
                    "FLUSHALL"
                } else {
                    "SWAPDB"
                };
                let mut request = vec![Arg::word(name)];
                if name == "SWAPDB" {
                    request.extend([self.token(lane, "{db}"), self.token(lane, "{db}")].concat());
                }
                self.lines.push(Line::Request(lane, request));
            }
            _ => {}
        }
        if self.chance(4) && !self.has_trouble {
            let words =
                ["", "", "SAFE", "SAFE,NOSAVE", "SAVE", "NOW,FORCE"][self.random.usize(..6)];
            self.lines.push(match words {
                "" => Line::Stop,
                words => Line::Shutdown(words.to_owned()),
            });
        } else {
            if self.random.bool() {
                self.lines.push(Line::Sleep(self.random.u64(..30)));
            }
            self.lines.push(Line::Kill);
        }
        if self.random.bool() {
            self.lines.push(Line::Check);
        }
    }

    /// The map that gives the server all slots, or the other.
    fn map(&mut self) {
        let slots = match self.random.bool() {
            true => Slots::All,
            false => Slots::Half,
        };
        self.lines.push(Line::Map(slots));
    }

    /// The name of a key. In a cluster some keys of a connection share a slot.
    fn name(&self, lane: usize, class: char, number: u32) -> String {
        let between = char::from(SEPARATOR);
        match (self.is_cluster, class) {
            (false, _) => format!("{lane}{between}{class}{number}"),
            (true, 'f') => format!("{lane}{between}{{{lane}f}}{class}{number}"),
            (true, _) => format!("{lane}{between}{{{lane}{}}}{class}{number}", number % 3),
        }
    }

    /// A disk that fails: until the end of the life, or until there is space again.
    fn trouble(&mut self) {
        self.has_trouble = true;
        let word = ["full", "full", "syncs", "writes"][self.random.usize(..4)];
        self.lines.push(Line::Trouble(word.to_owned()));
        for _ in 0..self.random.usize(..12) {
            let lane = self.lane();
            let request = self.request(lane);
            self.lines.push(Line::Request(lane, request));
        }
        if word == "full" && self.random.bool() {
            self.lines.push(Line::Trouble("none".to_owned()));
        }
    }

    fn maintain(&mut self) {
        match self.random.u32(..40) {
            0 => self.lines.push(Line::Relog),
            1 => self.lines.push(Line::Idle),
            2 if !self.is_idempotent => self.lines.push(Line::Snapshot),
            3 | 4 => {
                self.backups += 1;
                let name = format!("b{}", self.backups);
                self.lines.push(Line::Backup(name.clone()));
                self.open.push(name);
            }
            5 => self.lines.push(Line::Verify),
            _ => {
                let is_operator = |row: &&Row| matches!(row.effect, Effect::Operator);
                let row = self.choose(is_operator);
                let request = self.shape(0, row);
                // A crash is about one policy.
                let is_policy = request.contains(&Arg::word("appendfsync"));
                if self.crash.is_none() || !is_policy {
                    self.lines.push(Line::Operator(request));
                }
            }
        }
    }

    fn disturb(&mut self) {
        let lane = self.lane();
        if self.chance(3) {
            self.lines.push(Line::Kick(lane));
        } else if self.chance(3) {
            self.lines.push(Line::Finish(lane));
        } else {
            let request = self.request(lane);
            let share = self.random.u8(..100);
            self.lines.push(Line::Cut(lane, share, request));
        }
    }

    /// A script that lasts, at times in a transaction, and is ended by another connection.
    fn killed_script(&mut self) {
        let lane = self.lane();
        let mut request = vec![Arg::word("EVAL")];
        let shape = LASTING[self.random.usize(..LASTING.len())];
        for token in shape.split_whitespace() {
            request.extend(self.token(lane, token));
        }
        let mut requests = vec![request];
        if self.chance(4) {
            let [first, last] = ["MULTI", "EXEC"].map(|name| vec![Arg::word(name)]);
            requests = vec![first, requests.remove(0), self.request(lane), last];
        }
        let requests = requests.into_iter();
        self.lines
            .extend(requests.map(|request| Line::Request(lane, request)));
        if self.random.bool() {
            self.lines.push(Line::Sleep(self.random.u64(..40)));
        }
        let kill = ["SCRIPT", "KILL"].map(Arg::word);
        self.lines.push(Line::Operator(kill.to_vec()));
    }

    /// MULTI, some requests, and its end. How many requests those are.
    fn transaction(&mut self) -> usize {
        let lane = self.lane();
        let word = |name: &str| vec![Arg::word(name)];
        if self.random.u8(..3) == 0 {
            let name = self.random.u32(..VALUES);
            let key = Arg::word(self.name(lane, 'v', name));
            self.lines
                .push(Line::Request(lane, vec![Arg::word("WATCH"), key]));
            if self.random.u8(..3) == 0 {
                let request = self.request(lane);
                self.lines.push(Line::Request(lane, request));
            }
        }
        self.lines.push(Line::Request(lane, word("MULTI")));
        let count = self.random.usize(1..7);
        for _ in 0..count {
            let request = self.request(lane);
            self.lines.push(Line::Request(lane, request));
        }
        let end = if self.chance(12) { "DISCARD" } else { "EXEC" };
        self.lines.push(Line::Request(lane, word(end)));
        count
    }

    /// One key written again and again: a segment is soon full of garbage. How many requests that is.
    fn burst(&mut self) -> usize {
        let lane = self.lane();
        let key = self.token(lane, "{v}").remove(0);
        let len = self.random.usize(2_000..40_000);
        let count = self.random.usize(5..100);
        for _ in 0..count {
            let text = Arg::Text {
                len,
                seed: self.random.u32(..),
            };
            let request = vec![Arg::word("SET"), key.clone(), text];
            self.lines.push(Line::Request(lane, request));
        }
        count / 8
    }

    /// Keys that are written seldom, one after the other: a segment is soon full of what is live. How many
    /// requests that is.
    fn fill(&mut self) -> usize {
        let lane = self.lane();
        let len = self.random.usize(2_000..30_000);
        let count = self.random.usize(1..12);
        let first = self.random.u32(..SELDOM);
        for group in 0..count as u32 {
            let mut request = vec![Arg::word("MSET")];
            for name in 0..8 {
                let name = (first + group * 8 + name) % SELDOM;
                let key = self.name(lane, 'f', name);
                let seed = self.random.u32(..);
                request.extend([Arg::word(key), Arg::Text { len, seed }]);
            }
            self.lines.push(Line::Request(lane, request));
        }
        count
    }

    /// The history of one key in layers, each in segments of its own, of which some are mostly garbage and
    /// some are not: compaction moves some of it behind the rest. How many requests that is.
    fn layers(&mut self) -> usize {
        let lane = self.lane();
        let key = self.token(lane, "{v}").remove(0);
        let mut count = 0;
        for layer in 0..self.random.usize(2..6) {
            let seed = self.random.u32(..);
            let (name, len) = match self.random.u8(..6) {
                _ if layer == 0 => ("SET", 300_000),
                0..2 => ("MSET", 20_000),
                2 => ("SET", 300_000),
                _ => ("APPEND", 10),
            };
            let request = vec![Arg::word(name), key.clone(), Arg::Text { len, seed }];
            self.lines.push(Line::Request(lane, request));
            for _ in 0..self.random.usize(1..4) {
                count += if self.random.bool() {
                    self.fill()
                } else {
                    self.burst()
                };
            }
        }
        (0..2).for_each(|_| count += self.fill());
        let rewrite = vec![Arg::word("BGREWRITEAOF")];
        self.lines.extend([Line::Operator(rewrite), Line::Idle]);
        count
    }

    fn choose(&mut self, is_wanted: impl Fn(&&'static Row) -> bool) -> &'static Row {
        let rows: Vec<&'static Row> = COMMANDS.iter().filter(is_wanted).collect();
        let total: u32 = rows.iter().map(|row| row.weight).sum();
        let mut at = self.random.u32(..total);
        let row = rows.iter().find(|row| {
            let is_it = at < row.weight;
            at = at.wrapping_sub(row.weight);
            is_it
        });
        row.expect("the weights of all are more than any of them")
    }

    /// A request of a connection.
    pub(crate) fn request(&mut self, lane: usize) -> Request {
        // A cluster has one database.
        let (is_cluster, in_storm) = (self.is_cluster, self.in_storm);
        let is_wanted = |row: &&Row| match row.effect {
            Effect::Operator => false,
            Effect::Global(_) if in_storm => false,
            _ => !(is_cluster && matches!(row.name, "move" | "swapdb" | "debug")),
        };
        let row = self.choose(is_wanted);
        self.shape(lane, row)
    }

    /// A request of a command in one of its shapes.
    pub(crate) fn shape(&mut self, lane: usize, row: &'static Row) -> Request {
        let is_scarce = |shape: &str| SCARCE.iter().any(|word| shape.contains(word));
        let makes_idempotent = |shape: &str| shape.starts_with("{t}") && shape.contains("IDMP");
        let may_be = |shape: &&&str| {
            (self.is_scarce || !is_scarce(shape))
                && match self.is_idempotent {
                    true => **shape != "RELOAD",
                    false => !makes_idempotent(shape),
                }
        };
        let shapes: Vec<_> = row.shapes.iter().filter(may_be).collect();
        let shape = shapes[self.random.usize(..shapes.len())];
        let mut request = vec![Arg::word(row.name.to_ascii_uppercase())];
        for token in shape.split_whitespace() {
            request.extend(self.token(lane, token));
        }
        request
    }
}
