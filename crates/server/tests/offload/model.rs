//! Random commands on more data than fits into memory, compared with a model, through kills of the server.
//!
//! Every reply is what the model says. `appendfsync always`, so after a kill everything is there that was
//! answered.

use std::collections::HashMap;

use rustix::process::Signal;

use super::support::{Client, PATIENCE, Server, Target, Value, encode_request};
use super::{bulk, info, ok, settles};

/// Lives of the server, and batches of requests in each.
const LIVES: usize = 3;
const BATCHES: usize = 60;
/// Requests sent at once.
const BATCH: usize = 50;
/// The longest value that is set; the average is half of it.
const LONGEST: usize = 20_000;

/// What there should be. Values are known by what they are made of.
#[derive(Default)]
struct Model {
    keys: HashMap<String, Entry>,
}

#[derive(Clone, Default)]
struct Entry {
    value: Vec<u8>,
    expires: bool,
}

/// A value that no other has: its number again and again.
fn value(number: u64, len: usize) -> Vec<u8> {
    let unit = format!("{number:016x}");
    unit.bytes().cycle().take(len).collect()
}

fn words(words: &[&[u8]]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.to_vec()).collect()
}

impl Model {
    fn get(&self, key: &str) -> Value {
        self.keys
            .get(key)
            .map_or(Value::NullBulk, |entry| bulk(&entry.value))
    }

    /// A request that reads, with its reply.
    fn read(&self, kind: u32, names: [&String; 3]) -> (Vec<Vec<u8>>, Value) {
        let [one, two, three] = names.map(String::as_bytes);
        match kind {
            0..30 => (words(&[b"GET", one]), self.get(names[0])),
            76..86 => {
                let replies = names.map(|key| self.get(key));
                (
                    words(&[b"MGET", one, two, three]),
                    Value::Array(replies.to_vec()),
                )
            }
            _ => {
                let entry = self.keys.get(names[0]);
                let len = entry.map_or(0, |entry| entry.value.len());
                (words(&[b"STRLEN", one]), Value::Int(len as i64))
            }
        }
    }

    /// Makes up a request and does it. Returns it with its reply.
    fn step(&mut self, random: &mut fastrand::Rng, keys: usize) -> (Vec<Vec<u8>>, Value) {
        // A few keys are used often, most seldom.
        let mut name = || {
            let skewed = random.f64().powi(4);
            format!("key:{}", (skewed * keys as f64) as usize)
        };
        let (one, two, three) = (name(), name(), name());
        let key = one.as_bytes();
        match random.u32(..100) {
            kind @ (0..30 | 76..86 | 94..96) => self.read(kind, [&one, &two, &three]),
            30..55 => {
                let value = value(random.u64(..), random.usize(1..LONGEST));
                let request = words(&[b"SET", key, &value]);
                let expires = false;
                self.keys.insert(one, Entry { value, expires });
                (request, ok())
            }
            55..65 => {
                let more = value(random.u64(..), random.usize(1..200));
                let request = words(&[b"APPEND", key, &more]);
                let entry = self.keys.entry(one).or_default();
                entry.value.extend_from_slice(&more);
                (request, Value::Int(entry.value.len() as i64))
            }
            65..70 => {
                let there = self.keys.remove(&one).is_some();
                (words(&[b"DEL", key]), Value::Int(i64::from(there)))
            }
            70..76 => {
                let entry = self.keys.get_mut(&one);
                let there = entry.map(|entry| entry.expires = true).is_some();
                let request = words(&[b"EXPIRE", key, b"100000"]);
                (request, Value::Int(i64::from(there)))
            }
            86..90 => {
                let request = words(&[b"RENAME", key, two.as_bytes()]);
                match self.keys.remove(&one) {
                    None => (request, Value::Error(b"ERR no such key".to_vec())),
                    Some(entry) => {
                        self.keys.insert(two, entry);
                        (request, ok())
                    }
                }
            }
            90..94 => {
                let part = value(random.u64(..), random.usize(1..100));
                let offset = random.usize(..LONGEST);
                let request = words(&[b"SETRANGE", key, offset.to_string().as_bytes(), &part]);
                let entry = self.keys.entry(one).or_default();
                let len = entry.value.len().max(offset + part.len());
                entry.value.resize(len, 0);
                entry.value[offset..offset + part.len()].copy_from_slice(&part);
                (request, Value::Int(len as i64))
            }
            96..98 => {
                let reply = self.get(&one);
                let value = value(random.u64(..), 500);
                let request = words(&[b"SET", key, &value, b"GET"]);
                let expires = false;
                self.keys.insert(one, Entry { value, expires });
                (request, reply)
            }
            _ => {
                let ttl = self.keys.get_mut(&one).map(|entry| {
                    let before = entry.expires;
                    entry.expires = false;
                    before
                });
                let request = words(&[b"PERSIST", key]);
                (request, Value::Int(i64::from(ttl.unwrap_or(false))))
            }
        }
    }
}

