//! Tests of the parser: its forms, limits and errors.
//!
//! What Redis makes of hostile bytes is compared in `tests/recorded.rs`; streams cut into pieces
//! are in `tests/pieces.rs`.

use super::*;
use crate::client::write_request;

mod pieces;

type Args = Vec<Vec<u8>>;

/// The multibulk form of a request.
fn request_of(args: &[&[u8]]) -> Vec<u8> {
    let mut request = vec![];
    write_request(&mut request, args);
    request
}

/// Parses the one request at the start of `input`.
fn parse_one(input: &[u8], limits: &Limits) -> Result<(Outcome, Args), ProtocolError> {
    let mut input = input.to_vec();
    let mut args = vec![];
    let outcome = parse(&mut input, 0, limits, &mut Resume::default(), &mut args)?;
    Ok((
        outcome,
        args.iter().map(|span| span.of(&input).to_vec()).collect(),
    ))
}

/// The arguments of `input`, which is one whole request.
fn args_of(input: &[u8]) -> Args {
    let (outcome, args) = parse_one(input, &Limits::default()).expect("the request is well-formed");
    assert_eq!(outcome, Outcome::Request { end: input.len() });
    args
}

fn error_of(input: &[u8], limits: &Limits) -> String {
    parse_one(input, limits)
        .expect_err("the request is malformed")
        .to_string()
}

fn need_of(input: &[u8]) -> usize {
    match parse_one(input, &Limits::default()) {
        Ok((Outcome::Incomplete { need }, _)) => need,
        other => panic!("{other:?}"),
    }
}

#[test]
fn multibulk_requests_of_all_sizes() {
    for arg_len in [0, 1, 9, 10, 16, 99, 100, 999, 1000, 9999, 10_000, 99_999] {
        for arg_count in [1, 2, 3, 4, 9, 10, 99, 100, 1000] {
            if arg_len * arg_count > 1_000_000 {
                continue;
            }
            let arg: Vec<u8> = (0..arg_len).map(|index| index as u8).collect();
            let args = vec![&arg[..]; arg_count];
            assert_eq!(
                args_of(&request_of(&args)),
                args,
                "{arg_count} of {arg_len} bytes"
            );
        }
    }
}

#[test]
fn requests_without_arguments() {
    for input in [
        &b"*0\r\n"[..],
        b"*-1\r\n",
        b"*-10\r\n",
        b"\r\n",
        b"\n",
        b" \t\x0b\x0c \r\n",
        b"*-9223372036854775808\r\n",
    ] {
        assert_eq!(args_of(input), Args::new(), "{}", input.escape_ascii());
    }
}

#[test]
fn bytes_that_are_skipped_may_be_anything() {
    assert_eq!(args_of(b"*1\rx$4\ryPINGzz"), [b"PING"]);
    assert_eq!(
        args_of(b"*3\r\n$1\r\na$1$1\r\nb\0\0$10\r-0123456789*3"),
        [&b"a"[..], b"b", b"0123456789"]
    );
}

#[test]
fn inline_words() {
    let cases: [(&[u8], &[&[u8]]); 16] = [
        (b"PING\n", &[b"PING"]),
        (b"PING\r\n", &[b"PING"]),
        (b"  set\ta  b \r\n", &[b"set", b"a", b"b"]),
        (b"a\rb\r\r\n", &[b"a", b"b"]),
        (b"a\x0bb \x0bc\r\n", &[b"a\x0bb", b"c"]),
        (b"\"\" ''\r\n", &[b"", b""]),
        (b"\"a b\" 'c d'\n", &[b"a b", b"c d"]),
        (b"a\"b c\" d'e'\n", &[b"ab c", b"de"]),
        (b"\"\\x41\\x0a\\xfF\\xg1\\x4\"\n", &[b"A\n\xffxg1x4"]),
        (
            b"\"\\n\\r\\t\\b\\a\\\\\\\"\\q\"\n",
            &[b"\n\r\t\x08\x07\\\"q"],
        ),
        (b"'\\n\\'\\\\ '\n", &[b"\\n'\\\\ "]),
        (b"\\n \\x41\n", &[b"\\n", b"\\x41"]),
        (b"\"a'b\" 'c\"d'\n", &[b"a'b", b"c\"d"]),
        (b"\"a\"\x0b'b'\r\n", &[b"a", b"b"]),
        (b" *1\r\n", &[b"*1"]),
        (b"\xff\x80\n", &[b"\xff\x80"]),
    ];
    for (input, expected) in cases {
        assert_eq!(args_of(input), expected, "{}", input.escape_ascii());
    }
}

