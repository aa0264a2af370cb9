//! Requests that are generated from what COMMAND DOCS says of a command's arguments.

use fastrand::Rng;

use crate::support::{Client, Value};

/// Commands that are left out: what they do is no matter of a value, or it needs another server.
const LEFT_OUT: &[&str] = &["migrate"];
/// Commands without keys that look at all data.
const WITHOUT_KEYS: &[&str] = &["keys", "scan", "randomkey", "dbsize"];

/// Texts in the place of a right argument.
const WRONG: &[&str] = &[
    "",
    "abc",
    "-1",
    "nan",
    "9223372036854775808",
    "(1",
    "[member:number:1",
    "+",
    "-",
    "member:number:7",
    "elements",
    "fields",
    "WITHSCORES",
    "LIMIT",
    "COUNT",
];
const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "-2",
    "50",
    "100",
    "-100",
    "299",
    "300",
    "9223372036854775807",
    "-9223372036854775808",
];
const DOUBLES: &[&str] = &["0", "1", "-1", "1.5", "3", "16", "17", "1e3", "inf", "-inf"];
const ENDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "5",
    "-5",
    "(3",
    "3",
    "16",
    "(16",
    "-inf",
    "+inf",
    "-",
    "+",
    "[member:number:1",
    "(member:number:2",
    "[member:number:8",
    "100",
    "298",
];
/// Far away, or over: the clocks of the servers do not decide anything.
const SECONDS: &[&str] = &["-1", "0", "100000"];
const UNIX_TIMES: &[&str] = &["1", "4102444800000"];

/// A command or subcommand that has keys.
pub(super) struct Command {
    /// As COMMAND has it, `object|encoding` for example.
    pub(super) name: String,
    group: String,
    arguments: Vec<Argument>,
}

struct Argument {
    name: String,
    kind: String,
    token: Option<String>,
    is_optional: bool,
    is_multiple: bool,
    has_multiple_token: bool,
    arguments: Vec<Argument>,
}

/// A field of a map of RESP2.
fn field<'v>(map: &'v Value, name: &str) -> Option<&'v Value> {
    let Value::Array(items) = map else {
        return None;
    };
    let pair = items.chunks_exact(2).find(|pair| pair[0].text() == name);
    pair.map(|pair| &pair[1])
}

