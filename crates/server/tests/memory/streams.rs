//! Requests about streams of very many entries stay within the limit, and those about a few of them are not
//! refused.

use super::support::{Client, PATIENCE, Server, Target, Value, encode_request};

/// The limit, and the bytes of the process that docs/eviction.md allows.
const LIMITED: &[&str] = &["--maxmemory", "64mb"];
const MOST: u64 = (64 << 20) / 10 * 11;

const ENTRIES: usize = 600_000;
const PENDING: usize = 200_000;

fn add(client: &mut Client, numbers: std::ops::Range<usize>) {
    let mut requests = Vec::new();
    for number in numbers.clone() {
        let (id, value) = (format!("{}-0", number + 1), format!("v{number}"));
        requests.extend(encode_request(&["XADD", "s", &id, "f", &value]));
    }
    client.send_bytes(&requests).expect("the server reads");
    for _ in numbers {
        let reply = client.read(PATIENCE).expect("a reply");
        assert!(matches!(reply, Value::Bulk(_)), "{reply:?}");
    }
}

fn is_refused(reply: &Value) -> bool {
    matches!(reply, Value::Error(text) if text.starts_with(b"OOM"))
}

/// The entries of the only stream in a reply.
fn entries(reply: Value) -> usize {
    let Value::Array(streams) = reply else {
        panic!("{reply:?}");
    };
    match &streams[..] {
        [Value::Array(stream)] => match &stream[1] {
            Value::Array(entries) => entries.len(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_request_gathers_of_a_stream_has_to_fit() {
    let server = Server::start(Target::Logged { threads: 2 }, LIMITED);
    let mut client = server.client();
    for first in (0..ENTRIES).step_by(1000) {
        add(&mut client, first..first + 1000);
    }
    assert_eq!(client.ask("XGROUP CREATE s g 0").text(), "OK");
    assert_eq!(client.ask("XGROUP CREATE s new $").text(), "OK");
    for reader in 0..PENDING / 10_000 {
        let request = format!("XREADGROUP GROUP g c{} COUNT 10000 STREAMS s >", reader % 7);
        assert_eq!(entries(client.ask(&request)), 10_000);
    }
    let check = |what: &str| {
        let most = server.most_resident_bytes();
        assert!(most <= MOST, "{what}: {} MiB", most >> 20);
    };
    check("before");
    for (request, fits) in [
        ("XREADGROUP GROUP g c STREAMS s >", false),
        ("XINFO STREAM s FULL COUNT 0", false),
        ("XINFO STREAM s FULL", true),
        ("XAUTOCLAIM s g d 0 0 COUNT 10000000", false),
        ("XAUTOCLAIM s g d 0 0 COUNT 100", true),
        ("XPENDING s g - + 10", true),
        ("XPENDING s g - + 10000000 c", true),
        ("XCLAIM s g d 0 1-0 2-0 3-0", true),
    ] {
        let reply = client.ask(request);
        assert_eq!(!is_refused(&reply), fits, "{request}");
        check(request);
    }
    // It fits or not, as memory is.
    client.ask("XPENDING s g - + 10000000");
    check("XPENDING");

    // Few are new, though the request would take all.
    add(&mut client, ENTRIES..ENTRIES + 3);
    let new = client.ask("XREADGROUP GROUP new c STREAMS s >");
    assert_eq!(entries(new), 3);
    let again = client.ask("XREADGROUP GROUP new c STREAMS s 0");
    assert_eq!(entries(again), 3);
    let claimed = client.ask("XAUTOCLAIM s new d 0 0 COUNT 10000000");
    assert!(!is_refused(&claimed), "{claimed:?}");

    // In order, and in no order with some of them twice: each counts once.
    let ids = (0..PENDING).map(|number| format!("{}-0", number + 1));
    let mut ids: Vec<String> = ids.collect();
    let (half, some) = (PENDING / 2, PENDING / 20);
    fastrand::Rng::with_seed(57).shuffle(&mut ids[half..]);
    for (ids, again) in [(&ids[..half], 0), (&ids[half..], some)] {
        let mut words = vec!["XACK", "s", "g"];
        words.extend(ids.iter().chain(&ids[..again]).map(String::as_str));
        let count = client.call(&words).expect("a reply");
        assert_eq!(count, Value::Int(half as i64));
    }
    check("XACK");
    let Value::Array(summary) = client.ask("XPENDING s g") else {
        panic!("a summary has four parts");
    };
    assert_eq!(summary[0], Value::Int(0));
}
