//! Fields that expire: through restarts, compaction and snapshots, very many at once, and while the server is
//! down.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use support::{Client, Server, Target, Value, eventually, info, integer as int, items as array};

const LOGGED: Target = Target::Logged { threads: 2 };
const ALWAYS: [&str; 2] = ["--appendfsync", "always"];

/// Values of fields, and when they expire (-1: never).
type Fields = BTreeMap<String, (String, i64)>;

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_millis() as i64
}

/// All fields of a hash, as they are at one moment.
fn fields_of(client: &mut Client, key: &str) -> Fields {
    let words = array(client.ask(&format!("HGETALL {key}")));
    let mut fields: Fields = words
        .chunks(2)
        .map(|pair| (pair[0].text(), (pair[1].text(), -1)))
        .collect();
    let names: Vec<String> = fields.keys().cloned().collect();
    for names in names.chunks(1000) {
        let mut request = vec!["HPEXPIRETIME".to_owned(), key.into(), "FIELDS".into()];
        request.push(names.len().to_string());
        request.extend_from_slice(names);
        let times = array(client.call(&request).expect("a reply"));
        for (name, time) in names.iter().zip(&times) {
            match int(time) {
                // It has expired between the two requests.
                -2 => drop(fields.remove(name)),
                time => fields.get_mut(name).expect("it was listed").1 = time,
            }
        }
    }
    fields
}

/// All hashes of two databases.
fn state(client: &mut Client) -> BTreeMap<(u32, u32), Fields> {
    let mut state = BTreeMap::new();
    for db in 0..2 {
        client.ask(&format!("SELECT {db}"));
        for number in 0..HASHES {
            let fields = fields_of(client, &format!("h{number}"));
            if !fields.is_empty() {
                state.insert((db, number), fields);
            }
        }
    }
    client.ask("SELECT 0");
    state
}

/// Forgets fields that expire before `now`, or so soon that they may have.
fn forget(state: &mut BTreeMap<(u32, u32), Fields>, now: i64) {
    for fields in state.values_mut() {
        fields.retain(|_, (_, time)| *time < 0 || *time >= now);
    }
    state.retain(|_, fields| !fields.is_empty());
}

const HASHES: u32 = 6;

fn request(random: &mut fastrand::Rng) -> String {
    let (one, two) = (random.u32(..HASHES), random.u32(..HASHES));
    let names: Vec<String> = (0..random.usize(1..6))
        .map(|_| format!("f{}", random.u32(..40)))
        .collect();
    let (count, fields) = (names.len(), names.join(" "));
    let pairs: Vec<String> = names
        .iter()
        .map(|name| format!("{name} {}", "v".repeat(random.usize(1..30))))
        .collect();
    let pairs = pairs.join(" ");
    // Soon, or far away.
    let ms = match random.u8(..3) {
        0 => random.u32(1..400),
        _ => 1_000_000 + random.u32(..1000),
    };
    match random.u8(..26) {
        0..5 => format!("HSET h{one} {pairs}"),
        5..9 => format!("HSETEX h{one} PX {ms} FIELDS {count} {pairs}"),
        9..14 => format!("HPEXPIRE h{one} {ms} FIELDS {count} {fields}"),
        14 => format!("HPERSIST h{one} FIELDS {count} {fields}"),
        15 => format!("HGETEX h{one} PX {ms} FIELDS {count} {fields}"),
        16 => format!("HGETEX h{one} PERSIST FIELDS {count} {fields}"),
        17 => format!("HPEXPIREAT h{one} 1 FIELDS {count} {fields}"),
        18 => format!("HSETEX h{one} KEEPTTL FIELDS {count} {pairs}"),
        19 => format!("HDEL h{one} {fields}"),
        20 => format!("COPY h{one} h{two} REPLACE"),
        21 => format!("RENAME h{one} h{two}"),
        22 => format!("MOVE h{one} 1"),
        23 => format!("COPY h{one} h{two} DB 1 REPLACE"),
        24 => format!("HINCRBY h{one} n{} 3", random.u32(..3)),
        _ => "PING".to_owned(),
    }
}