fn items(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

/// All commands that name keys of data, and a few others.
pub(super) fn commands(client: &mut Client) -> Vec<Command> {
    let (described, documented) = (client.ask("COMMAND"), client.ask("COMMAND DOCS"));
    let mut found = Vec::new();
    for description in items(Some(&described)) {
        let name = items(Some(description))[0].text();
        let docs = field(&documented, &name).unwrap_or_else(|| panic!("{name} has no docs"));
        add(description, docs, &mut found);
    }
    found
}

fn add(description: &Value, docs: &Value, found: &mut Vec<Command>) {
    let fields = items(Some(description));
    let name = fields[0].text();
    for sub in items(fields.get(9)) {
        let name = items(Some(sub))[0].text();
        if let Some(docs) = field(docs, "subcommands").and_then(|all| field(all, &name)) {
            add(sub, docs, found);
        }
    }
    let group = field(docs, "group").map_or(String::new(), Value::text);
    let has_keys = fields[3] != Value::Int(0) || !items(Some(&fields[8])).is_empty();
    let is_of_data = has_keys && group != "pubsub" || WITHOUT_KEYS.contains(&&name[..]);
    if is_of_data && !LEFT_OUT.contains(&&name[..]) {
        let arguments = items(field(docs, "arguments"))
            .iter()
            .map(argument)
            .collect();
        found.push(Command {
            name,
            group,
            arguments,
        });
    }
}

fn argument(docs: &Value) -> Argument {
    let text = |name| field(docs, name).map(Value::text);
    let flags: Vec<String> = items(field(docs, "flags"))
        .iter()
        .map(Value::text)
        .collect();
    let has = |flag: &str| flags.iter().any(|other| other == flag);
    Argument {
        name: text("name").unwrap_or_default(),
        kind: text("type").unwrap_or_default(),
        token: text("token"),
        is_optional: has("optional"),
        is_multiple: has("multiple"),
        has_multiple_token: has("multiple_token"),
        arguments: items(field(docs, "arguments"))
            .iter()
            .map(argument)
            .collect(),
    }
}

/// A request, and the keys that it names.
pub(super) struct Asked {
    pub(super) request: Vec<String>,
    pub(super) keys: Vec<String>,
}

pub(super) struct Generator {
    pub(super) random: Rng,
    keys: Vec<&'static str>,
    /// The request that is being made, and its keys.
    made: Asked,
    /// The first key that it is to have, until it has it.
    first: Option<&'static str>,
    /// Arguments that were announced by their number.
    announced: Option<usize>,
}

impl Generator {
    pub(super) fn new(seed: u64, keys: Vec<&'static str>) -> Generator {
        Generator {
            random: Rng::with_seed(seed),
            keys,
            made: Asked {
                request: Vec::new(),
                keys: Vec::new(),
            },
            first: None,
            announced: None,
        }
    }

    /// A request of a command whose first key this is.
    pub(super) fn request(&mut self, command: &Command, first: &'static str) -> Asked {
        self.made = Asked {
            request: command.name.split('|').map(str::to_owned).collect(),
            keys: Vec::new(),
        };
        (self.first, self.announced) = (Some(first), None);
        let words = self.made.request.len();
        for argument in &command.arguments {
            self.argument(argument, &command.group);
        }
        let Asked { mut request, keys } = std::mem::replace(
            &mut self.made,
            Asked {
                request: Vec::new(),
                keys: Vec::new(),
            },
        );
        if request.len() > words && self.random.u8(..5) == 0 {
            let at = self.random.usize(words..request.len());
            match self.random.u8(..3) {
                0 => drop(request.remove(at)),
                1 => request.push(self.one_of(WRONG)),
                _ => request[at] = self.one_of(WRONG),
            }
        }
        Asked { request, keys }
    }

    fn one_of(&mut self, words: &[&str]) -> String {
        words[self.random.usize(..words.len())].to_owned()
    }

    fn argument(&mut self, argument: &Argument, group: &str) {
        if argument.is_optional && self.random.bool() {
            return;
        }
        let times = match (argument.is_multiple, self.announced) {
            (false, _) => 1,
            (true, None) => self.random.usize(1..4),
            (true, Some(times)) => {
                self.announced = None;
                times
            }
        };
        for time in 0..times {
            if let Some(token) = &argument.token
                && (time == 0 || argument.has_multiple_token)
            {
                self.made.request.push(token.clone());
            }
            self.value(argument, group);
        }
    }

    fn value(&mut self, argument: &Argument, group: &str) {
        match &argument.kind[..] {
            "pure-token" => {}
            "oneof" => {
                let chosen = self.random.usize(..argument.arguments.len());
                self.argument(&argument.arguments[chosen], group);
            }
            "block" => {
                for inner in &argument.arguments {
                    self.argument(inner, group);
                }
            }
            "key" => {
                let key = match self.first.take() {
                    Some(first) => first,
                    None => self.key(group),
                };
                self.made.keys.push(key.to_owned());
                self.made.request.push(key.to_owned());
            }
            kind => {
                let word = self.word(kind, &argument.name);
                self.made.request.push(word);
            }
        }
    }

    /// A key: mostly of the type that a command of a group is for.
    fn key(&mut self, group: &str) -> &'static str {
        let of_group: &[&'static str] = match group {
            "hash" => &["fields", "few:fields"],
            "set" => &["members", "integers", "few:members"],
            "sorted-set" | "geo" => &["scores", "same:score", "few:scores", "members"],
            "list" => &["elements", "numbers", "few:elements"],
            "string" | "bitmap" => &["text", "number", "long"],
            "hyperloglog" => &["counted"],
            _ => &self.keys,
        };
        match self.random.u8(..3) {
            0 => self.keys[self.random.usize(..self.keys.len())],
            _ => of_group[self.random.usize(..of_group.len())],
        }
    }

    fn word(&mut self, kind: &str, name: &str) -> String {
        match (kind, name) {
            (_, "numkeys" | "numfields") => {
                let count = self.random.usize(1..4);
                self.announced = Some(count);
                count.to_string()
            }
            (_, "timeout") => "0.01".to_owned(),
            (_, "start" | "stop" | "end" | "min" | "max") => self.one_of(ENDS),
            (_, "operation") => self.one_of(&["AND", "OR", "XOR", "NOT"]),
            (_, "encoding") => self.one_of(&["u8", "i16", "u63"]),
            ("unix-time", _) => self.one_of(UNIX_TIMES),
            ("integer", name) if name.contains("second") || name == "ttl" => self.one_of(SECONDS),
            ("integer", _) => self.one_of(INTEGERS),
            ("double", _) => self.one_of(DOUBLES),
            ("pattern", _) => self.one_of(&["*", "member:number:1*", "few:*", "nosort"]),
            _ => {
                let number = self.random.usize(..310);
                match self.random.u8(..3) {
                    0 => number.to_string(),
                    _ => format!("member:number:{number}"),
                }
            }
        }
    }
}
