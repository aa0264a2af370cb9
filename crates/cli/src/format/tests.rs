//! A table of every type of reply in every form.

use super::*;

/// A reply as the server writes it, and what the five forms make of it: standard, raw, CSV, JSON, quoted
/// JSON.
const TABLE: &[(&[u8], [&str; 5])] = &[
    (
        b"+OK\r\n",
        ["OK\n", "OK\n", "\"OK\"\n", "\"OK\"\n", "\"OK\"\n"],
    ),
    (
        b"-ERR no \"way\"\r\n",
        [
            "(error) ERR no \"way\"\n",
            "ERR no \"way\"\n\n",
            "ERROR,\"ERR no \\\"way\\\"\"\n",
            "error:\"ERR no \\\"way\\\"\"\n",
            "error:\"ERR no \\\\\\\"way\\\\\\\"\"\n",
        ],
    ),
    (
        b"!5\r\nERR x\r\n",
        [
            "(error) ERR x\n",
            "ERR x\n\n",
            "ERROR,\"ERR x\"\n",
            "error:\"ERR x\"\n",
            "error:\"ERR x\"\n",
        ],
    ),
    (
        b":-7\r\n",
        ["(integer) -7\n", "-7\n", "-7\n", "-7\n", "-7\n"],
    ),
    (
        b"$3\r\na b\r\n",
        ["\"a b\"\n", "a b\n", "\"a b\"\n", "\"a b\"\n", "\"a b\"\n"],
    ),
    (
        b"$0\r\n\r\n",
        ["\"\"\n", "\n", "\"\"\n", "\"\"\n", "\"\"\n"],
    ),
    (
        b"$6\r\n\"\\\n\x01\x7f\x08\r\n",
        [
            "\"\\\"\\\\\\n\\x01\\x7f\\b\"\n",
            "\"\\\n\x01\x7f\x08\n",
            "\"\\\"\\\\\\n\\x01\\x7f\\b\"\n",
            "\"\\\"\\\\\\n\\u0001\x7f\\b\"\n",
            "\"\\\\\\\"\\\\\\\\\\\\n\\\\x01\\\\x7f\\\\b\"\n",
        ],
    ),
    (
        "$2\r\nä\r\n".as_bytes(),
        [
            "\"\\xc3\\xa4\"\n",
            "ä\n",
            "\"\\xc3\\xa4\"\n",
            "\"ä\"\n",
            "\"\\\\xc3\\\\xa4\"\n",
        ],
    ),
    (b"$-1\r\n", ["(nil)\n", "\n", "NULL\n", "null\n", "null\n"]),
    (b"_\r\n", ["(nil)\n", "\n", "NULL\n", "null\n", "null\n"]),
    (
        b",3.10\r\n",
        ["(double) 3.10\n", "3.10\n", "3.10\n", "3.10\n", "3.10\n"],
    ),
    (
        b",-inf\r\n",
        ["(double) -inf\n", "-inf\n", "-inf\n", "-inf\n", "-inf\n"],
    ),
    (
        b"#t\r\n",
        ["(true)\n", "(true)\n", "true\n", "true\n", "true\n"],
    ),
    (
        b"#f\r\n",
        ["(false)\n", "(false)\n", "false\n", "false\n", "false\n"],
    ),
    (
        b"=8\r\ntxt:a\nb\x01\r\n",
        [
            "a\nb\x01\n",
            "a\nb\x01\n",
            "\"a\\nb\\x01\"\n",
            "\"a\\nb\\u0001\"\n",
            "\"a\\\\nb\\\\x01\"\n",
        ],
    ),
    (
        b"(12345678901234567890\r\n",
        [
            "(big number) 12345678901234567890\n",
            "12345678901234567890\n",
            "12345678901234567890\n",
            "12345678901234567890\n",
            "12345678901234567890\n",
        ],
    ),
    (b"*0\r\n", ["(empty array)\n", "\n", "\n", "[]\n", "[]\n"]),
    (b"~0\r\n", ["(empty set)\n", "\n", "\n", "[]\n", "[]\n"]),
    (b">0\r\n", ["(empty push)\n", "\n", "\n", "[]\n", "[]\n"]),
    (b"%0\r\n", ["(empty hash)\n", "\n", "\n", "{}\n", "{}\n"]),
    (
        b"*3\r\n:1\r\n*2\r\n$1\r\na\r\n*0\r\n$-1\r\n",
        [
            "1) (integer) 1\n2) 1) \"a\"\n   2) (empty array)\n3) (nil)\n",
            "1\na\n\n\n",
            "1,\"a\",,NULL\n",
            "[1,[\"a\",[]],null]\n",
            "[1,[\"a\",[]],null]\n",
        ],
    ),
    (
        b"*2\r\n-ERR x\r\n+y\r\n",
        [
            "1) (error) ERR x\n2) y\n",
            "ERR x\n\ny\n",
            "ERROR,\"ERR x\",\"y\"\n",
            "[error:\"ERR x\",\"y\"]\n",
            "[error:\"ERR x\",\"y\"]\n",
        ],
    ),
    (
        b"~2\r\n+a\r\n~1\r\n+b\r\n",
        [
            "1~ a\n2~ 1~ b\n",
            "a\nb\n",
            "\"a\",\"b\"\n",
            "[\"a\",[\"b\"]]\n",
            "[\"a\",[\"b\"]]\n",
        ],
    ),
    (
        b"%2\r\n$1\r\nk\r\n:1\r\n:2\r\n*2\r\n+x\r\n+y\r\n",
        [
            "1# \"k\" => (integer) 1\n2# (integer) 2 => \n   1) x\n   2) y\n",
            "k 1\n2 x\ny\n",
            "\"k\",1,2,\"x\",\"y\"\n",
            "{\"k\":1,\"2\":[\"x\",\"y\"]}\n",
            "{\"k\":1,\"2\":[\"x\",\"y\"]}\n",
        ],
    ),
    (
        b"%1\r\n+k\r\n*1\r\n%2\r\n#t\r\n_\r\n,1.5\r\n*1\r\n:1\r\n",
        [
            "1# k => \n   1) 1# (true) => (nil)\n      2# (double) 1.5 => 1) (integer) 1\n",
            "k (true) \n1.5 1\n",
            "\"k\",true,NULL,1.5,1\n",
            "{\"k\":[{\"true\":null,\"1.5\":[1]}]}\n",
            "{\"k\":[{\"true\":null,\"1.5\":[1]}]}\n",
        ],
    ),
    (
        b"*10\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n*2\r\n+a\r\n+b\r\n",
        [
            " 1) (integer) 1\n 2) (integer) 2\n 3) (integer) 3\n 4) (integer) 4\n 5) (integer) 5\n \
             6) (integer) 6\n 7) (integer) 7\n 8) (integer) 8\n 9) (integer) 9\n10) 1) a\n    2) b\n",
            "1\n2\n3\n4\n5\n6\n7\n8\n9\na\nb\n",
            "1,2,3,4,5,6,7,8,9,\"a\",\"b\"\n",
            "[1,2,3,4,5,6,7,8,9,[\"a\",\"b\"]]\n",
            "[1,2,3,4,5,6,7,8,9,[\"a\",\"b\"]]\n",
        ],
    ),
    (
        b">2\r\n+pubsub\r\n:1\r\n",
        [
            "1) pubsub\n2) (integer) 1\n",
            "pubsub\n1\n",
            "\"pubsub\",1\n",
            "[\"pubsub\",1]\n",
            "[\"pubsub\",1]\n",
        ],
    ),
    (
        b"|1\r\n+ttl\r\n:3\r\n*1\r\n|1\r\n+a\r\n+b\r\n*2\r\n:1\r\n:2\r\n",
        [
            "1| ttl => (integer) 3\n1) 1| a => b\n   1) (integer) 1\n   2) (integer) 2\n",
            "1\n2\n",
            "1,2\n",
            "[[1,2]]\n",
            "[[1,2]]\n",
        ],
    ),
];

