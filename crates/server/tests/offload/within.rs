//! Memory is never above the limit behind a command, whatever it was, nor when a start has read its log.

use rustix::process::Signal;

use super::support::{Client, PATIENCE, Server, Value, encode_request};
use super::{SMALL, TWO, check, fill, info};

/// Commands of each client.
const COMMANDS: usize = 1_500;
const KEYS: usize = 400;

/// A command of a random kind on values of 10 bytes to half a megabyte.
fn command(random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let mut name = || format!("key:{}", random.usize(..KEYS)).into_bytes();
    let (one, several) = (name(), [(); 10].map(|()| name()));
    let len = 10 + (random.f64().powi(3) * 500_000.0) as usize;
    let value = vec![random.alphanumeric() as u8; len];
    match random.u32(..100) {
        0..30 => vec![b"SET".to_vec(), one, value],
        30..40 => {
            let pairs = several
                .into_iter()
                .flat_map(|key| [key, vec![b'm'; len / 4]]);
            std::iter::once(b"MSET".to_vec()).chain(pairs).collect()
        }
        40..60 => vec![b"APPEND".to_vec(), one, value],
        60..65 => {
            let offset = random.usize(..700_000).to_string();
            vec![
                b"SETRANGE".to_vec(),
                one,
                offset.into_bytes(),
                b"part".to_vec(),
            ]
        }
        65..70 => vec![b"GETDEL".to_vec(), one],
        70..75 => vec![b"DEL".to_vec(), one],
        75..90 => vec![b"GET".to_vec(), one],
        _ => std::iter::once(b"MGET".to_vec()).chain(several).collect(),
    }
}

/// Runs commands, and looks behind each of them. Those behind which there was too much memory, and how much.
fn look_behind_each(client: &mut Client, seed: u64, limit: u64) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut found = Vec::new();
    for _ in 0..COMMANDS {
        let words = command(&mut random);
        let mut requests = encode_request(&words);
        requests.extend(encode_request(&["INFO", "memory"]));
        client.send_bytes(&requests).expect("the server reads");
        let reply = client.read(PATIENCE).expect("the server replies");
        let text = match client.read(PATIENCE).expect("the server replies") {
            Value::Bulk(text) => String::from_utf8(text).expect("INFO is text"),
            other => panic!("INFO answers {other:?}"),
        };
        let used = text
            .lines()
            .find_map(|line| line.strip_prefix("used_memory:"))
            .and_then(|used| used.parse::<u64>().ok())
            .expect("INFO tells it");
        // A value that would not fit beside what cannot go is refused.
        assert!(
            !matches!(&reply, Value::Error(text) if !text.starts_with(b"OOM ")),
            "{reply:?}"
        );
        if used > limit {
            let (name, len) = (String::from_utf8_lossy(&words[0]), requests.len());
            found.push(format!("{} behind {name} of {len} bytes", used - limit));
        }
    }
    found
}

#[test]
fn memory_is_within_the_limit_behind_every_command() {
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let limit = info(&mut client, "maxmemory");
    let found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..3)
            .map(|seed| {
                let mut client = server.client();
                scope.spawn(move || look_behind_each(&mut client, seed, limit))
            })
            .collect();
        let mut found = look_behind_each(&mut client, 0, limit);
        for other in others {
            found.extend(other.join().expect("it ran"));
        }
        found
    });
    assert!(info(&mut client, "cold_keys") > 0);
    assert_eq!(found, Vec::<String>::new(), "bytes above the limit");
}

#[test]
fn memory_is_within_the_limit_when_a_start_is_over() {
    let mut server = Server::start(TWO, SMALL);
    let mut client = server.client();
    // Keys that come last take memory that values have taken by then.
    let count = fill(&mut client, 100);
    for first in (0..60_000).step_by(1000) {
        let requests: Vec<u8> = (first..first + 1000)
            .flat_map(|number| encode_request(&["SET", &format!("small:{number}"), "value"]))
            .collect();
        client.send_bytes(&requests).expect("the server reads");
        for _ in 0..1000 {
            client.read(PATIENCE).expect("the server replies");
        }
    }
    let limit = info(&mut client, "maxmemory");
    drop(client);
    server.start_again(TWO, Signal::KILL, SMALL);
    let mut client = server.client();
    let used = info(&mut client, "used_memory");
    assert!(used <= limit, "{used} bytes are in use of {limit}");
    check(&mut client, count);
    assert_eq!(client.ask("GET small:0"), Value::Bulk(b"value".to_vec()));
}

#[test]
fn a_command_whose_values_cannot_fit_is_refused_before_they_are_read() {
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    // Replies of megabytes are no reason to drop it.
    client.ask("CLIENT NO-EVICT on");
    let names: Vec<String> = (0..1_000).map(|number| format!("large:{number}")).collect();
    let value = vec![b'v'; 100_000];
    for name in &names {
        let request = [b"SET".as_slice(), name.as_bytes(), &value];
        // While the disk is behind there may be nothing that could leave.
        while client.call(&request).expect("the server replies") != Value::Simple(b"OK".to_vec()) {}
    }
    let command = |count: usize| {
        let names = names[..count].iter().map(String::as_str);
        std::iter::once("MGET").chain(names).collect::<Vec<&str>>()
    };
    let reads = info(&mut client, "disk_reads");
    let reply = client.call(&command(1_000)).expect("the server replies");
    assert!(
        matches!(&reply, Value::Error(text) if text.starts_with(b"OOM ")),
        "all of them"
    );
    assert_eq!(info(&mut client, "disk_reads"), reads);
    // A part of them fits, also in a transaction.
    let all_there = |reply: &Value| match reply {
        Value::Array(values) => {
            values.len() == 50 && values.iter().all(|one| *one == Value::Bulk(value.clone()))
        }
        _ => false,
    };
    let reply = client.call(&command(50)).expect("the server replies");
    assert!(all_there(&reply), "a part of them");
    assert_eq!(client.ask("MULTI"), Value::Simple(b"OK".to_vec()));
    for name in names.iter().rev().take(50) {
        let reply = client.call(&["GET", name]).expect("the server replies");
        assert_eq!(reply, Value::Simple(b"QUEUED".to_vec()));
    }
    assert!(all_there(&client.ask("EXEC")), "in a transaction");
}
