//! Tests of the test house itself: what is written reads back, and what should not match does not.

use std::path::Path;

use super::expect::Outcome;
use super::notation::{Reader, write_outcome};
use super::script::{Action, Script};
use super::support::{Proto, Target, Value, parse_value};

fn decode(wire: &str) -> Value {
    let (value, length) = parse_value(wire.as_bytes())
        .expect("valid")
        .expect("complete");
    assert_eq!(length, wire.len());
    value
}

fn accepts(written: &str, wire: &str, proto: Proto) -> bool {
    let mut reader = Reader::new(written);
    let (expected, _) = reader
        .next(false)
        .unwrap_or_else(|why| panic!("{written}: {why}"));
    assert!(reader.rest_of_line().is_empty(), "{written}");
    expected.accepts(&Outcome::Reply(decode(wire)), proto)
}

#[test]
fn one_expectation_serves_both_protocols() {
    for (written, resp2, resp3) in [
        ("nil", "$-1\r\n", "_\r\n"),
        ("nil[]", "*-1\r\n", "_\r\n"),
        (
            "{\"a\": 1}",
            "*2\r\n$1\r\na\r\n:1\r\n",
            "%1\r\n$1\r\na\r\n:1\r\n",
        ),
        (
            "set[\"a\", \"b\"]",
            "*2\r\n$1\r\nb\r\n$1\r\na\r\n",
            "~2\r\n$1\r\nb\r\n$1\r\na\r\n",
        ),
        ("push[\"a\"]", "*1\r\n$1\r\na\r\n", ">1\r\n$1\r\na\r\n"),
        ("1.5", "$3\r\n1.5\r\n", ",1.5\r\n"),
        ("inf", "$3\r\ninf\r\n", ",inf\r\n"),
        ("true", ":1\r\n", "#t\r\n"),
        (
            "(12345678901234567890)",
            "$20\r\n12345678901234567890\r\n",
            "(12345678901234567890\r\n",
        ),
        ("txt\"ab\"", "$2\r\nab\r\n", "=6\r\ntxt:ab\r\n"),
    ] {
        assert!(accepts(written, resp2, Proto::Resp2), "{written} {resp2}");
        assert!(accepts(written, resp3, Proto::Resp3), "{written} {resp3}");
        assert!(!accepts(written, resp2, Proto::Resp3), "{written} {resp2}");
        assert!(!accepts(written, resp3, Proto::Resp2), "{written} {resp3}");
    }
}

#[test]
fn types_are_told_apart() {
    let both = |written: &str, wire: &str| {
        accepts(written, wire, Proto::Resp2) || accepts(written, wire, Proto::Resp3)
    };
    for (written, wire) in [
        ("\"1\"", ":1\r\n"),
        ("1", "$1\r\n1\r\n"),
        ("+OK", "$2\r\nOK\r\n"),
        ("\"OK\"", "+OK\r\n"),
        ("-ERR x", "+ERR x\r\n"),
        ("nil", "$0\r\n\r\n"),
        ("[]", "*1\r\n:1\r\n"),
        ("[1]", "*0\r\n"),
        ("[1, 2]", "*2\r\n:2\r\n:1\r\n"),
        ("closed", "+closed\r\n"),
        ("<int 5..>", ":4\r\n"),
        ("<int>", "$1\r\n1\r\n"),
        ("<str>", "+OK\r\n"),
        ("/a/", "$2\r\nab\r\n"),
        ("<lines /a/ /c/>", "$4\r\na\r\nb\r\n"),
    ] {
        assert!(!both(written, wire), "{written} accepts {wire}");
    }
}

#[test]
fn patterns_match() {
    for (written, wire) in [
        ("<any>", "*1\r\n*0\r\n"),
        ("<int ..-5>", ":-5\r\n"),
        ("<int 1..3>", ":3\r\n"),
        ("-/ERR .*/", "-ERR whatever\r\n"),
        ("/a\\/b[0-9]+/", "$5\r\na/b12\r\n"),
        ("<lines /b/ /a.*/>", "$5\r\nax\r\nb\r\n"),
        ("unordered [<int 1..2>, 1]", "*2\r\n:1\r\n:2\r\n"),
        ("unordered [2, ...]", "*3\r\n:1\r\n:2\r\n:3\r\n"),
        ("[1, ...]", "*2\r\n:1\r\n:2\r\n"),
        ("[+a, -\"b c\", []]", "*3\r\n+a\r\n-b c\r\n*0\r\n"),
        ("[\n  1\n  2\n]", "*2\r\n:1\r\n:2\r\n"),
    ] {
        assert!(
            accepts(written, wire, Proto::Resp2),
            "{written} does not accept {wire}"
        );
    }
}