#[test]
fn unbalanced_quotes() {
    for input in [
        "\"\n",
        "'\n",
        "a \"b\r\n",
        "\"a\"b\n",
        "'a'b\n",
        "\"a\"\"b\"\n",
        "\"\\\"\n",
        "'\\'\n",
        "\"\\\n",
        "\"\\x4\n",
    ] {
        let error = error_of(input.as_bytes(), &Limits::default());
        assert_eq!(
            error, "Protocol error: unbalanced quotes in request",
            "{input:?}"
        );
    }
}

#[test]
fn malformed_headers() {
    let count = "Protocol error: invalid multibulk length";
    let length = "Protocol error: invalid bulk length";
    let cases = [
        ("*\r\n", count),
        ("*x\r\n", count),
        ("*+1\r\n", count),
        ("*-0\r\n", count),
        ("*01\r\n", count),
        ("* 1\r\n", count),
        ("*1\n\r\n", count),
        ("*2147483648\r\n", count),
        ("*99999999999999999999\r\n", count),
        ("*1\r\n$\r\n", length),
        ("*1\r\n$-1\r\n", length),
        ("*1\r\n$00\r\n", length),
        ("*1\r\n$01\r\n", length),
        ("*1\r\n$0x\r\n", length),
        ("*1\r\n$:\r\n", length),
        ("*1\r\n$/\r\n", length),
        ("*1\r\n$1/\r\n", length),
        ("*1\r\n$1:\r\n", length),
        ("*1\r\n$:1\r\n", length),
        ("*1\r\n$/1\r\n", length),
        ("*1\r\n$001\r\n", length),
        ("*1\r\n$1a1\r\n", length),
        ("*1\r\n$0001\r\n", length),
        ("*1\r\n$536870913\r\n", length),
        ("*1\r\n$18446744073709551616\r\n", length),
        ("*1\r\nx1\r\n", "Protocol error: expected '$', got 'x'"),
        ("*1\r\n\r\n", "Protocol error: expected '$', got ' '"),
        ("*1\r\n\n1\r\n", "Protocol error: expected '$', got ' '"),
        (
            "*2\r\n$1\r\na\r\n*1\r\n",
            "Protocol error: expected '$', got '*'",
        ),
    ];
    for (input, expected) in cases {
        // The quick path sees a header only where enough bytes follow.
        for input in [input.to_owned(), format!("{input}{}", "a".repeat(20))] {
            let error = error_of(input.as_bytes(), &Limits::default());
            assert_eq!(error, expected, "{input:?}");
        }
    }
    assert_eq!(
        error_of(b"*1\r\n\xff\r\n", &Limits::default()),
        "Protocol error: expected '$', got '\u{ff}'"
    );
}

#[test]
fn error_replies_repeat_the_byte_as_it_is() {
    let mut out = vec![];
    ProtocolError::ExpectedDollar(0xff).write_reply(&mut out);
    ProtocolError::ExpectedDollar(b'\r').write_reply(&mut out);
    ProtocolError::InvalidCount.write_reply(&mut out);
    assert_eq!(
        out.escape_ascii().to_string(),
        "-ERR Protocol error: expected \\'$\\', got \\'\\xff\\'\\r\\n\
         -ERR Protocol error: expected \\'$\\', got \\' \\'\\r\\n\
         -ERR Protocol error: invalid multibulk length\\r\\n"
    );
}

