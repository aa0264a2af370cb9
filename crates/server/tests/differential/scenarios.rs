//! What a run does: the random stream, keys that expire, a large keyspace, and the closing look at
//! everything.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::report::Report;
use super::request::{Request, request};
use super::run::{BATCH_REQUESTS_MAX, CONNECTIONS, Diverged, Run};
use super::stream::Generator;
use super::support::Value;

/// Keys set and removed by one request of the large keyspace.
const LARGE_STEP: usize = 64;
const DATABASES: usize = 16;

impl Run<'_> {
    /// Sends each command of `names` with all numbers of words, then the stream, and looks at all that was
    /// left behind.
    pub(crate) fn stream(mut self, names: &str) -> Report {
        let arities = self.exchange(0, Generator::arities(names));
        let mut goes_on = self.goes_on(arities.map(drop));
        let mut turn = 0;
        while goes_on && self.report.commands < self.plan.commands {
            turn += 1;
            let batch = self.batch(turn % CONNECTIONS, BATCH_REQUESTS_MAX);
            goes_on = self.goes_on(batch);
        }
        for secret in self.plan.sabotage {
            let answer = self.pairs[0].ask_side(1, &request(secret).words);
            assert!(answer.is_ok(), "{secret}");
        }
        if goes_on {
            let swept = self.sweep();
            self.goes_on(swept);
        }
        self.report
    }

    /// Lets short times to live pass, and compares what is left of keys that are over.
    pub(crate) fn expiries(mut self, rounds: usize) -> Report {
        self.generator.counts_keys = false;
        for round in 0..rounds {
            let result = self.expiry_round(round);
            if !self.goes_on(result) {
                break;
            }
        }
        self.report
    }

    /// Fills one database with `keys` keys, thins it out again, and looks at it as a whole on the way.
    pub(crate) fn large_keyspace(mut self, keys: usize) -> Report {
        let result = self.grow_and_shrink(keys);
        self.goes_on(result);
        self.report
    }

    fn grow_and_shrink(&mut self, keys: usize) -> Result<(), Diverged> {
        let name = |number: usize| format!("key:{number}").into_bytes();
        for start in (0..keys).step_by(LARGE_STEP) {
            let pairs =
                (start..start + LARGE_STEP).flat_map(|number| [name(number), b"x".to_vec()]);
            self.exchange(0, vec![request("MSET").words(pairs)])?;
            // At every size that is a power of two, when an index is as full as it gets or has just grown.
            if (start + LARGE_STEP).is_power_of_two() {
                self.survey()?;
            }
        }
        for start in (0..keys).step_by(LARGE_STEP) {
            // A few keys stay everywhere.
            let doomed = (start..start + LARGE_STEP - 3).map(name);
            self.exchange(0, vec![request("UNLINK").words(doomed)])?;
        }
        self.survey()?;
        self.sweep()
    }

    /// All keys in every way that there is.
    fn survey(&mut self) -> Result<(), Diverged> {
        let questions = ["DBSIZE", "KEYS *", "KEYS key:?7*", "RANDOMKEY", "KEYS *"];
        self.exchange(0, questions.map(request).to_vec())?;
        for options in [
            "COUNT 10",
            "COUNT 1000",
            "MATCH *99*",
            "COUNT 77 TYPE string",
        ] {
            self.walk(0, &request("SCAN"), &request(options).words)?;
        }
        Ok(())
    }

    /// Compares all that the stream left in all databases.
    fn sweep(&mut self) -> Result<(), Diverged> {
        for database in 0..DATABASES {
            let select = request("SELECT").word(database.to_string());
            let replies = self.exchange(0, vec![select, request("KEYS *"), request("DBSIZE")])?;
            let Value::Array(keys) = &replies[1] else {
                continue;
            };
            let keys = keys.iter().filter_map(Value::bytes);
            let questions = keys.flat_map(|key| {
                [
                    "GET",
                    "HGETALL",
                    "SMEMBERS",
                    "ZCARD",
                    "PEXPIRETIME",
                    "TTL",
                    "OBJECT ENCODING",
                ]
                .map(|name| request(name).word(key))
                .into_iter()
                .chain([request("LRANGE").word(key).word("0").word("-1")])
            });
            let questions = questions.collect();
            self.exchange(0, questions)?;
        }
        Ok(())
    }

    /// Gives most keys a short time to live, waits until it is over, then goes on with the stream.
    fn expiry_round(&mut self, round: usize) -> Result<(), Diverged> {
        // In every second round redis-server removes nothing by itself, so that each command meets keys that
        // are over.
        let active = ["0", "1"][round % 2];
        self.pairs[0].ask(&["DEBUG", "SET-ACTIVE-EXPIRE", active]);
        let in_seconds = round == 0;
        let requests = self.short_lives(in_seconds);
        self.exchange(0, requests)?;
        let wait_ms = if in_seconds { 1_300 } else { 200 };
        std::thread::sleep(Duration::from_millis(wait_ms));
        for connection in 0..CONNECTIONS {
            let select = request("SELECT").word(connection.to_string());
            self.exchange(connection, vec![select])?;
            self.batch(connection, BATCH_REQUESTS_MAX)?;
        }
        self.touch_all()
    }

    /// Requests that set keys in four databases, most with a time to live of up to 100 ms, or of one second.
    fn short_lives(&mut self, in_seconds: bool) -> Vec<Request> {
        let mut requests = Vec::new();
        for database in 0..4 {
            requests.push(request("SELECT").word(database.to_string()));
            for key in 0..10 {
                let key = format!("s{key}");
                let value = self.shape.i32(-5..500).to_string();
                let set = request("SET").word(key.clone()).word(value.clone());
                let life = self.shape.u64(20..100);
                let end = now_ms() + life;
                requests.extend(match (in_seconds, self.shape.u8(0..8)) {
                    (_, 0 | 1) => vec![set],
                    (true, 2 | 3) => vec![request("SETEX").word(key).word("1").word(value)],
                    (true, 4 | 5) => vec![set.word("EX").word("1")],
                    (true, _) => vec![set, request("EXPIRE").word(key).word("1")],
                    (_, 2) => vec![set.word("PX").word(life.to_string())],
                    (_, 3) => vec![set.word("PXAT").word(end.to_string())],
                    (_, 4) => vec![
                        request("PSETEX")
                            .word(key)
                            .word(life.to_string())
                            .word(value),
                    ],
                    (_, 5) => vec![set, request("PEXPIRE").word(key).word(life.to_string())],
                    (_, 6) => vec![set, request("PEXPIREAT").word(key).word(end.to_string())],
                    _ => vec![
                        set,
                        request("GETEX").word(key).word("PX").word(life.to_string()),
                    ],
                });
            }
            for key in 0..6 {
                let key = format!("h{key}");
                let life = self.shape.u64(20..100).to_string();
                requests.push(
                    request("HSET")
                        .word(key.clone())
                        .words([b"f0".into(), b"1".into()]),
                );
                requests.extend(match self.shape.bool() {
                    true => Some(request("PEXPIRE").word(key).word(life)),
                    false => None,
                });
            }
        }
        requests
    }

    /// Asks for every key of the vocabulary; after that nothing that is over can still be counted.
    fn touch_all(&mut self) -> Result<(), Diverged> {
        for database in 0..DATABASES {
            let mut requests = vec![
                request("SELECT").word(database.to_string()),
                request("KEYS *"),
            ];
            let keys = (0..10).map(|key| format!("s{key}"));
            let keys = keys.chain((0..6).map(|key| format!("h{key}")));
            requests.extend(keys.map(|key| request("EXISTS").word(key)));
            requests.push(request("DBSIZE"));
            self.exchange(0, requests)?;
        }
        Ok(())
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("the clock is past 1970").as_millis() as u64
}
