//! The table of commands that the client has without a server, made from the server's own. The test fails
//! when they differ; with `UPDATE_DOCS=1` it writes the file instead.

use crate::support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use resp::{Value, parse_value};
use support::{Kind, Server};

const HEAD: &str = "\
# The commands of ferrite-server, for ferrite-cli without a server. The form is described in builtin.rs.
# Made by `UPDATE_DOCS=1 cargo test -p ferrite-cli --test all commands`.
";

#[test]
fn the_builtin_table_is_up_to_date() {
    let server = Server::start(Kind::Ferrite, &[]);
    let text = table(&server);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/table.txt");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, text).expect("the table can be written");
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "src/commands/table.txt is not what the server says; run this test with UPDATE_DOCS=1"
    );
}

fn table(server: &Server) -> String {
    let docs = ask(server, "COMMAND DOCS");
    let mut numbers = BTreeMap::new();
    for entry in items(&ask(server, "COMMAND")) {
        number(entry, &mut numbers);
    }
    let mut out = HEAD.to_owned();
    for (name, doc) in sorted(&docs) {
        document(&name, doc, &numbers, &mut out);
    }
    out
}

/// The reply to one command over RESP3.
fn ask(server: &Server, command: &str) -> Value {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("the server listens");
    stream
        .set_read_timeout(Some(support::PATIENCE))
        .expect("it is more than nothing");
    stream
        .write_all(format!("HELLO 3\r\n{command}\r\n").as_bytes())
        .expect("connected");
    let mut input = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        let count = stream.read(&mut chunk).expect("the server answers");
        input.extend_from_slice(&chunk[..count]);
        let hello = parse_value(&input).expect("a reply");
        if let Some((_, len)) = hello
            && let Some((value, _)) = parse_value(&input[len..]).expect("a reply")
        {
            return value;
        }
    }
}

/// Notes arity and keys of an entry of COMMAND, and of its subcommands.
fn number(entry: &Value, numbers: &mut BTreeMap<String, [String; 4]>) {
    let entry = items(entry);
    let field = |at: usize| match &entry[at] {
        Value::Integer(number) => number.to_string(),
        other => panic!("{other:?} is no number"),
    };
    numbers.insert(text(&entry[0]), [field(1), field(3), field(4), field(5)]);
    for entry in items(&entry[9]) {
        number(entry, numbers);
    }
}

fn document(name: &str, doc: &Value, numbers: &BTreeMap<String, [String; 4]>, out: &mut String) {
    let fields: BTreeMap<String, &Value> = sorted(doc).into_iter().collect();
    let field = |field: &str| fields.get(field).map_or(String::new(), |value| text(value));
    let [arity, first, last, step] = &numbers[name];
    let (group, since) = (field("group"), field("since"));
    let _ = writeln!(out, "{name} {arity} {group} {since} {first} {last} {step}");
    let _ = writeln!(out, "  : {}", field("summary"));
    let _ = writeln!(out, "  ~ {}", field("complexity"));
    if fields.contains_key("deprecated_since") {
        let _ = writeln!(
            out,
            "  ! {} {}",
            field("deprecated_since"),
            field("replaced_by")
        );
    }
    for arg in fields.get("arguments").map_or(&[][..], |args| items(args)) {
        argument(arg, 1, out);
    }
    for (name, doc) in fields
        .get("subcommands")
        .map_or(Vec::new(), |subs| sorted(subs))
    {
        document(&name, doc, numbers, out);
    }
}

fn argument(arg: &Value, depth: usize, out: &mut String) {
    let fields: BTreeMap<String, &Value> = sorted(arg).into_iter().collect();
    // What kind of word it is makes no difference to the client.
    let kind = match text(fields["type"]).as_str() {
        kind @ ("key" | "pure-token" | "oneof" | "block") => kind.to_owned(),
        _ => "word".to_owned(),
    };
    let _ = write!(
        out,
        "{:indent$}{kind} {}",
        "",
        text(fields["name"]),
        indent = 2 * depth
    );
    match fields.get("token").map(|token| text(token)).as_deref() {
        Some("") => out.push_str(" \"\""),
        Some(token) => out.push_str(&format!(" {token}")),
        None => {}
    }
    let flags: Vec<String> = fields
        .get("flags")
        .map_or(&[][..], |flags| items(flags))
        .iter()
        .map(text)
        .collect();
    let has = |name: &str| flags.iter().any(|flag| flag == name);
    if has("optional") {
        out.push_str(" ?");
    }
    if has("multiple_token") {
        out.push_str(" **");
    } else if has("multiple") {
        out.push_str(" *");
    }
    out.push('\n');
    for arg in fields.get("arguments").map_or(&[][..], |args| items(args)) {
        argument(arg, depth + 1, out);
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) => {
            String::from_utf8(bytes.clone()).expect("documentation is text")
        }
        other => panic!("{other:?} is no text"),
    }
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) | Value::Set(items) => items,
        other => panic!("{other:?} has no items"),
    }
}

/// The pairs of a map, by name.
fn sorted(value: &Value) -> Vec<(String, &Value)> {
    let Value::Map(pairs) = value else {
        panic!("{value:?} is no map");
    };
    let mut pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| (text(key), value))
        .collect();
    pairs.sort_by(|one, other| one.0.cmp(&other.0));
    pairs
}