#[test]
fn lines_end_within_the_limit() {
    let limits = Limits::default();
    let error = "Protocol error: too big inline request";
    for (line_len, may_wait, may_be_whole) in [
        (65_535, true, true),
        (65_536, true, true),
        (65_537, false, true),
        (81_919, false, true),
        (81_920, false, false),
        (90_000, false, false),
    ] {
        let line = "1".repeat(line_len);
        let ended = format!("{line}\n");
        if may_wait {
            assert_eq!(need_of(line.as_bytes()), line_len + 1);
        } else {
            assert_eq!(error_of(line.as_bytes(), &limits), error);
        }
        if may_be_whole {
            assert!(parse_one(ended.as_bytes(), &limits).is_ok());
        } else {
            assert_eq!(error_of(ended.as_bytes(), &limits), error);
        }
    }
}

#[test]
fn a_length_has_an_end_or_is_too_long() {
    for (head, line_start) in [("*", 0), ("*1\r\n$", 4), ("*2\r\n$1\r\na\r\n$", 11)] {
        let longest = format!("{head}{}", "9".repeat(LONGEST_HEADER - 1));
        assert_eq!(need_of(longest.as_bytes()), line_start + LONGEST_HEADER + 1);
        let ends = format!("{longest}\r");
        assert_eq!(need_of(ends.as_bytes()), ends.len() + 1);
        let ended = error_of(format!("{longest}\r\n").as_bytes(), &Limits::default());
        assert!(ended.contains("invalid"), "{ended}");
        for longer in ["9", "9\r\n", &"9".repeat(70_000)] {
            let error = error_of(format!("{longest}{longer}").as_bytes(), &Limits::default());
            assert!(error.contains("too big"), "{error}");
        }
    }
}

#[test]
fn a_nul_hides_the_end_of_a_line() {
    let inline = Limits::default().max_inline_len;
    let cases = [
        ("PING\0\r\n", inline),
        ("\0\n", inline),
        ("*1\0\r\n", LONGEST_HEADER),
        ("*1\r\n$1\0\r\n", LONGEST_HEADER),
    ];
    for (head, longest) in cases {
        let line_start = head.find('$').unwrap_or(0);
        let mut input = format!("{head}{}", "\r\n".repeat(longest / 2)).into_bytes();
        input.truncate(line_start + longest);
        assert_eq!(
            need_of(head.as_bytes()),
            line_start + longest + 1,
            "{head:?}"
        );
        assert_eq!(need_of(&input), line_start + longest + 1, "{head:?}");
        input.push(b'\n');
        assert!(
            error_of(&input, &Limits::default()).contains("too big"),
            "{head:?}"
        );
    }
}

#[test]
fn limits_are_inclusive() {
    let limits = Limits {
        max_bulk_len: 20_000,
        max_args: 12,
        max_inline_len: 100,
        whole_inline_extra: 0,
        authenticated: true,
    };
    let too_many = "Protocol error: invalid multibulk length";
    assert!(parse_one(b"*12\r\n", &limits).is_ok());
    assert_eq!(error_of(b"*13\r\n", &limits), too_many);
    let thirteen = request_of(&[&b"a"[..]; 13]);
    assert_eq!(error_of(&thirteen, &limits), too_many);
    assert!(parse_one(b"*1\r\n$20000\r\n", &limits).is_ok());
    assert_eq!(
        error_of(b"*1\r\n$20001\r\n", &limits),
        "Protocol error: invalid bulk length"
    );
    assert!(parse_one(&[b'a'; 100], &limits).is_ok());
    assert_eq!(
        error_of(&[b'a'; 101], &limits),
        "Protocol error: too big inline request"
    );
}

