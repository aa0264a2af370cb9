//! What templates write, taken apart again by the server's own parser.

use super::super::numbers::{Pattern, Share, Spec};
use super::*;
use std::sync::Arc;
use sys::Poller;

fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

fn keys(is_random: bool, digits: usize) -> KeyForm {
    KeyForm {
        prefix: b"key:".to_vec(),
        digits,
        is_random,
    }
}

fn values(sizes: Sizes, is_varied: bool) -> ValueForm {
    ValueForm { sizes, is_varied }
}

/// Writes some requests and returns their words.
fn written(
    commands: &[&str],
    keys: &KeyForm,
    values: &ValueForm,
    count: usize,
) -> Vec<Vec<Vec<u8>>> {
    let data = Data::new(1);
    let commands: Vec<_> = commands.iter().map(|command| words(command)).collect();
    let template = Template::new(&commands, keys, values, (7, 12), &data);
    let share = Share {
        first_client: 0,
        own_clients: 1,
        clients: 1,
        appended: Arc::default(),
        cursors: Arc::new([std::sync::atomic::AtomicU64::new(0)]),
    };
    let spec = Spec {
        pattern: Pattern::Sequential,
        ..Spec::uniform(98, 5_000_000)
    };
    let mut numbers = Numbers::new(&spec, &share, 0);
    let mut rng = Rng::with_seed(4);
    let mut out = Outgoing::default();
    for _ in 0..count {
        template.write(
            &mut out,
            &mut Draw {
                rng: &mut rng,
                numbers: &mut numbers,
                data: &data,
                connection: 0,
            },
        );
    }
    parsed(&flat(out, &data))
}

/// The bytes as a socket gets them.
fn flat(mut out: Outgoing, data: &Data) -> Vec<u8> {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    let socket = sys::Socket::from_unix(ours).expect("connected");
    let mut poller = Poller::new(sys::Backend::Auto).expect("a poller");
    let total = out.total();
    let reader = std::thread::spawn(move || {
        use std::io::Read;
        let mut bytes = Vec::new();
        theirs
            .take(total)
            .read_to_end(&mut bytes)
            .expect("it comes");
        bytes
    });
    while !out
        .send(&mut poller, socket.as_fd(), data)
        .expect("it is connected")
    {
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    reader.join().expect("it reads to the end")
}

fn parsed(mut bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (value, len) = resp::parse_value(bytes)
            .expect("well formed")
            .expect("whole");
        let resp::Value::Array(items) = value else {
            panic!("a request is an array, not {value:?}");
        };
        let word = |item| match item {
            resp::Value::Bulk(word) => word,
            other => panic!("a word is a bulk string, not {other:?}"),
        };
        all.push(items.into_iter().map(word).collect());
        bytes = &bytes[len..];
    }
    all
}

fn text(words: &[Vec<u8>]) -> String {
    let words: Vec<_> = words
        .iter()
        .map(|word| String::from_utf8_lossy(word))
        .collect();
    words.join(" ")
}

#[test]
fn digits_are_those_of_the_number() {
    let mut number = 1_u64;
    let mut slot = [0; SLOT_DIGITS];
    for step in 0..100_000_u64 {
        let below = number % 1_000_000_000_000;
        write_slot(&mut slot, below);
        assert_eq!(slot, format!("{below:012}").as_bytes());
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(step);
    }
    for number in [
        0,
        1,
        9,
        10,
        99,
        100,
        9_999,
        10_000,
        99_999_999,
        100_000_000,
        999_999_999_999,
    ] {
        write_slot(&mut slot, number);
        assert_eq!(slot, format!("{number:012}").as_bytes());
    }
    write_slot(&mut slot, 1_000_000_000_007);
    assert_eq!(&slot, b"000000000007", "only the last digits fit");
}

