//! Tests of the writer: every type in both versions, read back by the client's parser.

use super::*;
use crate::client::{Value, parse_value};

/// The bytes that `write` appends to a buffer that holds something already.
fn written(protocol: Protocol, write: impl Fn(&mut Writer<'_>)) -> String {
    let mut out = b"+before\r\n".to_vec();
    write(&mut Writer::new(&mut out, protocol));
    let text = String::from_utf8(out).expect("these replies are text");
    text.strip_prefix("+before\r\n")
        .expect("what was there stays")
        .to_owned()
}

#[track_caller]
fn check(write: impl Fn(&mut Writer<'_>), resp2: &str, resp3: &str) {
    assert_eq!(written(Protocol::Resp2, &write), resp2);
    assert_eq!(written(Protocol::Resp3, &write), resp3);
}

#[test]
fn types_that_both_versions_have() {
    check(|writer| writer.ok(), "+OK\r\n", "+OK\r\n");
    check(|writer| writer.simple("PONG"), "+PONG\r\n", "+PONG\r\n");
    check(
        |writer| writer.error("ERR syntax error"),
        "-ERR syntax error\r\n",
        "-ERR syntax error\r\n",
    );
    check(|writer| writer.bulk(b""), "$0\r\n\r\n", "$0\r\n\r\n");
    check(
        |writer| writer.bulk(b"a\r\nb"),
        "$4\r\na\r\nb\r\n",
        "$4\r\na\r\nb\r\n",
    );
    check(
        |writer| writer.bulk_integer(-12),
        "$3\r\n-12\r\n",
        "$3\r\n-12\r\n",
    );
    check(|writer| writer.array(2), "*2\r\n", "*2\r\n");
    check(|writer| writer.empty_array(), "*0\r\n", "*0\r\n");
    check(
        |writer| {
            writer.bulk_header(3);
            writer.out.extend_from_slice(b"abc");
            writer.crlf();
        },
        "$3\r\nabc\r\n",
        "$3\r\nabc\r\n",
    );
}

#[test]
fn types_that_differ() {
    check(|writer| writer.null(), "$-1\r\n", "_\r\n");
    check(|writer| writer.null_array(), "*-1\r\n", "_\r\n");
    check(|writer| writer.map(50), "*100\r\n", "%50\r\n");
    check(|writer| writer.set(3), "*3\r\n", "~3\r\n");
    check(|writer| writer.push(3), "*3\r\n", ">3\r\n");
    check(
        |writer| assert_eq!(writer.attribute(1), writer.protocol == Protocol::Resp3),
        "",
        "|1\r\n",
    );
    check(|writer| writer.boolean(true), ":1\r\n", "#t\r\n");
    check(|writer| writer.boolean(false), ":0\r\n", "#f\r\n");
    check(
        |writer| writer.double(0.1),
        "$19\r\n0.10000000000000001\r\n",
        ",0.10000000000000001\r\n",
    );
    check(|writer| writer.double(3.0), "$1\r\n3\r\n", ",3\r\n");
    check(
        |writer| writer.double(f64::INFINITY),
        "$3\r\ninf\r\n",
        ",inf\r\n",
    );
    check(
        |writer| writer.double(f64::NEG_INFINITY),
        "$4\r\n-inf\r\n",
        ",-inf\r\n",
    );
    check(
        |writer| writer.double(f64::NAN),
        "$3\r\nnan\r\n",
        ",nan\r\n",
    );
    check(
        |writer| writer.verbatim("txt", b"a\r\n"),
        "$3\r\na\r\n\r\n",
        "=7\r\ntxt:a\r\n\r\n",
    );
    check(
        |writer| writer.big_number("-12345678901234567890"),
        "$21\r\n-12345678901234567890\r\n",
        "(-12345678901234567890\r\n",
    );
}

#[test]
fn line_ends_cannot_break_out_of_a_line() {
    check(
        |writer| writer.error("ERR a\r\n+OK\n"),
        "-ERR a  +OK \r\n",
        "-ERR a  +OK \r\n",
    );
    check(|writer| writer.simple("\r\n"), "+  \r\n", "+  \r\n");
    assert_eq!(
        written(Protocol::Resp3, |writer| writer.big_number("1\r\n2")),
        "(1  2\r\n"
    );
}

#[test]
fn integers_and_lengths_of_all_sizes() {
    let mut random = fastrand::Rng::with_seed(1);
    let randoms = (0..10_000).map(|_| random.i64(..) >> random.u32(..64));
    for value in (-1100..1100)
        .chain([i64::MIN, i64::MAX, 10_000, -10_000])
        .chain(randoms)
    {
        assert_eq!(
            written(Protocol::Resp2, |writer| writer.integer(value)),
            format!(":{value}\r\n")
        );
    }
    for len in (0..1100).chain([9_999, 10_000, 100_000]) {
        assert_eq!(
            written(Protocol::Resp2, |writer| writer.bulk_header(len)),
            format!("${len}\r\n")
        );
        let payload = "x".repeat(len);
        assert_eq!(
            written(Protocol::Resp2, |writer| writer.bulk(payload.as_bytes())),
            format!("${len}\r\n{payload}\r\n")
        );
    }
}

#[test]
fn bulk_strings_in_a_block_are_those_that_are_written_one_by_one() {
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..300 {
        let longest = [3, 20, 40, 120, 2000][round % 5];
        let texts: Vec<Vec<u8>> = (0..round)
            .map(|_| {
                (0..random.usize(..=longest))
                    .map(|_| random.u8(..))
                    .collect()
            })
            .collect();
        let (mut single, mut together) = (b"before".to_vec(), b"before".to_vec());
        let mut limit = Limit::NONE;
        let mut bulks = Bulks::new(&mut together, &mut limit);
        for text in &texts {
            put_bulk(&mut single, text);
            bulks.put(text);
        }
        bulks.finish();
        assert_eq!(together, single);
    }
}

#[test]
fn a_buffer_with_room_stays_where_it_is() {
    let mut out = Vec::with_capacity(4096);
    let place = out.as_ptr();
    let mut writer = Writer::new(&mut out, Protocol::Resp3);
    writer.ok();
    writer.bulk(&[b'a'; 16]);
    writer.bulk(&[b'a'; 3000]);
    writer.integer(-1);
    writer.double(0.3);
    writer.verbatim("txt", b"text");
    writer.error("ERR wrong");
    assert_eq!(out.as_ptr(), place);
}

#[test]
#[should_panic(expected = "three bytes")]
fn a_verbatim_format_has_three_bytes() {
    Writer::new(&mut vec![], Protocol::Resp3).verbatim("text", b"");
}

#[test]
fn the_client_reads_what_was_written() {
    let mut out = vec![];
    let mut writer = Writer::new(&mut out, Protocol::Resp3);
    writer.map(2);
    writer.bulk(b"proto");
    writer.integer(3);
    writer.simple("modules");
    writer.empty_array();
    let bulk = |bytes: &[u8]| Value::Bulk(bytes.to_vec());
    let expected = Value::Map(vec![
        (bulk(b"proto"), Value::Integer(3)),
        (Value::Simple(b"modules".to_vec()), Value::Array(vec![])),
    ]);
    assert_eq!(parse_value(&out), Ok(Some((expected, out.len()))));
}

/// What has no room is left out and counted, and the buffer never takes more than it may.
#[test]
fn a_buffer_grows_as_far_as_there_is_room() {
    for (len, count) in [(5, 10_000), (99, 1_000), (100, 1_000), (5_000, 30)] {
        let bulk = vec![b'x'; len];
        for room in [0, 100, 4_000, 30_000, 70_000, usize::MAX] {
            for is_together in [false, true] {
                let mut out = Vec::new();
                let mut writer = Writer::new(&mut out, Protocol::Resp2);
                writer.limit.room = room;
                if is_together {
                    let mut bulks = writer.bulks();
                    (0..count).for_each(|_| bulks.put(&bulk));
                    bulks.finish();
                } else {
                    (0..count).for_each(|_| writer.bulk(&bulk));
                }
                let dropped = writer.limit.dropped;
                let all = count * (len + 3 + len.to_string().len() + 2);
                assert!(out.capacity() <= room);
                assert!(out.len() + dropped >= all, "nothing is forgotten");
                assert_eq!(dropped == 0, out.len() == all);
                assert_eq!(dropped == 0, room >= all || out.capacity() >= all);
            }
        }
    }
}

/// Lines of numbers and of nothing, too, and of them alone.
#[test]
fn short_replies_take_no_more_room_than_there_is() {
    type Write = fn(&mut Writer<'_>);
    let writes: [Write; 9] = [
        |writer| writer.integer(7),
        |writer| writer.integer(-1_234_567),
        |writer| writer.array(2),
        |writer| writer.map(150),
        |writer| writer.set(3),
        |writer| writer.null(),
        |writer| writer.empty_array(),
        |writer| writer.boolean(true),
        |writer| writer.score(0.1),
    ];
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        for write in writes {
            let mut one = Vec::new();
            write(&mut Writer::new(&mut one, protocol));
            for room in [0, 100, 4_000, usize::MAX] {
                let mut out = Vec::new();
                let mut writer = Writer::new(&mut out, protocol);
                writer.limit.room = room;
                (0..2_000).for_each(|_| write(&mut writer));
                let (dropped, all) = (writer.limit.dropped, 2_000 * one.len());
                assert!(out.capacity() <= room);
                assert!(out.len() + dropped >= all, "nothing is forgotten");
                assert_eq!(dropped == 0, room == usize::MAX);
                assert_eq!(out, one.repeat(2_000)[..out.len()]);
            }
        }
    }
}