#[test]
fn fields_come_back_with_their_times() {
    for (small_bytes, seed) in [(4096, 1), (64, 2), (200, 3)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut server = Server::start(LOGGED, &ALWAYS);
        for (round, signal) in [Signal::KILL, Signal::TERM, Signal::KILL, Signal::KILL]
            .into_iter()
            .enumerate()
        {
            let mut client = server.client();
            client.ask(&format!("DEBUG SMALL-BYTES {small_bytes}"));
            for step in 0..800 {
                if step % 200 == 150 {
                    client.ask("BGREWRITEAOF");
                }
                if random.u8(..8) == 0 {
                    client.ask("MULTI");
                    for _ in 0..random.usize(1..6) {
                        client.ask(&request(&mut random));
                    }
                    client.ask("EXEC");
                } else {
                    client.ask(&request(&mut random));
                }
            }
            let mut before = state(&mut client);
            server.start_again(LOGGED, signal, &ALWAYS);
            let mut after = state(&mut server.client());
            let now = now_ms();
            for state in [&mut before, &mut after] {
                forget(state, now);
            }
            assert_eq!(after, before, "seed {seed}, round {round}");
            assert!(before.values().map(BTreeMap::len).sum::<usize>() > 20);
        }
    }
}

#[test]
fn fields_that_expire_while_the_server_is_down_have_expired() {
    let mut server = Server::start(LOGGED, &ALWAYS);
    let mut client = server.client();
    for filler in ["x", "y".repeat(5000).as_str()] {
        client.ask(&format!("HSET h a 1 b 2 c {filler}"));
        client.ask(&format!("HSET all a 1 b {filler}"));
        client.ask("HPEXPIRE h 60000 FIELDS 1 b");
        client.ask("HPERSIST h FIELDS 1 b");
        client.ask("HPEXPIRE h 300 FIELDS 1 a");
        client.ask("HPEXPIRE all 300 FIELDS 2 a b");
        server.signal(Signal::KILL);
        assert!(server.wait_for_exit().is_some());
        sleep(Duration::from_millis(320));
        server.start_again(LOGGED, Signal::KILL, &ALWAYS);
        client = server.client();
        assert_eq!(client.ask("HLEN h"), Value::Int(2));
        assert_eq!(client.ask("HEXISTS h a"), Value::Int(0));
        eventually("the key is gone", || client.ask("DBSIZE") == Value::Int(1));
        let times = array(client.ask("HTTL h FIELDS 3 a b c"));
        assert_eq!(times.iter().map(int).collect::<Vec<_>>(), [-2, -1, -1]);
    }
}

/// Makes a hash of so many fields.
fn fill(client: &mut Client, key: &str, count: usize) {
    for first in (0..count).step_by(1000) {
        let mut request = vec!["HSET".to_owned(), key.into()];
        (first..first + 1000).for_each(|number| {
            request.extend([format!("field:{number}"), format!("value:{number}")]);
        });
        client.call(&request).expect("a reply");
    }
}

/// Makes a hash of so many fields that all expire at one time, which has not come. Returns it.
fn fill_expiring(client: &mut Client, key: &str, count: usize) -> i64 {
    for seconds in [2, 8, 32, 128] {
        fill(client, key, count);
        let at = now_ms() + seconds * 1000;
        if expire_all(client, key, count, at) && now_ms() < at {
            return at;
        }
        // Some of them have expired already: the machine is busy.
    }
    panic!("{count} fields did not get an expiry within two minutes");
}

/// Lets so many fields expire at one time. Whether all of them got it.
fn expire_all(client: &mut Client, key: &str, count: usize, at: i64) -> bool {
    let mut are_all = true;
    for first in (0..count).step_by(1000) {
        let mut request = ["HPEXPIREAT", key, &at.to_string(), "FIELDS", "1000"]
            .map(str::to_owned)
            .to_vec();
        request.extend((first..first + 1000).map(|number| format!("field:{number}")));
        let done = array(client.call(&request).expect("a reply"));
        are_all &= done.iter().all(|done| *done == Value::Int(1));
    }
    are_all
}