const FORMATS: [Format; 5] = [
    Format::Standard,
    Format::Raw,
    Format::Csv,
    Format::Json,
    Format::QuotedJson,
];

fn parse(reply: &[u8]) -> Value {
    let (value, len) = resp::parse_value(reply)
        .expect("a reply")
        .expect("a whole reply");
    assert_eq!(len, reply.len());
    value
}

#[test]
fn every_type_in_every_form() {
    for (reply, forms) in TABLE {
        let value = parse(reply);
        for (format, expected) in FORMATS.into_iter().zip(forms) {
            let mut out = Vec::new();
            Style::of(format).append(&mut out, &value);
            let text = String::from_utf8_lossy(&out);
            assert_eq!(text, *expected, "{format:?} of {}", reply.escape_ascii());
        }
    }
}

#[test]
fn delimiters_are_those_of_the_raw_form_alone() {
    let value = parse(b"*2\r\n%2\r\n+a\r\n+b\r\n+c\r\n+d\r\n:1\r\n");
    let text = |format| {
        let style = Style {
            element_delimiter: b", ".to_vec(),
            reply_delimiter: b";".to_vec(),
            ..Style::of(format)
        };
        let mut out = Vec::new();
        style.append(&mut out, &value);
        String::from_utf8(out).expect("text")
    };
    assert_eq!(text(Format::Raw), "a b, c d, 1;");
    assert_eq!(text(Format::Csv), "\"a\",\"b\",\"c\",\"d\",1\n");
}

#[test]
fn invalidations_are_shown_in_a_line() {
    let text = |format, reply: &[u8]| {
        let mut out = Vec::new();
        Style::of(format).append_push(&mut out, &parse(reply));
        String::from_utf8(out).expect("text")
    };
    let keys = b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$3\r\nb c\r\n";
    assert_eq!(text(Format::Standard, keys), "-> invalidate: 'a', 'b c'\n");
    assert_eq!(text(Format::Raw, keys), "invalidate\na\nb c\n");
    let all = b">2\r\n$10\r\ninvalidate\r\n_\r\n";
    assert_eq!(text(Format::Standard, all), "1) \"invalidate\"\n2) (nil)\n");
}