#[test]
fn each_request_has_the_next_key() {
    let fixed = values(Sizes::Fixed(3), false);
    let all = written(&["SET __key__ __data__"], &keys(true, 12), &fixed, 3);
    let expected = ["key:000000000098", "key:000000000099", "key:000000000100"];
    for (request, key) in all.iter().zip(expected) {
        assert_eq!(text(&request[..2]), format!("SET {key}"));
        assert_eq!(request[2].len(), 3);
    }
    let all = written(&["GET __key__"], &keys(true, 0), &fixed, 3);
    let all: Vec<_> = all.iter().map(|request| text(request)).collect();
    assert_eq!(all, ["GET key:98", "GET key:99", "GET key:100"]);
    let all = written(&["GET __key__"], &keys(true, 3), &fixed, 3);
    let all: Vec<_> = all.iter().map(|request| text(request)).collect();
    assert_eq!(all, ["GET key:098", "GET key:099", "GET key:100"]);
}

#[test]
fn without_a_range_placeholders_stay() {
    let fixed = values(Sizes::Fixed(3), false);
    let all = written(
        &["GET __key__", "LPUSH l a__rand_int__b"],
        &keys(false, 12),
        &fixed,
        1,
    );
    assert_eq!(text(&all[0]), "GET key:__rand_int__");
    assert_eq!(text(&all[1]), "LPUSH l a__rand_int__b");
}

#[test]
fn every_placeholder_of_a_command_draws_anew() {
    let fixed = values(Sizes::Fixed(1), false);
    let all = written(
        &[
            "ZADD z __rand_int__ m:__rand_int__",
            "X __rand_int____rand_int__ ___rand_int__",
        ],
        &keys(true, 12),
        &fixed,
        1,
    );
    assert_eq!(text(&all[0]), "ZADD z 000000000098 m:000000000099");
    assert_eq!(text(&all[1]), "X 000000000100000000000101 _000000000102");
}

#[test]
fn values_have_their_sizes_inline_and_by_reference() {
    for (sizes, allowed) in [
        (Sizes::Fixed(0), vec![0]),
        (Sizes::Fixed(INLINE_BYTES), vec![INLINE_BYTES]),
        (Sizes::Fixed(INLINE_BYTES + 1), vec![INLINE_BYTES + 1]),
        (Sizes::Fixed(3 << 20), vec![3 << 20]),
        (
            Sizes::List(vec![(1, 1), (100, 1), (70_000, 1)]),
            vec![1, 100, 70_000],
        ),
    ] {
        for is_varied in [false, true] {
            let form = values(sizes.clone(), is_varied);
            let all = written(&["SET __key__ __data__"], &keys(true, 12), &form, 9);
            assert_eq!(all.len(), 9);
            let mut seen = Vec::new();
            for request in &all {
                assert!(allowed.contains(&(request[2].len() as u64)), "{sizes:?}");
                seen.push(request[2].iter().take(8).copied().collect::<Vec<_>>());
            }
            seen.dedup();
            if allowed[0] > 100 {
                assert_eq!(seen.len() > 1, is_varied, "{sizes:?}");
            }
        }
    }
}

#[test]
fn expiries_stay_in_their_range() {
    let fixed = values(Sizes::Fixed(1), false);
    let all = written(
        &["SET __key__ __data__ EX __expiry__"],
        &keys(true, 12),
        &fixed,
        200,
    );
    let mut seen: Vec<u64> = all
        .iter()
        .map(|request| text(&request[4..]).parse().expect("a number"))
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [7, 8, 9, 10, 11, 12]);
}

#[test]
fn several_commands_are_one_request() {
    let fixed = values(Sizes::Fixed(1), false);
    let all = written(
        &["MULTI", "INCR __key__", "EXEC"],
        &keys(true, 12),
        &fixed,
        2,
    );
    let all: Vec<_> = all.iter().map(|request| text(request)).collect();
    assert_eq!(
        all,
        [
            "MULTI",
            "INCR key:000000000098",
            "EXEC",
            "MULTI",
            "INCR key:000000000099",
            "EXEC"
        ]
    );
}
