//! Lists beyond what golden scripts can say: large ones that change while they are told, what is left after a
//! restart, and connections that wait on several workers.

use crate::support;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use fastrand::Rng;
use rustix::process::Signal;
use support::{Client, PATIENCE, Server, Target, Value, eventually, texts as items};

const ELEMENTS: usize = 200_000;
const TWO: Target = Target::Ferrite { threads: 2 };
const FOUR: Target = Target::Ferrite { threads: 4 };
const LOGGED: Target = Target::Logged { threads: 2 };

/// Pushes `ELEMENTS` elements, many at a time.
fn fill(client: &mut Client, key: &str) {
    for first in (0..ELEMENTS).step_by(10_000) {
        let mut words = vec!["RPUSH".to_string(), key.to_string()];
        // Long, so that no socket takes all of them.
        words.extend((first..first + 10_000).map(|number| format!("{number:0>120}")));
        client.call(&words).expect("a reply");
    }
}

#[test]
fn a_large_list_is_told_as_it_was_while_it_changes() {
    let server = Server::start(Target::Logged { threads: 1 }, &[]);
    let (mut slow, mut other) = (server.client(), server.client());
    slow.receive_little_ahead();
    let Value::Int(id) = slow.ask("CLIENT ID") else {
        panic!("no number");
    };
    for change in [
        "LPUSH list x",
        "LTRIM list 150000 -1",
        "LREM list 0 x",
        "DEL list",
    ] {
        fill(&mut other, "list");
        other.ask("LSET list 100000 x");
        slow.send(&["LRANGE", "list", "1", "-2"])
            .expect("it is sent");
        eventually("the client has unread bytes", || {
            let list = other.ask(&format!("CLIENT LIST ID {id}")).text();
            list.contains(" omem=") && !list.contains(" omem=0 ")
        });
        assert!(!matches!(other.ask(change), Value::Error(_)));
        let told = items(slow.read(PATIENCE).expect("a reply"));
        let wanted = (1..ELEMENTS - 1).map(|number| match number {
            100_000 => "x".to_owned(),
            _ => format!("{number:0>120}"),
        });
        assert!(told.into_iter().eq(wanted), "{change}");
        other.ask("DEL list");
    }
}

/// LPOS of a large list finds elements where they were at one moment, and others are served meanwhile.
#[test]
fn a_large_list_is_searched_as_it_was_while_it_changes() {
    const EVERY: usize = 1000;
    let server = Server::start(LOGGED, &[]);
    let (mut slow, mut other) = (server.client(), server.client());
    for first in (0..ELEMENTS).step_by(EVERY) {
        let words = ["RPUSH", "list", "x"].map(str::to_owned).into_iter();
        let others = (first + 1..first + EVERY).map(|number| number.to_string());
        let words: Vec<_> = words.chain(others).collect();
        other.call(&words).expect("a reply");
    }
    let searches = ["COUNT 0", "COUNT 0 RANK -1", "COUNT 150 RANK 20"];
    let (mut front, mut changed, mut rounds) = (0, 0, 0);
    // Until the list has changed often between the replies of searches.
    while changed < 20 {
        for options in searches {
            let request = format!("LPOS list x {options}");
            let words: Vec<_> = request.split(' ').collect();
            slow.send(&words).expect("it is sent");
        }
        slow.send(&["SET", "done", "yes"]).expect("it is sent");
        let first = front;
        while other.ask("EXISTS done") == Value::Int(0) {
            assert!(matches!(other.ask("LPUSH list new"), Value::Int(_)));
            front += 1;
        }
        let (mut shift, mut replies) = (first, Vec::new());
        for _ in searches {
            let reply = support::items(slow.read(PATIENCE).expect("a reply"));
            let ranks = reply.into_iter().map(|rank| match rank {
                Value::Int(rank) => rank as usize,
                other => panic!("{other:?} is no rank"),
            });
            replies.push(ranks.collect::<Vec<_>>());
        }
        replies[1].reverse();
        for (ranks, wanted) in replies.iter().zip([0..200, 0..200, 19..169]) {
            let here = ranks[0] - wanted.start * EVERY;
            assert!(
                (shift..=front).contains(&here),
                "{here} of {shift} to {front}"
            );
            changed += usize::from(here > shift);
            shift = here;
            assert!(
                ranks
                    .iter()
                    .copied()
                    .eq(wanted.map(|number| number * EVERY + here))
            );
        }
        assert_eq!(slow.read(PATIENCE).expect("a reply").text(), "OK");
        other.ask("DEL done");
        rounds += 1;
        assert!(rounds < 1000, "nobody is served while LPOS runs");
    }
    // In a transaction, too, and with what is no match.
    slow.ask("MULTI");
    slow.ask("LPOS list x RANK -1");
    slow.ask("LPOS list nope");
    let replies = support::items(slow.ask("EXEC"));
    let last = ELEMENTS - EVERY + front;
    assert_eq!(replies, [Value::Int(last as i64), Value::NullBulk]);
    assert_eq!(slow.ask("LPOS list nope"), Value::NullBulk);
    assert_eq!(
        slow.ask("LPOS list x MAXLEN 1"),
        match front {
            0 => Value::Int(0),
            _ => Value::NullBulk,
        }
    );
}

