//! Random directories: redis-server under a write load, rewritten, killed, cut, damaged. Ferrite finds what
//! redis-server finds in a copy of the directory, or names the place.
//!
//! `FERRITE_DIRECTORIES=200 FERRITE_SEED=1` makes as many from a seed (`make takeover`).

use fastrand::Rng;

use super::*;

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_directories_are_taken_over_or_refused() {
    let directories = env("FERRITE_DIRECTORIES").unwrap_or(14);
    let seed = env("FERRITE_SEED").unwrap_or(1);
    let (mut same, mut refused) = (0, 0);
    for seed in seed..seed + directories {
        let (data, options, story) = make(&mut Rng::with_seed(seed));
        let story = format!("seed {seed}: {story}");
        match assert_same_or_refused(&data, &options, &story) {
            true => same += 1,
            false => refused += 1,
        }
    }
    println!("{directories} directories: {same} taken over, {refused} refused");
    assert!(same > refused, "{same} taken over, {refused} refused");
}

/// Starts Ferrite: it finds what redis-server finds in a copy, or names the place of what it does not take
/// over, as it has to where redis-server does not start. redis-server's files stay as they are, and it still
/// starts from them. Whether it was taken over.
pub(super) fn assert_same_or_refused(data: &Data, for_redis: &[&str], story: &str) -> bool {
    let before = data.files();
    let redis = data.redis_digest(for_redis);
    let mut server = match data.try_ferrite(&[]) {
        Ok(server) => server,
        Err(failure) => {
            let said = &failure.output;
            // A snapshot is no append-only file.
            let names_file = said.contains(" cannot be taken over: ")
                || said.contains("dump.rdb cannot be loaded: ");
            let names_place = [" at byte ", ": line ", "the last file"]
                .iter()
                .any(|place| said.contains(place));
            assert!(names_place && names_file, "{story}\n{failure}");
            let is_right = redis.is_none() || story.contains("damaged");
            assert!(is_right, "redis-server starts there: {story}\n{failure}");
            data.assert_untouched(&before, story);
            return false;
        }
    };
    let redis = redis.unwrap_or_else(|| panic!("only Ferrite starts there: {story}"));
    assert_eq!(digest(&server), redis, "{story}\n{}", server.output());
    data.assert_untouched(&before, story);
    // What was taken over is in the log.
    end(&mut server, Signal::KILL);
    let server = data.ferrite(&[]);
    assert_eq!(digest(&server), redis, "{story}\n{}", server.output());
    drop(server);
    assert_eq!(data.redis_digest(for_redis), Some(redis), "{story}");
    true
}

/// Makes a directory. Also returns what redis-server needs to start there, and what was done to it.
fn make(random: &mut Rng) -> (Data, Vec<&'static str>, String) {
    let data = Data::new();
    let is_snapshot = random.u8(..10) == 0;
    let mut options = vec![
        "--aof-use-rdb-preamble",
        if random.bool() { "yes" } else { "no" },
        "--aof-timestamp-enabled",
        if random.u8(..3) == 0 { "yes" } else { "no" },
        "--appendfsync",
        ["always", "everysec", "no"][random.usize(..3)],
    ];
    if is_snapshot {
        options.extend(["--appendonly", "no"]);
    }
    let mut story = options.join(" ");
    let has_stream = random.u8(..8) == 0;
    for _ in 0..random.usize(1..4) {
        let mut server = data.redis(&options);
        for _ in 0..random.usize(1..4) {
            work(random, &server, has_stream);
            story += &disturb(random, &mut server.client(), is_snapshot);
        }
        story += &stop(random, &mut server, is_snapshot, has_stream);
    }
    if is_snapshot {
        return (data, vec!["--appendonly", "no"], story);
    }
    story += &change(random, &data);
    (data, vec![], story)
}

/// Sends a few hundred commands without waiting for their replies, and waits for the last.
fn work(random: &mut Rng, server: &Server, has_stream: bool) {
    let mut client = server.client();
    let count = random.usize(20..300);
    let mut requests = Vec::new();
    for _ in 0..count {
        requests.extend(request(random, has_stream));
    }
    requests.extend(encode_request(&["PING", "done"]));
    client.send_bytes(&requests).expect("redis-server reads");
    while client.read(PATIENCE).expect("redis-server answers") != Value::Bulk(b"done".to_vec()) {}
}

/// A command, or a transaction of some.
fn request(random: &mut Rng, has_stream: bool) -> Vec<u8> {
    if random.u8(..12) == 0 {
        let inner = (0..random.usize(..5))
            .flat_map(|_| simple(random))
            .collect::<Vec<_>>();
        let (multi, exec) = (encode_request(&["MULTI"]), encode_request(&["EXEC"]));
        return [multi, inner, exec].concat();
    }
    if has_stream && random.u8(..40) == 0 {
        return encode_request(&["XADD", "events", "*", "f", "v"]);
    }
    simple(random)
}