/// Sends requests all at once and compares what comes back.
fn exchange(client: &mut Client, requests: &[(Vec<Vec<u8>>, Value)]) {
    let bytes: Vec<u8> = requests
        .iter()
        .flat_map(|(request, _)| encode_request(request))
        .collect();
    client.send_bytes(&bytes).expect("the server reads");
    for (request, expected) in requests {
        let reply = client.read(PATIENCE).expect("the server replies");
        assert!(
            reply == *expected,
            "{} {}: {:.200} in the place of {:.200}",
            String::from_utf8_lossy(&request[0]),
            String::from_utf8_lossy(&request[1]),
            format!("{reply:?}"),
            format!("{expected:?}")
        );
    }
}

#[test]
fn a_model_agrees_through_kills() {
    let wanted = std::env::var("FERRITE_OFFLOAD_MB");
    let mb: usize = wanted.map_or(100, |mb| {
        mb.parse().expect("FERRITE_OFFLOAD_MB is a number")
    });
    let seed = std::env::var("FERRITE_SEED").ok();
    let seed = seed.map_or(7, |seed| seed.parse().expect("FERRITE_SEED is a number"));
    let keys = mb * 1_000_000 / (LONGEST / 2);
    let limit = format!("{}mb", (mb / 10).max(40));
    let options = [
        "--shards",
        "16",
        "--maxmemory-policy",
        "offload",
        "--maxmemory",
        &limit,
        "--log-segment-size",
        "8mb",
    ];
    let target = Target::Synced { threads: 2 };
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = Model::default();
    let mut server = Server::start(target, &options);
    let mut client = server.client();
    for first in (0..keys).step_by(BATCH) {
        let batch: Vec<_> = (first..keys.min(first + BATCH))
            .map(|number| {
                let (key, value) = (
                    format!("key:{number}"),
                    value(random.u64(..), 1 + number % LONGEST),
                );
                let request = vec![b"SET".to_vec(), key.clone().into_bytes(), value.clone()];
                let expires = false;
                model.keys.insert(key, Entry { value, expires });
                (request, ok())
            })
            .collect();
        exchange(&mut client, &batch);
    }
    let most = info(&mut client, "maxmemory");
    let mut reads = 0;
    for _ in 0..LIVES {
        for _ in 0..BATCHES * mb.div_ceil(100) {
            let batch: Vec<_> = (0..BATCH).map(|_| model.step(&mut random, keys)).collect();
            exchange(&mut client, &batch);
            settles(&mut client, most);
        }
        reads += info(&mut client, "disk_reads");
        // Now and then all values are left in the log at first, and come back as far as there is memory.
        let lazy = [&options[..], &["--log-lazy-load-size", "1"]].concat();
        let options = if random.bool() { &lazy[..] } else { &options };
        server.start_again(target, Signal::KILL, options);
        client = server.client();
    }
    assert!(reads > 0);
    assert_eq!(client.ask("DBSIZE"), Value::Int(model.keys.len() as i64));
    let names: Vec<String> = model.keys.keys().cloned().collect();
    for part in names.chunks(BATCH) {
        let batch: Vec<_> = part
            .iter()
            .map(|key| {
                let request = vec![b"GET".to_vec(), key.clone().into_bytes()];
                (request, model.get(key))
            })
            .collect();
        exchange(&mut client, &batch);
    }
}