#[test]
fn a_queue_of_any_length_is_there_again_after_a_kill() {
    let mut server = Server::start(LOGGED, &[]);
    let mut model: Vec<String> = Vec::new();
    for round in 0..4 {
        let mut client = server.client();
        assert_eq!(
            items(client.ask("LRANGE queue 0 -1")),
            model,
            "round {round}"
        );
        let mut random = Rng::with_seed(round);
        for step in 0..4000 {
            let element = format!("{round}:{step}");
            client.ask(&format!("LPUSH queue {element}"));
            model.insert(0, element);
            if model.len() > 800 {
                client.ask("LTRIM queue 0 799");
                model.truncate(800);
            }
            match random.u8(..20) {
                0 => {
                    client.ask("RPOP queue 3");
                    model.truncate(model.len().saturating_sub(3));
                }
                1 => {
                    let at = random.usize(..model.len());
                    let pivot = &model[at];
                    client.ask(&format!("LINSERT queue BEFORE {pivot} {step}"));
                    model.insert(at, step.to_string());
                }
                2 => {
                    let at = random.usize(..model.len());
                    client.ask(&format!("LREM queue 1 {}", model[at]));
                    let first = model.iter().position(|element| *element == model[at]);
                    model.remove(first.expect("it is there"));
                }
                _ => {}
            }
        }
        drop(client);
        server.start_again(LOGGED, Signal::KILL, &[]);
    }
}

/// Takes elements until it gets an end for one.
fn consume(server: &Server, seed: u64, keys: usize) -> Vec<String> {
    let (mut client, mut random) = (server.client(), Rng::with_seed(seed));
    let mut taken = Vec::new();
    loop {
        let (one, other) = (random.usize(..keys), random.usize(..keys));
        let timeout = ["0.001", "0.003", "0.02", "0.1"][random.usize(..4)];
        let request = match random.u8(..4) {
            0 => format!("BLPOP k{one} k{other} {timeout}"),
            1 => format!("BRPOP k{one} {timeout}"),
            2 => format!("BLMPOP {timeout} 2 k{one} k{other} RIGHT COUNT 3"),
            _ => format!("BLMOVE k{one} k{other} LEFT RIGHT {timeout}"),
        };
        let elements = match client.ask(&request) {
            Value::Array(reply) if request.starts_with("BLM") => items(reply[1].clone()),
            Value::Array(reply) => vec![reply[1].text()],
            // It was moved: it is still to be taken.
            Value::Bulk(_) | Value::NullArray => continue,
            other => panic!("{other:?}"),
        };
        let ends = elements.iter().filter(|element| *element == "end").count();
        taken.extend(elements.into_iter().filter(|element| element != "end"));
        if ends > 0 {
            // The others are for others.
            for _ in 1..ends {
                client.ask(&format!("RPUSH k{one} end"));
            }
            return taken;
        }
    }
}

