//! Streams of many entries: single requests would take long to make them.

use super::{Plan, STREAMS, TIMED_STREAMS};
use crate::torture::script::{Arg, Line, Request};

impl Plan {
    /// One stream that gets many entries, which a group of it gets, and other requests for it. Returns how
    /// many requests that are.
    pub(super) fn grow(&mut self) -> usize {
        let lane = self.lane();
        let key = self.token(lane, "{s}").remove(0);
        let request = |words: &[&str]| -> Request {
            let place = |word: &&str| {
                if *word == "KEY" {
                    key.clone()
                } else {
                    Arg::word(*word)
                }
            };
            words.iter().map(place).collect()
        };
        if self.random.bool() {
            let create = request(&["XGROUP", "CREATE", "KEY", "g0", "0", "MKSTREAM"]);
            self.lines.push(Line::Request(lane, create));
        }
        let count = self.random.usize(10..300);
        let len = [0, 30, 400, 3000][self.random.usize(..4)];
        for _ in 0..count {
            let mut add = request(&["XADD", "KEY"]);
            add.extend([self.token(lane, "{add}"), self.token(lane, "{entry}")].concat());
            if len > 0 {
                let (len, seed) = (self.random.usize(..len), self.random.u32(..));
                add.extend([Arg::word("more"), Arg::Text { len, seed }]);
            }
            self.lines.push(Line::Request(lane, add));
        }
        let words = [
            "XREADGROUP",
            "GROUP",
            "g0",
            "consumer 0",
            "STREAMS",
            "KEY",
            ">",
        ];
        self.lines.push(Line::Request(lane, request(&words)));
        for _ in 0..self.random.usize(..20) {
            let request = self.request_for(lane, &key);
            self.lines.push(Line::Request(lane, request));
        }
        count / 8
    }

    /// A request of streams, for one of them.
    fn request_for(&mut self, lane: usize, key: &Arg) -> Request {
        let streams: Vec<Arg> = [('s', STREAMS), ('t', TIMED_STREAMS)]
            .iter()
            .flat_map(|&(class, count)| (0..count).map(move |number| (class, number)))
            .map(|(class, number)| Arg::word(self.name(lane, class, number)))
            .collect();
        let row = self.choose(|row| row.name.starts_with('x'));
        let mut request = self.shape(lane, row);
        let of_others = request.iter_mut().filter(|arg| streams.contains(arg));
        of_others.for_each(|arg| arg.clone_from(key));
        request
    }

    /// At times a request for a stream, of another connection or of this one.
    fn between(&mut self, lane: usize, key: &Arg) {
        let request = match self.random.u8(..8) {
            0..4 => return,
            4 => vec![Arg::word("DEL"), key.clone()],
            5 => {
                let words = ["RESTORE", "0", "REPLACE"].map(Arg::word);
                let payload = self.token(lane, "{stream}").remove(0);
                let [name, expiry, replace] = words;
                vec![name, key.clone(), expiry, payload, replace]
            }
            _ => self.request_for(lane, key),
        };
        let is_own = self.chance(4);
        self.lines.push(match is_own {
            true => Line::Request(lane, request),
            false => Line::Beside(lane, request),
        });
    }

    /// Something about the stream for which connections wait.
    pub(super) fn queue(&mut self) {
        for _ in 0..self.random.usize(1..6) {
            let verb = match self.random.u8(..40) {
                0..14 => "add",
                14..24 => "group",
                24..28 => "read",
                28..30 => "newest",
                30..33 => "unblock",
                33 => "kill",
                34 => "delete",
                35 => "drop",
                _ => "settle",
            };
            let number = self.random.usize(..8);
            self.lines.push(Line::Queue(verb.to_owned(), number));
        }
    }

    /// A transaction about a stream that is watched, while another connection changes it, or does not. How
    /// many requests those are.
    pub(super) fn watch_stream(&mut self) -> usize {
        let lane = self.lane();
        let class = if self.chance(3) { "{t}" } else { "{s}" };
        let key = self.token(lane, class).remove(0);
        let word = |name: &str| vec![Arg::word(name)];
        let watch = vec![Arg::word("WATCH"), key.clone()];
        self.lines.push(Line::Request(lane, watch));
        self.between(lane, &key);
        self.lines.push(Line::Request(lane, word("MULTI")));
        let count = self.random.usize(1..5);
        for _ in 0..count {
            let request = self.request_for(lane, &key);
            self.lines.push(Line::Request(lane, request));
        }
        self.between(lane, &key);
        self.lines.push(Line::Request(lane, word("EXEC")));
        count
    }
}