#[test]
fn a_hundred_thousand_fields_expire_at_once() {
    const COUNT: usize = 100_000;
    let mut server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    // Nobody asks for them: they go by themselves, and others are answered meanwhile.
    fill(&mut client, "h", COUNT);
    let before = info(&mut client, "used_memory");
    client.ask("CONFIG RESETSTAT");
    let at = fill_expiring(&mut client, "h", COUNT);
    let (mut longest, mut gone) = (Duration::ZERO, None);
    while gone.is_none() {
        assert!(now_ms() < at + 120_000, "they are still there");
        let asked = Instant::now();
        let is_gone = client.ask("DBSIZE") == Value::Int(0);
        longest = longest.max(asked.elapsed());
        gone = is_gone.then(|| now_ms() - at);
    }
    let gone = gone.expect("it was waited for");
    println!("gone after {gone} ms; the longest request took {longest:?}");
    assert!(gone >= 0, "{gone} ms early");
    assert!(info(&mut client, "expired_subkeys") >= COUNT as u64);
    eventually("memory is free", || {
        info(&mut client, "used_memory") < before - COUNT as u64 * 20
    });
    // Who asks sees none of them, from that moment on.
    client.ask("HSET h stays 1");
    let at = fill_expiring(&mut client, "h", COUNT);
    // The turn in which a request is served begins after the reply to the one before.
    let mut answered = i64::MIN;
    loop {
        let before = now_ms();
        let asked = Instant::now();
        let len = int(&client.ask("HLEN h"));
        let (took, after) = (asked.elapsed(), now_ms());
        assert!(
            len == 1 || len == COUNT as i64 + 1,
            "{len} at {}",
            before - at
        );
        assert!(len > 1 || after > at, "early");
        assert!(len == 1 || answered <= at, "late");
        answered = after;
        if len == 1 {
            println!("HLEN took {took:?}");
            break;
        }
    }
    server.start_again(LOGGED, Signal::KILL, &[]);
    assert_eq!(server.client().ask("HGETALL h").text(), r#"["stays", "1"]"#);
}

#[test]
fn snapshots_have_the_times_of_fields() {
    let mut server = Server::start(Target::Ferrite { threads: 2 }, &[]);
    let mut client = server.client();
    fill(&mut client, "large", 5_000);
    client.ask("HSET small a 1 b 2 c 3");
    let version = |server: &Server| {
        let bytes = fs::read(server.dir().join("dump.rdb")).expect("it was saved");
        String::from_utf8_lossy(&bytes[..9]).into_owned()
    };
    client.ask("SAVE");
    assert_eq!(version(&server), "REDIS0010");
    let at = 4_000_000_000_000i64;
    client.ask("HPEXPIREAT small 4000000000123 FIELDS 1 b");
    assert!(expire_all(&mut client, "large", 3_000, at));
    client.ask("HPEXPIRE large 400 FIELDS 2 field:1 field:4000");
    let mut before = state_of(&mut client);
    for save in ["SAVE", "BGSAVE", "DEBUG RELOAD"] {
        client.ask(save);
        eventually("it is saved", || {
            info(&mut client, "rdb_bgsave_in_progress") == 0
        });
        assert_eq!(version(&server), "REDIS0012", "{save}");
    }
    sleep(Duration::from_millis(450));
    server.signal(Signal::KILL);
    assert!(server.wait_for_exit().is_some());
    server.start_again(Target::Ferrite { threads: 2 }, Signal::KILL, &[]);
    let mut client = server.client();
    eventually("it is loaded", || info(&mut client, "loading") == 0);
    for name in ["field:1", "field:4000"] {
        before.1.remove(name);
    }
    assert_eq!(state_of(&mut client), before);
    // Without such fields the file is of the earlier version again.
    client.ask("HPERSIST small FIELDS 1 b");
    client.ask("DEL large");
    client.ask("SAVE");
    assert_eq!(version(&server), "REDIS0010");
}

fn state_of(client: &mut Client) -> (Fields, Fields) {
    (fields_of(client, "small"), fields_of(client, "large"))
}