#[test]
fn every_element_is_taken_once_by_those_who_wait() {
    const KEYS: usize = 3;
    const PRODUCERS: usize = 3;
    const EACH: usize = 400;
    const CONSUMERS: usize = 6;
    for target in [TWO, FOUR, LOGGED] {
        let server = Server::start(target, &[]);
        let left = AtomicUsize::new(PRODUCERS);
        let taken: Vec<String> = thread::scope(|scope| {
            let (server, left) = (&server, &left);
            let consumers: Vec<_> = (0..CONSUMERS)
                .map(|seed| scope.spawn(move || consume(server, seed as u64, KEYS)))
                .collect();
            for producer in 0..PRODUCERS {
                scope.spawn(move || {
                    let mut client = server.client();
                    let mut random = Rng::with_seed(100 + producer as u64);
                    for number in 0..EACH {
                        let key = random.usize(..KEYS);
                        let push = ["LPUSH", "RPUSH"][random.usize(..2)];
                        let request = format!("{push} k{key} {producer}:{number}");
                        match random.u8(..8) {
                            0 => {
                                client.ask("MULTI");
                                client.ask(&request);
                                client.ask("EXEC");
                            }
                            _ => drop(client.ask(&request)),
                        }
                    }
                    left.fetch_sub(1, Relaxed);
                });
            }
            eventually("the producers", || left.load(Relaxed) == 0);
            let mut client = server.client();
            eventually("all is taken", || {
                (0..KEYS).all(|key| client.ask(&format!("LLEN k{key}")) == Value::Int(0))
            });
            for number in 0..CONSUMERS {
                client.ask(&format!("RPUSH k{} end", number % KEYS));
            }
            let taken = consumers.into_iter().map(|consumer| consumer.join());
            taken
                .flat_map(|taken| taken.expect("no consumer fails"))
                .collect()
        });
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for element in &taken {
            *counts.entry(element.clone()).or_default() += 1;
        }
        assert!(counts.values().all(|&count| count == 1), "{target}");
        assert_eq!(counts.len(), PRODUCERS * EACH, "{target}");
    }
}

/// Lets a client wait, and returns when it does.
fn block(admin: &mut Client, client: &mut Client, request: &str) {
    let Value::Int(id) = client.ask("CLIENT ID") else {
        panic!("no number");
    };
    let words: Vec<&str> = request.split(' ').collect();
    client.send(&words).expect("it is sent");
    eventually("the wait", || {
        let list = admin.ask(&format!("CLIENT LIST ID {id}")).text();
        list.contains(" flags=b ")
    });
}