#[test]
fn little_is_accepted_before_authentication() {
    let limits = Limits {
        authenticated: false,
        ..Limits::default()
    };
    let ten = request_of(&[&b"a"[..]; 10]);
    assert!(
        matches!(parse_one(&ten, &limits), Ok((Outcome::Request { .. }, args)) if args.len() == 10)
    );
    let eleven = request_of(&[&b"a"[..]; 11]);
    assert_eq!(
        error_of(&eleven, &limits),
        "Protocol error: unauthenticated multibulk length"
    );
    assert_eq!(
        error_of(b"*11\r\n", &limits),
        "Protocol error: unauthenticated multibulk length"
    );
    assert_eq!(
        error_of(b"*2147483648\r\n", &limits),
        "Protocol error: invalid multibulk length"
    );
    assert!(parse_one(b"*1\r\n$16384\r\n", &limits).is_ok());
    assert_eq!(
        error_of(b"*1\r\n$16385\r\n", &limits),
        "Protocol error: unauthenticated bulk length"
    );
    assert_eq!(
        error_of(b"*1\r\n$536870913\r\n", &limits),
        "Protocol error: invalid bulk length"
    );
}

#[test]
fn need_is_the_next_step() {
    assert_eq!(need_of(b""), 1);
    assert_eq!(need_of(b"*"), 2);
    assert_eq!(need_of(b"*3\r"), 4);
    assert_eq!(need_of(b"*3\r\n"), 5);
    assert_eq!(need_of(b"*3\r\n$3\r"), 8);
    assert_eq!(need_of(b"*3\r\n$3\r\n"), 13);
    assert_eq!(need_of(b"*3\r\n$3\r\nSET\r"), 13);
    assert_eq!(need_of(b"*3\r\n$3\r\nSET\r\n"), 14);
    assert_eq!(need_of(b"*1\r\n$536870912\r\n"), 16 + 536_870_912 + 2);
    assert_eq!(need_of(b"PING"), 5);
}

#[test]
fn absurd_limits_do_not_overflow() {
    let limits = Limits {
        max_bulk_len: usize::MAX,
        max_args: usize::MAX,
        max_inline_len: usize::MAX,
        authenticated: true,
        whole_inline_extra: usize::MAX,
    };
    let (outcome, _) = parse_one(b"*9223372036854775807\r\n$9223372036854775807\r\n", &limits)
        .expect("both are in the limits");
    assert!(matches!(outcome, Outcome::Incomplete { need } if need > i64::MAX as usize));
    assert!(parse_one(b"PING\0", &limits).is_ok());
}

#[test]
fn claimed_counts_reserve_nothing() {
    for input in [
        &b"*2147483647\r\n$1\r\na\r\n"[..],
        b"*2147483647\r\n$536870912\r\n",
    ] {
        let mut args = vec![];
        let mut resume = Resume::default();
        parse(
            &mut input.to_vec(),
            0,
            &Limits::default(),
            &mut resume,
            &mut args,
        )
        .expect("there is nothing wrong yet");
        assert!(args.capacity() <= 8 && resume.spans.capacity() <= 8);
    }
}

#[test]
fn an_idle_resume_is_small() {
    assert!(size_of::<Resume>() <= 64);
    let mut input = request_of(&[&b"a"[..]; 10_000]);
    let (mut resume, mut args) = (Resume::default(), vec![]);
    let last = input.len() - 1;
    let outcome = parse(
        &mut input[..last],
        0,
        &Limits::default(),
        &mut resume,
        &mut args,
    );
    assert_eq!(outcome, Ok(Outcome::Incomplete { need: last + 1 }));
    assert!(args.is_empty() && !resume.is_idle() && resume.spans.len() == 9_999);
    let outcome = parse(&mut input, 0, &Limits::default(), &mut resume, &mut args);
    assert_eq!(outcome, Ok(Outcome::Request { end: last + 1 }));
    assert!(args.len() == 10_000 && resume.is_idle() && resume.spans.capacity() <= KEPT_SPANS);
}