#[test]
fn what_is_written_reads_back() {
    let long = format!("$300\r\n{}\r\n", "ab".repeat(150));
    for wire in [
        "+OK\r\n",
        "+/x/\r\n",
        "+\r\n",
        "-ERR a \"b\" c\r\n",
        "-1\r\n",
        ":-5\r\n",
        "$5\r\na\"\\\r\n\r\n",
        ",1\r\n",
        ",-1.5\r\n",
        ",-inf\r\n",
        "(123\r\n",
        "#f\r\n",
        "=7\r\nmkd:a\r\n\r\n",
        "*4\r\n+a b\r\n-x]\r\n%1\r\n+k\r\n~1\r\n:1\r\n>1\r\n_\r\n",
        &long,
    ] {
        let outcome = Outcome::Reply(decode(wire));
        let written = write_outcome(&outcome);
        let mut reader = Reader::new(&written);
        let (expected, text) = reader
            .next(false)
            .unwrap_or_else(|why| panic!("{written}: {why}"));
        assert!(
            reader.rest_of_line().is_empty() && text == written,
            "{written}"
        );
        assert!(expected.accepts(&outcome, Proto::Resp3), "{written}");
    }
}

#[test]
fn the_decoder_is_strict() {
    for wire in [
        "+a\n",
        "$3\r\nabcd\r\n",
        ":01\r\n",
        ":+1\r\n",
        "$-2\r\n",
        "*x\r\n",
        "#x\r\n",
        "=2\r\nab\r\n",
        "?\r\n",
        "+a\rb\r\n",
    ] {
        assert!(parse_value(wire.as_bytes()).is_err(), "{wire:?}");
    }
    let whole = "*3\r\n$2\r\nab\r\n%1\r\n+k\r\n_\r\n,1.5\r\n";
    for end in 0..whole.len() {
        assert_eq!(
            parse_value(&whole.as_bytes()[..end]),
            Ok(None),
            "cut at {end}"
        );
    }
}

#[test]
fn the_most_specific_reply_counts() {
    let text = "GET k\n  resp2 -> 1\n  resp3 -> 2\n  ferrite: on purpose -> 3\n  \
                ferrite resp3: on purpose -> 4\n";
    let script = Script::parse(Path::new("x"), text, false).expect("a valid script");
    let command = &script.blocks().next().expect("a block").commands[0];
    let ferrite = Target::Ferrite { threads: 1 };
    for (target, proto, expected) in [
        (Target::Redis, Proto::Resp2, "1"),
        (Target::Redis, Proto::Resp3, "2"),
        (ferrite, Proto::Resp2, "3"),
        (ferrite, Proto::Resp3, "4"),
    ] {
        assert_eq!(
            command.reply(target, proto).expect("a reply").text,
            expected
        );
    }
    assert_eq!(script.text(), text);
}

#[test]
fn a_request_ends_at_the_first_bare_arrow() {
    let text =
        "SET \"->\" '->' -> +OK -> b\nECHO a->b     -> \"a->b\"\nlet a = ECHO -> /(->) \"/\n";
    let script = Script::parse(Path::new("x"), text, false).expect("a valid script");
    let commands = &script.blocks().next().expect("a block").commands;
    let replies = commands
        .iter()
        .map(|command| command.reply(Target::Redis, Proto::Resp2));
    let replies: Vec<_> = replies
        .map(|reply| reply.map(|reply| reply.text.as_str()))
        .collect();
    assert_eq!(replies, [Some("+OK -> b"), Some("\"a->b\""), None]);
    let Action::Call(words) = &commands[0].action else {
        panic!("a call: {:?}", commands[0].action)
    };
    assert_eq!(words, &[b"SET".to_vec(), b"->".to_vec(), b"->".to_vec()]);
    assert!(matches!(&commands[2].action, Action::Let { words, .. } if words.len() == 2));
    assert_eq!(script.text(), text);
}

#[test]
fn scripts_are_kept_and_mistakes_located() {
    let text = "# About.\nserver: --port 1 --save ''\n\n# Prose.\n\n# Comment.\nc2: SET \"a b\" v -> +OK\n\
                sleep 5ms\nGET k           -> [\n  1\n]\n# Below.\n\n\nsleep 1ms\n";
    let script = Script::parse(Path::new("x"), text, false).expect("a valid script");
    assert_eq!(script.text(), text);
    assert_eq!(script.server, ["--port", "1", "--save", ""]);
    assert_eq!(script.blocks().count(), 2);
    for (text, message) in [
        (
            "GET k -> 1 2\n",
            "x:1: reply of `GET k`: it is followed by 2",
        ),
        (
            "\nGET k -> 1\n  ->\n",
            "x:3: reply of `GET k`: it is missing",
        ),
        (
            "GET k ->\nGET k -> 1\n",
            "x:1: reply of `GET k`: it is missing",
        ),
        ("GET k\n  1\n", "x:2: no reply:   1"),
        ("  -> 1\n", "x:1: no request above:   -> 1"),
        (
            "send GET k -> 1\n",
            "x:1: reply of `send GET k`: there is none",
        ),
        ("GET \"k\n", "x:1: a quote is not closed: \"k"),
        (
            "GET k\n  ferrite -> 1\n",
            "x:2: a difference needs its reason behind a colon",
        ),
        ("sleep 5s\n", "x:1: not a time: 5s"),
        (
            "HTTL h FIELDS 2 a b -> [-1, 5]\n",
            "x:1: reply of `HTTL h FIELDS 2 a b`: time passes on a busy machine: <int from..to>",
        ),
    ] {
        assert_eq!(
            Script::parse(Path::new("x"), text, false).err().as_deref(),
            Some(message)
        );
    }
}
