//! Streams of many entries: single requests would take long to make them.

use super::{Plan, STREAMS};
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
        let streams: Vec<Arg> = (0..STREAMS)
            .map(|number| Arg::word(self.name(lane, 's', number)))
            .collect();
        for _ in 0..self.random.usize(..20) {
            let row = self.choose(|row| row.name.starts_with('x'));
            let mut request = self.shape(lane, row);
            let of_others = request.iter_mut().filter(|arg| streams.contains(arg));
            of_others.for_each(|arg| arg.clone_from(&key));
            self.lines.push(Line::Request(lane, request));
        }
        count / 8
    }
}
