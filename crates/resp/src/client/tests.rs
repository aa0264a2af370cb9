//! Tests of the client's parser: every type, every cut, and hostile servers.

use super::*;

fn bulk(bytes: &[u8]) -> Value {
    Value::Bulk(bytes.to_vec())
}

fn double(value: f64, text: &[u8]) -> Value {
    Value::Double {
        value,
        text: text.to_vec(),
    }
}

/// Replies of every type, and what they mean.
fn samples() -> Vec<(&'static [u8], Value)> {
    use Value::*;
    vec![
        (b"+OK\r\n", Simple(b"OK".to_vec())),
        (b"+\r\n", Simple(vec![])),
        (b"-ERR no\r\n", Error(b"ERR no".to_vec())),
        (b"!6\r\nERR\r\nx\r\n", Error(b"ERR\r\nx".to_vec())),
        (b":-42\r\n", Integer(-42)),
        (b"$5\r\na\r\nbc\r\n", bulk(b"a\r\nbc")),
        (b"$0\r\n\r\n", bulk(b"")),
        (b"$-1\r\n", Null),
        (b"*-1\r\n", Null),
        (b"_\r\n", Null),
        (b"*0\r\n", Array(vec![])),
        (
            b"*2\r\n:1\r\n*1\r\n$1\r\na\r\n",
            Array(vec![Integer(1), Array(vec![bulk(b"a")])]),
        ),
        (
            b"%1\r\n+a\r\n~2\r\n:1\r\n:2\r\n",
            Map(vec![(
                Simple(b"a".to_vec()),
                Set(vec![Integer(1), Integer(2)]),
            )]),
        ),
        (
            b">2\r\n+message\r\n_\r\n",
            Push(vec![Simple(b"message".to_vec()), Null]),
        ),
        (b",1.50\r\n", double(1.5, b"1.50")),
        (b",-inf\r\n", double(f64::NEG_INFINITY, b"-inf")),
        (b"#t\r\n", Boolean(true)),
        (b"#f\r\n", Boolean(false)),
        (
            b"=8\r\ntxt:a\r\nb\r\n",
            Verbatim {
                format: *b"txt",
                text: b"a\r\nb".to_vec(),
            },
        ),
        (
            b"(12345678901234567890\r\n",
            BigNumber(b"12345678901234567890".to_vec()),
        ),
        (
            b"|1\r\n+ttl\r\n:3\r\n*1\r\n$1\r\nv\r\n",
            Attribute {
                attributes: vec![(Simple(b"ttl".to_vec()), Integer(3))],
                value: Box::new(Array(vec![bulk(b"v")])),
            },
        ),
    ]
}

#[test]
fn replies_of_every_type() {
    for (input, value) in samples() {
        assert_eq!(
            parse_value(input),
            Ok(Some((value, input.len()))),
            "{}",
            input.escape_ascii()
        );
        // What follows is another reply.
        let mut more = input.to_vec();
        more.extend_from_slice(b"+more");
        let parsed = parse_value(&more)
            .expect("the first reply is whole")
            .expect("the first reply is whole");
        assert_eq!(parsed.1, input.len());
    }
    assert!(
        matches!(parse_value(b",nan\r\n"), Ok(Some((Value::Double { value, .. }, 6))) if value.is_nan())
    );
}

#[test]
fn every_prefix_is_incomplete() {
    for (input, _) in samples() {
        for cut in 0..input.len() {
            assert_eq!(
                parse_value(&input[..cut]),
                Ok(None),
                "{} cut at {cut}",
                input.escape_ascii()
            );
        }
    }
}

#[test]
fn a_scanner_finds_the_same_ends_in_any_pieces() {
    let stream: Vec<u8> = samples()
        .iter()
        .flat_map(|(input, _)| input.iter().copied())
        .collect();
    for step in 1..40 {
        let mut scanner = ReplyScanner::default();
        let (mut start, mut lens) = (0, vec![]);
        let mut end = 0;
        while end < stream.len() {
            end = (end + step).min(stream.len());
            while let Some(len) = scanner
                .scan(&stream[start..end])
                .expect("the stream is well-formed")
            {
                lens.push(len);
                start += len;
            }
        }
        let expected: Vec<usize> = samples().iter().map(|(input, _)| input.len()).collect();
        assert_eq!(lens, expected, "steps of {step}");
    }
}

#[test]
fn malformed_replies() {
    let cases: [(&[u8], ReplyError); 20] = [
        (b"x", ReplyError::UnknownType(b'x')),
        (b"\r\n", ReplyError::UnknownType(b'\r')),
        (b"+OK\n", ReplyError::InvalidLine),
        (b":\r\n", ReplyError::InvalidLine),
        (b":1a\r\n", ReplyError::InvalidLine),
        (b":9223372036854775808\r\n", ReplyError::InvalidLine),
        (b"$-2\r\n", ReplyError::InvalidLine),
        (b"$?\r\n", ReplyError::InvalidLine),
        (b"*x\r\n", ReplyError::InvalidLine),
        (b"%-1\r\n", ReplyError::InvalidLine),
        (b"~-1\r\n", ReplyError::InvalidLine),
        (b"_x\r\n", ReplyError::InvalidLine),
        (b"#x\r\n", ReplyError::InvalidLine),
        (b",x\r\n", ReplyError::InvalidLine),
        (b"$1\r\nabc", ReplyError::InvalidPayload),
        (b"$1\r\na\n\n", ReplyError::InvalidPayload),
        (b"=3\r\ntxt\r\n", ReplyError::InvalidPayload),
        (b"=4\r\ntxt-\r\n", ReplyError::InvalidPayload),
        (b"*2\r\n:1\r\nx", ReplyError::UnknownType(b'x')),
        (b"%1\r\n:1\r\nx", ReplyError::UnknownType(b'x')),
    ];
    for (input, error) in cases {
        assert_eq!(parse_value(input), Err(error), "{}", input.escape_ascii());
        assert_eq!(
            ReplyScanner::default().scan(input),
            Err(error),
            "{}",
            input.escape_ascii()
        );
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = |depth: usize| [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
    assert!(matches!(parse_value(&deep(MAX_DEPTH)), Ok(Some(_))));
    assert_eq!(parse_value(&deep(MAX_DEPTH + 1)), Err(ReplyError::TooDeep));
    assert_eq!(
        parse_value(&b"|0\r\n".repeat(100_000)),
        Err(ReplyError::TooDeep)
    );
    // The scanner keeps no stack, so it has no bound.
    let input = deep(100_000);
    assert_eq!(ReplyScanner::default().scan(&input), Ok(Some(input.len())));
}

#[test]
fn claimed_sizes_are_not_believed() {
    for input in [
        &b"*9223372036854775807\r\n:1\r\n"[..],
        b"%9223372036854775807\r\n:1\r\n",
        b"$9223372036854775807\r\na",
    ] {
        assert_eq!(parse_value(input), Ok(None));
        assert_eq!(ReplyScanner::default().scan(input), Ok(None));
    }
    let nested = b"|9223372036854775807\r\n".repeat(10);
    assert_eq!(ReplyScanner::default().scan(&nested), Ok(None));
}

#[test]
fn requests_are_arrays_of_bulk_strings() {
    let mut out = b"before".to_vec();
    write_request(&mut out, &[b"SET", b"", &[b'v'; 10]]);
    assert_eq!(
        out,
        b"before*3\r\n$3\r\nSET\r\n$0\r\n\r\n$10\r\nvvvvvvvvvv\r\n"
    );
}
