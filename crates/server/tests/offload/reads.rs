//! What reads values that are in the log alone, from the page cache and from the disk, with either poller;
//! and which of them come back.

use std::fs;
use std::time::Instant;

use rustix::fs::{Advice, fadvise, fsync};
use rustix::process::Signal;

use super::support::{self, Client, PATIENCE, Server, Value, eventually};
use super::{SMALL, TWO, bulk, fill, filling, info, ok, set_cold, settles};

/// io_uring, where it may be used, and what there is without.
const POLLERS: [&str; 2] = ["auto", "epoll"];

/// Takes what the log has written out of the page cache, as far as the system does that.
fn forget_pages(server: &Server) {
    let directory = server.dir().join("appendonlydir/log");
    for file in fs::read_dir(&directory).expect("there is a log") {
        let path = file.expect("a directory can be listed").path();
        // One that compaction has removed meanwhile is none to forget.
        if let Ok(file) = fs::File::open(&path) {
            fsync(&file).expect("it can be synced");
            fadvise(&file, 0, None, Advice::DontNeed).expect("it is a hint");
        }
    }
}

fn read(client: &mut Client) -> Value {
    client.read(PATIENCE).expect("the server replies")
}

/// Lets the values of keys leave memory, and the page cache if they are to be read `from_disk`.
fn let_go(server: &Server, client: &mut Client, keys: &[String], from_disk: bool) {
    for key in keys {
        // Reads for a connection that has gone may still keep it in memory.
        let request = format!("DEBUG OFFLOAD {key}");
        eventually("the value leaves memory", || {
            client.ask(&request) == Value::Int(1)
        });
    }
    if from_disk {
        forget_pages(server);
    }
}

#[test]
fn replies_are_whole_and_in_order_whoever_reads_the_values() {
    for io in POLLERS {
        let server = Server::start(TWO, &["--io", io]);
        let mut client = server.client();
        let keys: Vec<String> = (0..60).map(|number| format!("k{number}")).collect();
        // Short ones, long ones, and some of more than a page.
        let lens = [70, 700, 5_000, 17_000, 90_000];
        let values: Vec<Vec<u8>> = (0..keys.len())
            .map(|number| set_cold(&mut client, &keys[number], lens[number % lens.len()]))
            .collect();
        for from_disk in [true, false, true] {
            let_go(&server, &mut client, &keys, from_disk);
            let before = info(&mut client, "disk_reads");
            let mut requests = Vec::new();
            let mut expected = Vec::new();
            for (key, value) in keys.iter().zip(&values) {
                requests.extend(support::encode_request(&["SET", "warm", key]));
                expected.push(ok());
                requests.extend(support::encode_request(&["GETRANGE", key, "3", "40"]));
                expected.push(bulk(&value[3..41]));
                requests.extend(support::encode_request(&["GET", key]));
                expected.push(bulk(value));
                requests.extend(support::encode_request(&["GET", "warm"]));
                expected.push(bulk(key.as_bytes()));
            }
            client.send_bytes(&requests).expect("the server reads");
            for expected in expected {
                assert_eq!(read(&mut client), expected, "{io}");
            }
            // There is room: each was read once, and has come back.
            let reads = info(&mut client, "disk_reads") - before;
            assert_eq!(reads, keys.len() as u64, "{io}");
            let_go(&server, &mut client, &keys, from_disk);
            let mut words = vec!["MGET", "warm"];
            words.extend(keys.iter().map(String::as_str));
            words.push("missing");
            let mut expected = vec![bulk(keys[keys.len() - 1].as_bytes())];
            expected.extend(values.iter().map(bulk));
            expected.push(Value::NullBulk);
            let reply = client.call(&words).expect("the server replies");
            assert_eq!(reply, Value::Array(expected), "{io}");
        }
        assert_eq!(info(&mut client, "disk_read_errors"), 0);
    }
}

