//! Scripts that name all of their keys run beside others, each alone with its keys.

use crate::support;

use support::{Client, Server, Target, Value};

const TARGET: Target = Target::Logged { threads: 4 };

/// Counters of the first test.
const COUNTERS: usize = 6;

/// Scripts that count at two keys, by a read and a write that are nothing without each other. The first ones
/// are proven to use no other keys.
const COUNTING: [&str; 4] = [
    "local n = tonumber(redis.call('get', KEYS[1]) or 0) \
     redis.call('set', KEYS[1], n + 1) return redis.call('incr', KEYS[2])",
    "local one, two = KEYS[1], KEYS[2] local values = redis.call('mget', two, one) \
     redis.call('mset', KEYS[1], (values[2] or 0) + 1, two, (values[1] or 0) + 1) return 1",
    "for _, key in ipairs(KEYS) do \
     redis.call('set', key, (redis.call('get', key) or 0) + 1) end return 1",
    "local one = KEYS[1] .. '' local n = redis.call('get', one) or 0 \
     redis.call('set', one, n + 1) return redis.call('incr', KEYS[2])",
];

/// Counts at two keys, by a script or by other requests.
fn count(client: &mut Client, form: usize, one: &str, two: &str) {
    let Some(script) = COUNTING.get(form) else {
        for request in [&["MULTI"][..], &["INCR", one]] {
            client.send(request).expect("the server reads");
        }
        let script = ["EVAL", COUNTING[form % 2], "2", two, two];
        client.send(&script).expect("the server reads");
        client.send(&["EXEC"]).expect("the server reads");
        for wanted in ["OK", "QUEUED", "QUEUED"] {
            assert_eq!(
                client.read(support::PATIENCE).expect("a reply").text(),
                wanted
            );
        }
        let done = client.read(support::PATIENCE).expect("a reply");
        assert!(
            matches!(&done, Value::Array(all) if all.len() == 2),
            "{done:?}"
        );
        return;
    };
    let reply = client.call(&["EVAL", script, "2", one, two]);
    assert!(matches!(reply, Ok(Value::Int(_))), "{reply:?}");
}

/// Scripts of all forms count at the same keys at once: no count is lost.
#[test]
fn no_update_is_lost_between_scripts() {
    const CLIENTS: u64 = 8;
    const ROUNDS: usize = 400;
    let server = Server::start(TARGET, &[]);
    let addr = server.addr();
    let counted: Vec<_> = (0..CLIENTS)
        .map(|number| {
            std::thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(number);
                let mut client = Client::connect(addr).expect("the server listens");
                let mut counts = [0; COUNTERS];
                for _ in 0..ROUNDS {
                    let one = random.usize(..COUNTERS);
                    let two = (one + random.usize(1..COUNTERS)) % COUNTERS;
                    let form = random.usize(..COUNTING.len() + 1);
                    count(&mut client, form, &format!("c:{one}"), &format!("c:{two}"));
                    counts[one] += 1;
                    // The transaction counts twice at its second key.
                    counts[two] += if form == COUNTING.len() { 2 } else { 1 };
                }
                counts
            })
        })
        .collect();
    let mut wanted = [0; COUNTERS];
    for counts in counted {
        let counts = counts.join().expect("it is well");
        wanted
            .iter_mut()
            .zip(counts)
            .for_each(|(all, some)| *all += some);
    }
    let mut client = server.client();
    for (number, wanted) in wanted.into_iter().enumerate() {
        let found = client.ask(&format!("GET c:{number}")).text();
        assert_eq!(found, wanted.to_string(), "counter {number}");
    }
}

/// A key of a call, as random scripts have it.
const KEYS: [&str; 12] = [
    "KEYS[1]",
    "KEYS[2]",
    "KEYS[3]",
    "a",
    "b",
    "c",
    "KEYS[#KEYS]",
    "ARGV[1]",
    "'x'",
    "KEYS[1] .. ''",
    "unpack(KEYS)",
    "unpack(ARGV)",
];

/// Calls, with `?` for a key.
const CALLS: [&str; 14] = [
    "call('get', ?)",
    "redis.call('set', ?, 1)",
    "redis.pcall('incr', ?)",
    "call('del', ?, ?)",
    "redis.call('mget', ?)",
    "redis.call('mset', ?, 1, ?, 2)",
    "redis.call('rename', ?, ?)",
    "redis.call('sadd', ?, unpack(ARGV))",
    "call('sunionstore', ?, ?)",
    "redis.call('object', 'encoding', ?)",
    "redis.pcall('bitop', 'and', ?, ?)",
    "redis.call('copy', ?, ?)",
    "redis.call('time')",
    "redis.call('lmove', ?, ?, 'left', 'right')",
];

/// Statements that bind names and change tables, with `?` for a key.
const BINDINGS: [&str; 9] = [
    "local a = ?",
    "local a, b = ?, ?",
    "local c, a = 1, ?",
    "local b, n = KEYS[2], #KEYS",
    "a = ?",
    "b, a = ?, ?",
    "if ? then c = ? end",
    "KEYS[1] = ?",
    "local t = {a = ?, [?] = KEYS[2]}",
];

/// A script of random statements.
fn random_script(random: &mut fastrand::Rng) -> String {
    // Mostly keys of the request, so that many a proof succeeds.
    let kinds = if random.bool() { 7 } else { KEYS.len() };
    let mut text =
        String::from("local a, b, c = KEYS[1], KEYS[2], KEYS[3] local call = redis.call ");
    for _ in 0..random.usize(1..7) {
        let form = match random.usize(..4) {
            0 => BINDINGS[random.usize(..BINDINGS.len())].to_string(),
            1 => format!("pcall({{}}, {}) ", CALLS[random.usize(..CALLS.len())]),
            _ => format!("local r = {}", CALLS[random.usize(..CALLS.len())]),
        };
        for part in form.split_inclusive('?') {
            text.push_str(part.trim_end_matches('?'));
            if part.ends_with('?') {
                text.push_str(KEYS[random.usize(..kinds)]);
            }
        }
        text.push('\n');
    }
    text
}

/// A server of tests ends when a script uses a key that it should not: this one stays.
#[test]
fn random_scripts_use_no_keys_but_their_own() {
    let server = Server::start(TARGET, &[]);
    let addr = server.addr();
    let clients: Vec<_> = (0..4)
        .map(|number| {
            std::thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(7 + number);
                let mut client = Client::connect(addr).expect("the server listens");
                let mut done = 0;
                for _ in 0..2500 {
                    let script = random_script(&mut random);
                    let keys = ["k:1", "k:2", "k:3"].map(|key| match random.usize(..4) {
                        0 => "k:1",
                        _ => key,
                    });
                    let request = [
                        "EVAL", &script, "3", keys[0], keys[1], keys[2], "k:4", "k:5",
                    ];
                    let reply = client.call(&request).expect("the server goes on");
                    done += usize::from(!matches!(reply, Value::Error(_)));
                }
                done
            })
        })
        .collect();
    for client in clients {
        let done: usize = client.join().expect("it is well");
        assert!(done > 500, "{done} scripts without an error");
    }
}
