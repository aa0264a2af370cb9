//! The words of a shape, and the arguments in their place.

use super::{
    BIG_NUMBERS, ENTRIES_OF_TIME, FIRST_TIME, FUTURE_MS, HASHES, HYPERLOGLOGS, LISTS, NEVER_THERE,
    NUMBERS, PLACES, POPULATED, Plan, SETS, SHORT_LIVES, SORTED_SETS, STREAMS, TIMED_STREAMS,
    VALUES,
};
use crate::torture::commands::{bits, payload, scripts, streams, words_of_items};
use crate::torture::model::DATABASES;
use crate::torture::script::Arg;

impl Plan {
    /// The arguments in the place of a word of a shape.
    pub(super) fn token(&mut self, lane: usize, token: &str) -> Vec<Arg> {
        let Some((token, rest)) = token.strip_prefix('{').and_then(|it| it.split_once('}')) else {
            return vec![Arg::word(token)];
        };
        let classes = [
            ("v", VALUES),
            ("n", NUMBERS),
            ("b", BIG_NUMBERS),
            ("x", SHORT_LIVES),
            ("h", HASHES),
            ("u", SETS),
            ("z", SORTED_SETS),
            ("p", PLACES),
            ("l", LISTS),
            ("y", HYPERLOGLOGS),
            ("s", STREAMS),
            ("t", TIMED_STREAMS),
            ("w", NEVER_THERE),
            ("d", POPULATED),
        ];
        if let Some((class, count)) = classes.iter().find(|(class, _)| *class == token) {
            let number = self.random.u32(..*count);
            let class = class.chars().next().expect("it has one");
            return vec![Arg::word(self.name(lane, class, number) + rest)];
        }
        self.entries += u64::from(token == "add");
        let now = FIRST_TIME + self.entries / ENTRIES_OF_TIME;
        if let Some(args) = streams::words(&mut self.random, now, token) {
            return args;
        }
        if let Some(arg) = scripts::words(&mut self.random, lane, token) {
            return vec![arg];
        }
        let databases = if self.is_cluster { 1 } else { DATABASES };
        let random = &mut self.random;
        let word = |number: i64| vec![Arg::word(format!("{number}{rest}"))];
        match token {
            "vs" => (0..random.usize(1..5))
                .flat_map(|_| self.token(lane, "{v}"))
                .collect(),
            "pairs" => (0..random.usize(1..5))
                .flat_map(|_| [self.token(lane, "{v}"), self.token(lane, "{text}")].concat())
                .collect(),
            "text" => vec![self.text()],
            "tail" => {
                let len = random.usize(..60);
                vec![Arg::Text {
                    len,
                    seed: random.u32(..),
                }]
            }
            "int" => word(random.i64(-3..4)),
            "big" => word([i64::MAX, i64::MIN + 1, 1 << 62][random.usize(..3)]),
            "quarter" => vec![Arg::word(format!("{}", f64::from(random.i32(-8..9)) / 4.0))],
            "secs" => word(100_000 + 1000 * random.i64(0..100)),
            "future" => word((FUTURE_MS + 1_000_000 * random.u64(..100)) as i64),
            "future-s" => word((FUTURE_MS / 1000 + 1000 * random.u64(..100)) as i64),
            "short" => word(random.i64(20..1500)),
            "hz" => word(random.i64(1..100)),
            "db" => word(random.i64(0..i64::from(databases))),
            "01" => word(random.i64(0..2)),
            "at" => {
                let at = self.len();
                word(at as i64)
            }
            "bit" => {
                let at = self.len() * 8 + self.random.usize(..8);
                word(at as i64)
            }
            // With a 0 more it is one in bits.
            "vast" => word(random.i64(70_000_000..400_000_000)),
            "cursor" => vec![Arg::Cursor],
            "fields" => bits::fields(random),
            other => words_of_items(random, other).unwrap_or_else(|| {
                let payload = payload::word(random, other);
                vec![payload.unwrap_or_else(|| panic!("shapes have no {{{other}}}"))]
            }),
        }
    }

    fn text(&mut self) -> Arg {
        let len = self.len();
        let seed = self.random.u32(..);
        Arg::Text { len, seed }
    }

    /// A length of any kind: most are short, some are about where values become large, or go to files.
    fn len(&mut self) -> usize {
        /// Lengths around which something changes.
        const BORDERS: [usize; 5] = [4096, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
        let (random, shrink) = (&mut self.random, self.shrink);
        if self.crash.is_some_and(|crash| crash.is_small) {
            return match random.u8(..40) {
                0 => random.usize(..150_000),
                1..8 => random.usize(..2000),
                _ => random.usize(..60),
            };
        }
        match random.u32(..200) {
            0..12 => 0,
            12..90 => random.usize(..60),
            90..120 => random.usize(..2000),
            120..155 => random.usize(5_000..40_000),
            155..170 => BORDERS[random.usize(..4)] + random.usize(..4) - 2,
            170..194 => random.usize(200_000..700_000) / shrink,
            194..198 => BORDERS[4] + random.usize(..4) - 2,
            _ => random.usize(1_000_000..5_000_000) / shrink,
        }
    }
}