#[test]
fn those_who_wait_for_elements_are_served_in_the_order_in_which_they_came() {
    for target in [TWO, FOUR] {
        let server = Server::start(target, &[]);
        let mut admin = server.client();
        let requests = [
            "BLPOP k 0",
            // Waits for another kind: later waits are served all the same.
            "BZPOPMIN k 0",
            "BLMPOP 0 1 k LEFT COUNT 2",
            "BLMOVE k other LEFT RIGHT 0",
            "BRPOP k 0",
        ];
        let mut waiting: Vec<Client> = requests.iter().map(|_| server.client()).collect();
        for (request, client) in requests.iter().zip(&mut waiting) {
            block(&mut admin, client, request);
        }
        let mut writer = server.client();
        let pushed = writer.ask("RPUSH k 1 2 3 4 5 6");
        assert_eq!(pushed, Value::Int(6));
        let mut read = |at: usize| waiting[at].read(PATIENCE).expect("a reply").text();
        assert_eq!(read(0), r#"["k", "1"]"#);
        assert_eq!(read(2), r#"["k", ["2", "3"]]"#);
        assert_eq!(read(3), r#"4"#);
        assert_eq!(read(4), r#"["k", "6"]"#);
        assert_eq!(items(writer.ask("LRANGE k 0 -1")), ["5"]);
        assert_eq!(items(writer.ask("LRANGE other 0 -1")), ["4"]);
        writer.ask("DEL k");
        writer.ask("ZADD k 1 v");
        assert_eq!(read(1), r#"["k", "v", "1"]"#);
    }
}

#[test]
fn who_is_killed_or_goes_takes_nothing() {
    let server = Server::start(TWO, &[]);
    let (mut admin, mut killed, mut gone) = (server.client(), server.client(), server.client());
    let mut last = server.client();
    block(&mut admin, &mut killed, "BLPOP k 0");
    block(&mut admin, &mut gone, "BLMOVE k other LEFT LEFT 0");
    block(&mut admin, &mut last, "BLPOP k 0");
    let list = admin.ask("CLIENT LIST").text();
    let line = list.lines().find(|line| line.contains("cmd=blpop"));
    let id = line.and_then(|line| line.split(' ').find_map(|field| field.strip_prefix("id=")));
    admin.ask(&format!("CLIENT KILL ID {}", id.expect("one waits")));
    drop(gone);
    eventually("two are gone", || {
        let info = admin.ask("INFO clients").text();
        info.contains("blocked_clients:1")
    });
    admin.ask("RPUSH k 1");
    let read = last.read(PATIENCE).expect("a reply").text();
    assert_eq!(read, r#"["k", "1"]"#);
    assert!(killed.is_closed(PATIENCE));
}

#[test]
fn lists_come_back_with_their_encodings() {
    let mut server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    let names = ["few", "many", "was-many", "long"];
    client.ask("RPUSH few 1 a");
    for number in 0..3000 {
        client.ask(&format!("RPUSH many {number}"));
        client.ask(&format!("LPUSH was-many element:{number}"));
    }
    client.ask("LTRIM was-many 10 20");
    client.ask(&format!("RPUSH long {}", "x".repeat(9000)));
    let wanted = ["listpack", "quicklist", "listpack", "quicklist"];
    let encodings = |client: &mut Client| {
        names.map(|name| client.ask(&format!("OBJECT ENCODING {name}")).text())
    };
    assert_eq!(encodings(&mut client), wanted);
    let digest = client.ask("DEBUG DIGEST");
    for way in ["DEBUG LOADAOF", "restart", "compaction", "DEBUG RELOAD"] {
        match way {
            "restart" => {
                drop(client);
                server.start_again(LOGGED, Signal::TERM, &[]);
                client = server.client();
            }
            "compaction" => drop(client.ask("BGREWRITEAOF")),
            _ => assert_eq!(client.ask(way).text(), "OK"),
        }
        assert_eq!(client.ask("DEBUG DIGEST"), digest, "{way}");
        assert_eq!(encodings(&mut client), wanted, "{way}");
    }
}

/// Bytes of an element in a listpack.
fn listed(element: &[u8]) -> usize {
    let text = str::from_utf8(element).expect("it is text");
    let bytes = match text.parse::<i64>() {
        Ok(0..=127) => 1,
        Ok(-4096..=4095) => 2,
        Ok(-32_768..=32_767) => 3,
        Ok(-8_388_608..=8_388_607) => 4,
        Ok(number) if i32::try_from(number).is_ok() => 5,
        Ok(_) => 9,
        Err(_) if element.len() < 64 => 1 + element.len(),
        Err(_) => 2 + element.len(),
    };
    bytes + if bytes < 128 { 1 } else { 2 }
}

#[test]
fn encodings_follow_the_bytes_of_all_elements() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    for seed in 0..6 {
        let mut random = Rng::with_seed(seed);
        let mut list = Modelled::new(seed);
        for step in 0..4000 {
            list.change(&mut client, &mut random, step);
            if list.elements.is_empty() {
                continue;
            }
            let wanted = if list.is_packed {
                "listpack"
            } else {
                "quicklist"
            };
            let found = client.ask(&format!("OBJECT ENCODING {}", list.key)).text();
            let (len, bytes) = (list.elements.len(), list.bytes());
            assert_eq!(
                found, wanted,
                "seed {seed}, step {step}: {len} of {bytes} bytes"
            );
        }
        assert!(list.passes >= 2, "seed {seed}");
    }
}

/// A list, and the encoding that it has.
struct Modelled {
    seed: u64,
    key: String,
    elements: VecDeque<Vec<u8>>,
    is_packed: bool,
    /// How often the encoding has changed.
    passes: usize,
}

impl Modelled {
    fn new(seed: u64) -> Modelled {
        Modelled {
            seed,
            key: format!("list:{seed}"),
            elements: VecDeque::new(),
            is_packed: true,
            passes: 0,
        }
    }

    fn bytes(&self) -> usize {
        7 + self.elements.iter().map(|one| listed(one)).sum::<usize>()
    }

    fn element(&self, random: &mut Rng) -> Vec<u8> {
        let text = match (self.seed % 3, random.u8(..20)) {
            (0, _) => random.i32(..5000).to_string(),
            (1, 0) => "x".repeat(random.usize(50..150)),
            (1, _) => "y".repeat(random.usize(..9)),
            (_, 0) => random.i64(..).to_string(),
            _ => (random.i64(..) >> random.u32(..60)).to_string(),
        };
        text.into_bytes()
    }

    /// Notes the encoding after a change.
    fn settle(&mut self, has_grown: bool, has_shrunk: bool) {
        let (before, bytes) = (self.is_packed, self.bytes());
        if before && has_grown {
            self.is_packed = bytes <= 8192;
        }
        if !self.is_packed && has_shrunk {
            self.is_packed = bytes <= 4096;
        }
        self.passes += usize::from(before != self.is_packed);
    }

    /// Makes a change of the list on both sides: lists grow for a while, then they shrink.
    fn change(&mut self, client: &mut Client, random: &mut Rng, step: usize) {
        let grows = (step / 1000).is_multiple_of(3) ^ (random.u8(..5) == 0);
        let count = random.usize(1..12);
        let new: Vec<_> = (0..count).map(|_| self.element(random)).collect();
        let rank = random.usize(..self.elements.len() + 1);
        let (name, number) = match (grows, random.u8(..6)) {
            _ if self.elements.is_empty() => {
                // The key is a new one.
                self.is_packed = true;
                self.elements.extend(new.clone());
                ("RPUSH", None)
            }
            (true, 0..3) => {
                self.elements.extend(new.clone());
                ("RPUSH", None)
            }
            (true, _) => {
                new.iter()
                    .for_each(|one| self.elements.push_front(one.clone()));
                ("LPUSH", None)
            }
            (false, 0) if rank < self.elements.len() => {
                self.elements[rank].clone_from(&new[0]);
                ("LSET", Some(rank))
            }
            (false, 1..3) => {
                self.elements.drain(..count.min(self.elements.len()));
                ("LPOP", Some(count))
            }
            (false, 3) => {
                let last = self.elements.pop_back().expect("it has some");
                self.settle(false, true);
                self.elements.push_front(last);
                ("RPOPLPUSH", None)
            }
            (false, _) => {
                let left = self.elements.len().saturating_sub(count);
                self.elements.truncate(left);
                ("RPOP", Some(count))
            }
        };
        let is_push = matches!(name, "RPUSH" | "LPUSH");
        let number = number.map(|number| number.to_string());
        let mut request = vec![name.as_bytes(), self.key.as_bytes()];
        request.extend(number.as_ref().map(|number| number.as_bytes()));
        match name {
            "LSET" => request.push(&new[0]),
            "RPOPLPUSH" => request.push(self.key.as_bytes()),
            _ if is_push => request.extend(new.iter().map(Vec::as_slice)),
            _ => {}
        }
        client.call(&request).expect("a reply");
        let is_move = name == "RPOPLPUSH";
        self.settle(is_push || is_move || name == "LSET", !is_push && !is_move);
    }
}
