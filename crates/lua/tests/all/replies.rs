//! Replies on their way into Lua and back, in both protocols.

use lua::Ended;
use resp::reply::Protocol;

use crate::support::{Fake, run, state};

/// RESP of a command, an expression over it (`r`), and its value.
const REPLIES: [(&str, &str, &str); 22] = [
    (":5\r\n", "r", "5"),
    ("+OK\r\n", "r.ok", "OK"),
    (
        "-ERR x\r\n",
        "r.err .. tostring(r.ignore_error_stats_update)",
        "ERR xtrue",
    ),
    ("$3\r\na\r\n\r\n", "r", "a\r\n"),
    ("$-1\r\n", "r", "false"),
    ("*-1\r\n", "r", "false"),
    ("_\r\n", "r", "nil"),
    ("#t\r\n", "r", "true"),
    ("#f\r\n", "r", "false"),
    (",1.5\r\n", "r.double", "1.5"),
    (",inf\r\n", "r.double", "inf"),
    (",nan\r\n", "r.double ~= r.double", "true"),
    ("(123\r\n", "r.big_number", "123"),
    (
        "=6\r\ntxt:hi\r\n",
        "r.verbatim_string.format .. r.verbatim_string.string",
        "txthi",
    ),
    ("*2\r\n:1\r\n$1\r\nx\r\n", "#r .. r[1] .. r[2]", "21x"),
    ("*3\r\n:1\r\n_\r\n:3\r\n", "tostring(r[2]) .. r[3]", "nil3"),
    ("*0\r\n", "#r", "0"),
    ("%1\r\n$1\r\na\r\n:1\r\n", "r.map.a", "1"),
    (
        "~2\r\n$1\r\na\r\n:1\r\n",
        "tostring(r.set.a) .. tostring(r.set[1])",
        "truetrue",
    ),
    ("|1\r\n$1\r\na\r\n:1\r\n:7\r\n", "r", "7"),
    (">1\r\n:1\r\n", "r[1]", "1"),
    ("*1\r\n*1\r\n*1\r\n:9\r\n", "r[1][1][1]", "9"),
];

#[test]
fn replies_become_values() {
    let (mut state, mut host) = (state(), Fake::default());
    for (reply, expression, expected) in REPLIES {
        let text = format!(
            "local r = redis.pcall('raw', \"{}\") return tostring({expression})",
            reply.replace('\r', "\\r").replace('\n', "\\n")
        );
        let function = state.compile("@user_script", text.as_bytes()).unwrap();
        let (_, value) = run(&mut state, &mut host, &function, Protocol::Resp2);
        let value = String::from_utf8_lossy(&value).into_owned();
        let expected = format!("${}\r\n{expected}\r\n", expected.len());
        assert_eq!(value, expected, "{text}");
        state.forget(function);
    }
}

/// A script, and its reply in RESP2 and in RESP3.
const RESULTS: [(&str, &str, &str); 19] = [
    ("return 3.7", ":3\r\n", ":3\r\n"),
    ("return nil", "$-1\r\n", "_\r\n"),
    ("return true", ":1\r\n", ":1\r\n"),
    ("return false", "$-1\r\n", "_\r\n"),
    ("redis.setresp(3) return true", ":1\r\n", "#t\r\n"),
    ("redis.setresp(3) return false", ":0\r\n", "#f\r\n"),
    ("return 'x'", "$1\r\nx\r\n", "$1\r\nx\r\n"),
    ("return {}", "*0\r\n", "*0\r\n"),
    (
        "return {1, {2, 'x'}, nil, 4}",
        "*2\r\n:1\r\n*2\r\n:2\r\n$1\r\nx\r\n",
        "",
    ),
    ("return {ok = 'fine'}", "+fine\r\n", "+fine\r\n"),
    ("return {err = 'MY x'}", "-MY x\r\n", "-MY x\r\n"),
    ("return {double = 1.5}", "$3\r\n1.5\r\n", ",1.5\r\n"),
    (
        "return {map = {a = {1}}}",
        "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
        "%1\r\n$1\r\na\r\n*1\r\n:1\r\n",
    ),
    (
        "return {set = {a = true}}",
        "*1\r\n$1\r\na\r\n",
        "~1\r\n$1\r\na\r\n",
    ),
    ("return {big_number = '12'}", "$2\r\n12\r\n", "(12\r\n"),
    (
        "return {verbatim_string = {format = 'mkd', string = 'hi'}}",
        "$2\r\nhi\r\n",
        "=6\r\nmkd:hi\r\n",
    ),
    (
        "return {{map = {}}, {set = {}}, 1}",
        "*3\r\n*0\r\n*0\r\n:1\r\n",
        "*3\r\n%0\r\n~0\r\n:1\r\n",
    ),
    (
        "return {map = {[{1}] = {2}}}",
        "*2\r\n*1\r\n:1\r\n*1\r\n:2\r\n",
        "%1\r\n*1\r\n:1\r\n*1\r\n:2\r\n",
    ),
    ("return function() end", "$-1\r\n", "_\r\n"),
];

#[test]
fn values_become_replies() {
    let (mut state, mut host) = (state(), Fake::default());
    for (text, resp2, resp3) in RESULTS {
        let function = state.compile("@user_script", text.as_bytes()).unwrap();
        let resp3 = if resp3.is_empty() { resp2 } else { resp3 };
        for (protocol, expected) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
            let (ended, reply) = run(&mut state, &mut host, &function, protocol);
            let reply = String::from_utf8_lossy(&reply).into_owned();
            assert_eq!((ended, &reply[..]), (Ended::Done, expected), "{text}");
        }
        state.forget(function);
    }
}

#[test]
fn malformed_replies_are_errors() {
    let (mut state, mut host) = (state(), Fake::default());
    let reply = "*3\\r\\n%1\\r\\n$1\\r\\na\\r\\n,1.5\\r\\n~1\\r\\n:1\\r\\n=6\\r\\ntxt:hi\\r\\n";
    let text = format!(
        "local r, n = \"{reply}\", 0
        for i = 1, #r do
            for _, byte in ipairs{{'', '9', '-', '*', '$', '|', '\\r'}} do
                local ok, e = pcall(redis.call, 'raw', r:sub(1, i - 1) .. byte .. r:sub(i + 1))
                if not ok then n = n + 1 end
            end
        end
        return n > 50 and r"
    );
    let function = state.compile("@user_script", text.as_bytes()).unwrap();
    let (ended, reply) = run(&mut state, &mut host, &function, Protocol::Resp2);
    assert_eq!(ended, Ended::Done, "{}", String::from_utf8_lossy(&reply));
    assert!(reply.starts_with(b"$"));
}