#[test]
fn a_connection_that_goes_while_values_are_read_leaves_the_others_alone() {
    for io in POLLERS {
        let mut server = Server::start(TWO, &["--io", io]);
        let mut client = server.client();
        let keys: Vec<String> = (0..200).map(|number| format!("k{number}")).collect();
        let values: Vec<Vec<u8>> = keys
            .iter()
            .map(|key| set_cold(&mut client, key, 3_000))
            .collect();
        let mut words = vec!["MGET"];
        words.extend(keys.iter().map(String::as_str));
        let request = support::encode_request(&words);
        for _ in 0..5 {
            let_go(&server, &mut client, &keys, true);
            for _ in 0..4 {
                // Whether anything was read by then is the kernel's affair.
                server.client().send_bytes(&request).expect("it is open");
            }
            let reply = client.call(&words).expect("the server replies");
            let expected = values.iter().map(bulk).collect();
            assert_eq!(reply, Value::Array(expected), "{io}");
        }
        // The end, with reads under way.
        let_go(&server, &mut client, &keys, true);
        client.send_bytes(&request).expect("the server reads");
        server.signal(Signal::TERM);
        let status = server.wait_for_exit().expect("it ends");
        assert!(status.success(), "{}", server.output());
    }
}

#[test]
fn values_are_read_while_compaction_moves_them() {
    for io in POLLERS {
        let mut options = SMALL.to_vec();
        options.extend(["--log-segment-size", "2mb", "--io", io]);
        let server = Server::start(TWO, &options);
        let mut client = server.client();
        let count = fill(&mut client, 60);
        // Half of it is garbage, in all segments.
        for number in (0..count).step_by(2) {
            client.ask(&format!("DEL key:{number}"));
        }
        client.ask("BGREWRITEAOF");
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..8 {
            forget_pages(&server);
            let numbers = (0..250).map(|_| random.usize(..count / 2) * 2 + 1);
            get(&mut client, numbers);
        }
        assert_eq!(info(&mut client, "disk_read_errors"), 0);
    }
}

/// Gets keys, and returns how many of them were not in memory.
fn get(client: &mut Client, numbers: impl Iterator<Item = usize>) -> u64 {
    let before = info(client, "disk_reads");
    let numbers: Vec<usize> = numbers.collect();
    for numbers in numbers.chunks(50) {
        let requests = numbers
            .iter()
            .flat_map(|number| support::encode_request(&["GET", &format!("key:{number}")]));
        let requests: Vec<u8> = requests.collect();
        client.send_bytes(&requests).expect("the server reads");
        for &number in numbers {
            assert_eq!(read(client), bulk(filling(number).as_bytes()));
        }
    }
    info(client, "disk_reads") - before
}

#[test]
fn a_walk_through_cold_values_takes_no_memory_from_what_is_used() {
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let count = fill(&mut client, 100);
    let limit = info(&mut client, "maxmemory");
    settles(&mut client, limit);
    // A part of memory is in use again and again: it comes back by its second use.
    let hot = count / 2..count / 2 + 500;
    for _ in 0..6 {
        get(&mut client, hot.clone());
    }
    let start = Instant::now();
    loop {
        let missed = get(&mut client, hot.clone());
        if missed <= 40 {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{missed} are not in memory");
    }
    let kept_before = info(&mut client, "disk_reads_not_kept");
    let walked = get(
        &mut client,
        (0..count).filter(|number| !hot.contains(number)),
    );
    let served = info(&mut client, "disk_reads_not_kept") - kept_before;
    assert!(walked as usize > count / 2, "{walked} were cold");
    assert!(served > walked / 2, "{served} of {walked} stayed out");
    let lost = get(&mut client, hot.clone());
    assert!(lost < 80, "{lost} of {} have left memory", hot.len());
    // Who is asked for a second time comes back.
    let again = 100..200;
    for _ in 0..2 {
        get(&mut client, again.clone());
    }
    let missed = get(&mut client, again.clone());
    assert!(
        missed < 50,
        "{missed} of {} have not come back",
        again.len()
    );
}
