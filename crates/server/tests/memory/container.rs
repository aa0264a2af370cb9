//! In a container: its limit is what memory is measured by, and the kernel has no reason to kill.

use crate::memory::watch::used;
use crate::memory::{PATIENCE, TWO, info};
use crate::support::{MemoryGroup, Server, Value, encode_request};

/// What the container may take, page cache included.
const GROUP: u64 = 160 << 20;
/// Clients that send a pipeline of large values at the same time.
const CLIENTS: usize = 1_000;
const VALUES: usize = 4;

/// A group, where this process may make one.
fn group() -> Option<MemoryGroup> {
    MemoryGroup::new(GROUP)
        .inspect_err(|problem| {
            eprintln!("no memory cgroup can be made here, so none is used: {problem}")
        })
        .ok()
}

#[test]
fn the_default_is_a_part_of_what_the_container_may_take() {
    let group = group();
    let whole = match &group {
        Some(_) => GROUP,
        None => machine_bytes(),
    };
    let server = match &group {
        Some(group) => Server::start_in(group, TWO, &[]),
        None => Server::start(TWO, &[]),
    };
    let limit = info(&mut server.client(), "maxmemory");
    // Where no group can be made this process may be in one itself.
    assert!(limit <= whole / 100 * 80, "{limit} of {whole}");
    assert!(
        group.is_none() || limit == whole / 100 * 80,
        "{limit} of {whole}"
    );
}

fn machine_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("it is there");
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes: Option<u64> =
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kibibytes.expect("a number") * 1024
}

#[test]
fn a_thousand_clients_with_pipelines_of_large_values_do_not_break_the_limit() {
    let group = group();
    let limit = GROUP / 100 * 80;
    let text = limit.to_string();
    let options = ["--maxmemory", &text, "--maxmemory-policy", "allkeys-lru"];
    let server = match &group {
        Some(group) => Server::start_in(group, TWO, &options),
        None => Server::start(TWO, &options),
    };
    let value = vec![b'v'; 1 << 20];
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.client()).collect();
    let mut looker = server.client();
    let mut most = 0;
    // All have sent a part of a request before any of them goes on.
    let mut requests = Vec::new();
    for (number, client) in clients.iter_mut().enumerate() {
        let name = format!("key:{number}");
        let request = encode_request(&[b"SET".as_slice(), name.as_bytes(), &value]);
        let _ = client.send_bytes(&request[..50_000]);
        requests.push(request);
        if number % 50 == 0 {
            most = most.max(used(&mut looker).unwrap_or(0));
        }
    }
    let (mut done, mut dropped) = (0, 0);
    for (client, request) in clients.iter_mut().zip(requests) {
        let sent = client.send_bytes(&request[50_000..]).is_ok()
            && client.send_bytes(&request.repeat(VALUES - 1)).is_ok();
        for _ in 0..VALUES {
            match client.read(PATIENCE) {
                Ok(Value::Simple(_)) if sent => done += 1,
                Ok(other) => panic!("{other:?}"),
                // Together they are more than maxmemory-clients allows: the largest go.
                Err(_) => dropped += 1,
            }
        }
        most = most.max(used(&mut looker).unwrap_or(0));
    }
    assert!(
        done > 0 && done + dropped == CLIENTS * VALUES,
        "{done} {dropped}"
    );
    // The other worker is in the middle of something while one answers.
    assert!(
        most <= limit + limit / 100,
        "{most} bytes were in use of {limit}"
    );
    let resident = server.most_resident_bytes();
    assert!(resident <= limit / 10 * 11, "{resident} of {limit}");
    assert_eq!(group.as_ref().map_or(0, MemoryGroup::kills), 0);
}