fn simple(random: &mut Rng) -> Vec<u8> {
    let key = |random: &mut Rng| format!("key:{}", random.u8(..40));
    let one = key(random);
    let other = key(random);
    let number = random.u32(..1000).to_string();
    let long = match random.u8(..30) {
        0 => "x".repeat(random.usize(..100_000)),
        _ => "y".repeat(random.usize(..40)),
    };
    // Far enough away that no server sees it come.
    let later = (4_000_000_000_000_u64 + random.u64(..1_000_000)).to_string();
    let words: &[&str] = match random.u8(..30) {
        0..5 => &["SET", &one, &long],
        5 => &["SET", &one, &number, "PXAT", &later],
        6 => &["SETEX", &one, "1000000", &number],
        7 | 8 => &["INCRBY", &one, &number],
        9 => &["INCRBYFLOAT", &one, "1.25"],
        10 | 11 => &["APPEND", &one, &long],
        12 => &["SETRANGE", &one, &number, "part"],
        13 | 14 => &["DEL", &one],
        15 => &["UNLINK", &one, &other],
        16 => &["EXPIRE", &one, "500000"],
        17 => &["PERSIST", &one],
        18 => &["RENAME", &one, &other],
        19 => &["COPY", &one, &other, "REPLACE"],
        20 => &["MOVE", &one, ["0", "1", "2"][random.usize(..3)]],
        21 | 22 => &["SELECT", ["0", "1", "2", "15"][random.usize(..4)]],
        23 => &["MSET", &one, &number, &other, &long],
        24 => &["SETBIT", &one, &number, "1"],
        25 => &["BITOP", "XOR", &one, &one, &other],
        26 => &["GETEX", &one, "PERSIST"],
        27 => &["BITFIELD", &one, "INCRBY", "u16", "#3", "77"],
        28 => &["GETDEL", &one],
        _ => match random.u8(..8) {
            0 => &["FLUSHDB"],
            1 => &["SWAPDB", "0", "1"],
            _ => &["SETNX", &one, &number],
        },
    };
    encode_request(words)
}

/// What happens beside the load.
fn disturb(random: &mut Rng, client: &mut Client, is_snapshot: bool) -> String {
    match random.u8(..6) {
        _ if is_snapshot => String::new(),
        0 | 1 => {
            rewrite(client);
            ", rewritten".into()
        }
        2 => {
            client.ask("SAVE");
            ", saved".into()
        }
        3 => {
            client.ask("CONFIG SET appendonly no");
            client.ask("CONFIG SET appendonly yes");
            eventually("the append-only file is made", || {
                crate::support::info(client, "aof_rewrite_in_progress") == 0
                    && crate::support::info(client, "aof_rewrite_scheduled") == 0
            });
            ", turned off and on".into()
        }
        _ => String::new(),
    }
}

/// Ends redis-server, sometimes in the middle of its work.
fn stop(random: &mut Rng, server: &mut Server, is_snapshot: bool, has_stream: bool) -> String {
    let mut client = server.client();
    if is_snapshot {
        client.ask("SAVE");
        end(server, Signal::KILL);
        return ", saved".into();
    }
    match random.u8(..5) {
        0 => {
            let _ = client.call(&["SHUTDOWN", "NOSAVE"]);
            assert!(server.wait_for_exit().is_some());
            ", shut down".into()
        }
        1 => {
            client.ask("CONFIG SET rdb-key-save-delay 100000");
            client.ask("BGREWRITEAOF");
            work(random, server, has_stream);
            end(server, Signal::KILL);
            ", killed while rewritten".into()
        }
        2 => {
            // While it reads them.
            let requests: Vec<u8> = (0..5_000)
                .flat_map(|_| request(random, has_stream))
                .collect();
            let half = random.usize(..requests.len());
            let _ = client.send_bytes(&requests[..half]);
            end(server, Signal::KILL);
            ", killed under load".into()
        }
        _ => {
            end(server, Signal::KILL);
            ", killed".into()
        }
    }
}

/// What has become of the files since.
fn change(random: &mut Rng, data: &Data) -> String {
    let listed = data.listed();
    let last = listed.last().expect("redis-server has made one");
    let read = |name: &str| fs::read(data.path(name)).expect("it is listed");
    match random.u8(..8) {
        0 | 1 => {
            let bytes = read(last);
            let left = bytes.len().saturating_sub(random.usize(1..200));
            data.write(last, &bytes[..left]);
            format!(", torn at {left}")
        }
        2 => {
            let all: Vec<u8> = listed.iter().flat_map(|name| read(name)).collect();
            fs::remove_dir_all(data.path(REDIS)).expect("the directory is ours");
            data.write("appendonly.aof", &all);
            ", in one file".into()
        }
        3 => {
            let name = &listed[random.usize(..listed.len())];
            let mut bytes = read(name);
            if bytes.is_empty() {
                return String::new();
            }
            let at = random.usize(..bytes.len());
            let what = match random.bool() {
                true => {
                    bytes.truncate(at);
                    "cut"
                }
                false => {
                    bytes[at] = bytes[at].wrapping_add(1 + random.u8(..20));
                    "changed"
                }
            };
            data.write(name, &bytes);
            format!(", damaged: {name} {what} at {at}")
        }
        _ => String::new(),
    }
}