#[test]
fn what_was_seen_is_not_searched_again() {
    let mut resume = Resume::default();
    let mut input = vec![b'a'; 100];
    let _ = parse(&mut input, 0, &Limits::default(), &mut resume, &mut vec![]);
    assert!(matches!(resume.stage, Stage::Inline { scanned: 100 }));
    resume.clear();
    input = format!("*{}", "1".repeat(19)).into_bytes();
    let _ = parse(&mut input, 0, &Limits::default(), &mut resume, &mut vec![]);
    assert!(matches!(resume.stage, Stage::Count { scanned: 20 }));
    resume.clear();
    input = format!("*2\r\n$1\r\na\r\n${}", "1".repeat(19)).into_bytes();
    let _ = parse(&mut input, 0, &Limits::default(), &mut resume, &mut vec![]);
    assert!(matches!(
        resume.stage,
        Stage::Bulk {
            start: 11,
            scanned: 20
        }
    ));
    assert_eq!(resume.missing, 1);
}

#[test]
fn an_error_leaves_no_trace() {
    let (mut resume, mut args) = (Resume::default(), vec![Span { start: 1, len: 2 }]);
    let mut input = b"*2\r\n$1\r\na\r\n$x\r\n".to_vec();
    for cut in [input.len(), 13] {
        let mut outcome = parse(
            &mut input[..cut],
            0,
            &Limits::default(),
            &mut resume,
            &mut args,
        );
        if cut < input.len() {
            assert!(matches!(outcome, Ok(Outcome::Incomplete { .. })));
            outcome = parse(&mut input, 0, &Limits::default(), &mut resume, &mut args);
        }
        assert_eq!(outcome, Err(ProtocolError::InvalidLength));
        assert!(resume.is_idle());
        assert_eq!(args, [Span { start: 1, len: 2 }]);
    }
}

#[test]
fn a_changed_limit_does_no_harm_to_a_line_under_way() {
    let mut input = vec![b'a'; 200];
    let mut resume = Resume::default();
    let mut limits = Limits {
        max_inline_len: 300,
        whole_inline_extra: 0,
        ..Limits::default()
    };
    let _ = parse(&mut input, 0, &limits, &mut resume, &mut vec![]);
    limits.max_inline_len = 50;
    input.push(b'\n');
    let outcome = parse(&mut input, 0, &limits, &mut resume, &mut vec![]);
    assert_eq!(outcome, Err(ProtocolError::InlineTooBig));
}

#[test]
#[should_panic(expected = "out of range")]
fn a_position_behind_the_input_is_a_mistake_of_the_caller() {
    let _ = parse(
        &mut [b'a'; 3],
        4,
        &Limits::default(),
        &mut Resume::default(),
        &mut vec![],
    );
}

#[test]
fn an_argument_that_has_arrived_in_part_is_told() {
    let request = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n0123456789\r\n";
    for have in 0..request.len() {
        let (mut input, mut resume, mut args) =
            (request[..have].to_vec(), Resume::default(), Vec::new());
        let outcome = parse(&mut input, 0, &Limits::default(), &mut resume, &mut args);
        assert!(matches!(outcome, Ok(Outcome::Incomplete { .. })), "{have}");
        let awaited = resume.awaited(&input);
        let told = |argument, header, payload, len| {
            let awaited = Awaited {
                argument,
                header,
                payload,
                len,
            };
            Some(awaited)
        };
        let expected = match have {
            8..13 => told(0, 4, 8, 3),
            17..20 => told(1, 13, 17, 1),
            25.. => told(2, 20, 25, 10),
            _ => None,
        };
        assert_eq!(awaited, expected, "{have}");
        if have >= 25 {
            let name = resume.argument(0).expect("it is there");
            assert_eq!(name.of(&input), b"SET");
            assert_eq!(resume.argument(2), None);
        }
    }
}
