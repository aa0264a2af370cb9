//! redis-rs against the server: the checks of `tests/clients/run`, with its default (RESP2), RESP2 and RESP3.
//!
//! `CLIENTS_PORT` names a server without, `CLIENTS_LOCKED_PORT` one with the password `CLIENTS_PASSWORD`. Each check prints
//! one line; a failed one panics, which is caught and printed.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use redis::{
    Connection, ErrorKind, ExistenceCheck, FromRedisValue, RedisResult, SetExpiry,
    SetOptions, TypedCommands, Value,
};

/// What each byte value, repeated to one mebibyte, looks like.
fn megabyte() -> Vec<u8> {
    (0..=255u8).cycle().take(1 << 20).collect()
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("tests/clients/run sets {name}"))
}

/// Fails with both values; unlike `assert_eq` on a `Result` it also shows what kind of error came.
#[track_caller]
fn equal<T: Debug + PartialEq>(actual: RedisResult<T>, expected: T) {
    assert_eq!(actual, Ok(expected));
}

/// Sends a command that is given as its words.
fn ask<T: FromRedisValue>(c: &mut Connection, words: &[&str]) -> RedisResult<T> {
    let mut command = redis::Cmd::new();
    command.arg(words);
    command.query(c)
}

#[track_caller]
fn within(actual: RedisResult<i64>, low: i64, high: i64) {
    let value = actual.expect("a number");
    assert!(
        value > low && value <= high,
        "got {value}, expected above {low}, at most {high}"
    );
}

/// One way to connect, as the query of a connection URL.
#[derive(Clone, Copy)]
struct Mode {
    name: &'static str,
    query: &'static str,
}

const MODES: [Mode; 3] = [
    Mode {
        name: "default",
        query: "",
    },
    Mode {
        name: "resp2",
        query: "?protocol=resp2",
    },
    Mode {
        name: "resp3",
        query: "?protocol=resp3",
    },
];

impl Mode {
    /// Connects to `database`, with `user` being empty or `name:password@`.
    fn connect(self, user: &str, port: &str, database: u32) -> RedisResult<Connection> {
        redis::Client::open(format!(
            "redis://{user}127.0.0.1:{port}/{database}{}",
            self.query
        ))?
        .get_connection()
    }

    fn open(self) -> Connection {
        self.connect("", &variable("CLIENTS_PORT"), 0)
            .expect("a connection")
    }

    fn locked(self, user: &str) -> RedisResult<Connection> {
        self.connect(user, &variable("CLIENTS_LOCKED_PORT"), 0)
    }
}

type Check = (&'static str, fn(Mode, &mut Connection));

const CHECKS: [Check; 27] = [
    ("connect", connect),
    ("text", text),
    ("binary", binary),
    ("empty", empty),
    ("megabyte", one_megabyte),
    ("set_options", set_options),
    ("expire", expire),
    ("increment", increment),
    ("multi_key", multi_key),
    ("ranges", ranges),
    ("bits", bits),
    ("collections", collections),
    ("delete", delete),
    ("scan", scan),
    ("pipeline", pipeline),
    ("deep_pipeline", deep_pipeline),
    ("select", select),
    ("client_info", client_info),
    ("info", info),
    ("config", config),
    ("command", command),
    ("not_an_integer", not_an_integer),
    ("unknown_command", unknown_command),
    ("password", password),
    ("wrong_password", wrong_password),
    ("no_password", no_password),
    ("reconnect", reconnect),
];

fn main() -> ExitCode {
    println!("version {}", version());
    let mut passed = true;
    for mode in MODES {
        let mut client = mode.open();
        ask::<()>(&mut client, &["FLUSHALL"]).expect("FLUSHALL");
        for (name, body) in CHECKS {
            match catch_unwind(AssertUnwindSafe(|| body(mode, &mut client))) {
                Ok(()) => println!("ok {} {name}", mode.name),
                Err(panic) => {
                    let message = panic.downcast_ref::<String>().map_or("", String::as_str);
                    println!(
                        "not ok {} {name}: {}",
                        mode.name,
                        message.replace('\n', " ")
                    );
                    passed = false;
                }
            }
        }
    }
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The version of redis-rs in this program's lock file.
fn version() -> &'static str {
    let (_, entry) = include_str!("../Cargo.lock")
        .split_once("name = \"redis\"\nversion = \"")
        .expect("a locked version");
    entry.split('"').next().expect("a closing quote")
}

fn connect(_: Mode, c: &mut Connection) {
    equal(c.ping(), "PONG".to_string());
    equal(ask(c, &["ECHO", "hello"]), "hello".to_string());
}

fn text(_: Mode, c: &mut Connection) {
    equal(c.set("text", "café ✓"), ());
    equal(c.get("text"), Some("café ✓".to_string()));
    equal(c.get("absent"), None);
}

fn binary(_: Mode, c: &mut Connection) {
    let bytes: Vec<u8> = (0..=255).collect();
    equal(c.set(&bytes, &bytes), ());
    equal(redis::cmd("GET").arg(&bytes).query(c), bytes);
}

fn empty(_: Mode, c: &mut Connection) {
    equal(c.set("", ""), ());
    equal(c.get(""), Some(String::new()));
    equal(c.strlen(""), 0);
}

fn one_megabyte(_: Mode, c: &mut Connection) {
    equal(c.set("megabyte", megabyte()), ());
    assert!(
        ask(c, &["GET", "megabyte"]) == Ok(megabyte()),
        "a megabyte came back changed"
    );
}

fn set_options(_: Mode, c: &mut Connection) {
    let only = |check| SetOptions::default().conditional_set(check);
    let lasting = |expiry| SetOptions::default().with_expiration(expiry);
    equal(
        c.set_options("option", 1, only(ExistenceCheck::NX)),
        Some("OK".to_string()),
    );
    equal(c.set_options("option", 2, only(ExistenceCheck::NX)), None);
    equal(
        c.set_options("option", 2, only(ExistenceCheck::XX)),
        Some("OK".to_string()),
    );
    equal(
        c.set_options("option-absent", 2, only(ExistenceCheck::XX)),
        None,
    );
    equal(
        c.set_options("option", 3, SetOptions::default().get(true)),
        Some("2".to_string()),
    );
    equal(
        c.set_options("option", 4, lasting(SetExpiry::EX(100))),
        Some("OK".to_string()),
    );
    within(ask(c, &["TTL", "option"]), 90, 100);
    equal(
        c.set_options("option", 5, lasting(SetExpiry::PX(200_000)).get(true)),
        Some("4".to_string()),
    );
    within(ask(c, &["PTTL", "option"]), 190_000, 200_000);
    equal(
        c.set_options("option", 6, lasting(SetExpiry::KEEPTTL)),
        Some("OK".to_string()),
    );
    within(ask(c, &["PTTL", "option"]), 190_000, 200_000);
}

fn expire(_: Mode, c: &mut Connection) {
    equal(c.set("expire", "x"), ());
    equal(c.expire("expire", 50), true);
    within(ask(c, &["TTL", "expire"]), 40, 50);
    equal(c.persist("expire"), true);
    equal(c.persist("expire"), false);
    equal(ask::<i64>(c, &["TTL", "expire"]), -1);
    equal(ask::<i64>(c, &["TTL", "absent"]), -2);
    equal(c.expire_at("expire", 4_102_444_800), true);
    equal(ask::<i64>(c, &["EXPIRETIME", "expire"]), 4_102_444_800);
}

fn increment(_: Mode, c: &mut Connection) {
    equal(c.incr("counter", 1), 1);
    equal(c.incr("counter", 41), 42);
    equal(c.decr("counter", 2), 40);
    equal(ask::<f64>(c, &["INCRBYFLOAT", "counter", "0.5"]), 40.5);
}

fn multi_key(_: Mode, c: &mut Connection) {
    equal(c.mset(&[("m1", "a"), ("m2", "b"), ("m3", "")]), ());
    let expected = vec![
        Some("a".to_string()),
        None,
        Some("b".to_string()),
        Some(String::new()),
    ];
    equal(c.mget(&["m1", "absent", "m2", "m3"]), expected);
    equal(c.mset_nx(&[("m4", "x"), ("m1", "y")]), false);
}

fn ranges(_: Mode, c: &mut Connection) {
    equal(c.append("range", "Hello World"), 11);
    equal(c.getrange("range", -5, -1), "World".to_string());
    equal(c.setrange("range", 6, "Redis"), 11);
    equal(c.get("range"), Some("Hello Redis".to_string()));
}

fn bits(_: Mode, c: &mut Connection) {
    equal(c.setbit("bits", 7, true), false);
    equal(c.setbit("bits", 100, true), false);
    equal(c.getbit("bits", 100), true);
    equal(c.bitcount("bits"), 2);
}

fn collections(_: Mode, c: &mut Connection) {
    type Words = Vec<String>;
    let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Words>();
    equal(ask(c, &["HSET", "hash", "f", "v", "n", "1"]), 2);
    equal(ask(c, &["HINCRBY", "hash", "n", "4"]), 5);
    let hash = [("f", "v"), ("n", "5")].map(|(field, value)| (field.to_string(), value.to_string()));
    equal(ask(c, &["HGETALL", "hash"]), std::collections::BTreeMap::from(hash));
    equal(ask(c, &["SADD", "set", "a", "b"]), 2);
    let members: std::collections::BTreeSet<String> = words(&["a", "b"]).into_iter().collect();
    equal(ask(c, &["SMEMBERS", "set"]), members);
    equal(ask(c, &["ZADD", "sorted", "1", "a", "2.5", "b"]), 2);
    let scores = vec![("a".to_string(), 1.0), ("b".to_string(), 2.5)];
    equal(ask(c, &["ZRANGE", "sorted", "0", "-1", "WITHSCORES"]), scores);
    equal(ask(c, &["RPUSH", "list", "1", "2", "3"]), 3);
    equal(ask(c, &["LMOVE", "list", "other", "LEFT", "RIGHT"]), "1".to_string());
    equal(ask(c, &["LRANGE", "list", "0", "-1"]), words(&["2", "3"]));
    let places = ["13.361389", "38.115556", "Palermo", "15.087269", "37.502669", "Catania"];
    equal(ask(c, &[&["GEOADD", "places"][..], &places].concat()), 2);
    equal(ask(c, &["GEODIST", "places", "Palermo", "Catania", "km"]), "166.2742".to_string());
    equal(ask(c, &["PFADD", "visits", "x", "y"]), 1);
    equal(ask(c, &["PFCOUNT", "visits"]), 2);
    equal(ask(c, &["BLPOP", "list", "1"]), words(&["list", "2"]));
    let popped = ("sorted".to_string(), "a".to_string(), 1.0);
    equal(ask(c, &["BZPOPMIN", "sorted", "1"]), popped);
}

fn delete(_: Mode, c: &mut Connection) {
    equal(c.mset(&[("d1", 1), ("d2", 2), ("d3", 3)]), ());
    equal(ask(c, &["EXISTS", "d1", "d2", "d3", "d1", "absent"]), 4);
    equal(c.del(&["d1", "absent"]), 1);
    equal(c.unlink(&["d2", "d3"]), 2);
}

fn scan(_: Mode, c: &mut Connection) {
    let expected: BTreeSet<String> = (0..1000).map(|i| format!("scan:{i}")).collect();
    let pairs: Vec<_> = expected.iter().map(|key| (key, "x")).collect();
    equal(c.mset(&pairs), ());
    let found = c
        .scan_match::<_, String>("scan:*")
        .expect("SCAN")
        .collect::<RedisResult<BTreeSet<String>>>();
    equal(found, expected);
}

fn pipeline(_: Mode, c: &mut Connection) {
    let mut pipe = redis::pipe();
    for i in 0..500 {
        pipe.set(format!("pipe:{i}"), i)
            .ignore()
            .get(format!("pipe:{i}"));
    }
    equal(pipe.query::<Vec<i64>>(c), (0..500).collect());
}

fn deep_pipeline(_: Mode, c: &mut Connection) {
    let deepest: usize = variable("CLIENTS_DEEPEST").parse().expect("a number");
    let depths = [
        (1, 1),
        (deepest, 1),
        (deepest / 10, 1000),
        (deepest / 1000, 100_000),
        (deepest / 10_000, 1_000_000),
    ];
    for (count, size) in depths {
        let value = "x".repeat(size);
        let mut pipe = redis::pipe();
        pipe.set("deep", &value).ignore();
        for _ in 0..count {
            pipe.get("deep");
        }
        let replies = pipe.query::<Vec<String>>(c).expect("the pipeline");
        equal(Ok(replies.len()), count);
        assert!(replies.iter().all(|reply| *reply == value));
    }
}

fn select(mode: Mode, c: &mut Connection) {
    equal(c.set("where", "zero"), ());
    let mut other = mode
        .connect("", &variable("CLIENTS_PORT"), 3)
        .expect("database 3");
    equal(other.get("where"), None);
    equal(other.set("where", "three"), ());
    equal(c.get("where"), Some("zero".to_string()));
    equal(ask(&mut other, &["DBSIZE"]), 1);
    equal(ask(&mut other, &["FLUSHDB"]), ());
}

fn client_info(mode: Mode, c: &mut Connection) {
    let mut named = mode.open();
    equal(named.client_setname("checks"), ());
    equal(named.client_getname(), Some("checks".to_string()));
    let id = named.client_id().expect("CLIENT ID");
    let list: String = ask(c, &["CLIENT", "LIST"]).expect("CLIENT LIST");
    let lines: Vec<_> = list
        .lines()
        .filter(|line| line.contains(" name=checks "))
        .collect();
    assert!(
        lines.len() == 1 && lines[0].starts_with(&format!("id={id} addr=127.0.0.1:")),
        "CLIENT LIST: {list}"
    );
}

fn info(_: Mode, c: &mut Connection) {
    let info: redis::InfoDict = ask(c, &["INFO"]).expect("INFO");
    let version: String = info.get("redis_version").expect("redis_version");
    assert_eq!(version.split('.').count(), 3, "{version}");
    assert_eq!(info.get::<String>("role").as_deref(), Some("master"));
    assert_eq!(
        info.get::<u16>("tcp_port").map(|port| port.to_string()),
        Some(variable("CLIENTS_PORT"))
    );
}

fn config(_: Mode, c: &mut Connection) {
    let databases: HashMap<String, String> =
        ask(c, &["CONFIG", "GET", "databases"]).expect("a map");
    assert_eq!(
        databases,
        HashMap::from([("databases".to_string(), "16".to_string())])
    );
}

fn command(_: Mode, c: &mut Connection) {
    let table: Vec<Value> = ask(c, &["COMMAND"]).expect("COMMAND");
    equal(ask(c, &["COMMAND", "COUNT"]), table.len());
    let keys = ask(c, &["COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"]);
    equal(keys, vec!["a".to_string(), "b".to_string()]);
}

fn not_an_integer(_: Mode, c: &mut Connection) {
    equal(c.set("word", "abc"), ());
    let error = c.incr("word", 1).expect_err("a word has no successor");
    assert_eq!(error.kind(), redis::ServerErrorKind::ResponseError.into());
    assert_eq!(
        (error.code(), error.detail()),
        (Some("ERR"), Some("value is not an integer or out of range"))
    );
}

fn unknown_command(_: Mode, c: &mut Connection) {
    let error = ask::<()>(c, &["NOSUCHCOMMAND", "x"]).expect_err("no such command");
    assert!(
        error
            .detail()
            .is_some_and(|detail| detail.starts_with("unknown command")),
        "{error}"
    );
    equal(c.ping(), "PONG".to_string());
}

fn password(mode: Mode, _: &mut Connection) {
    let password = variable("CLIENTS_PASSWORD").replace(' ', "%20");
    for user in [format!(":{password}@"), format!("default:{password}@")] {
        equal(
            mode.locked(&user).and_then(|mut c| c.ping()),
            "PONG".to_string(),
        );
    }
}

fn wrong_password(mode: Mode, _: &mut Connection) {
    let error = mode.locked(":no@").err().expect("a refusal");
    // The AUTH of RESP2 has a class of its own; a refused HELLO keeps the server's code.
    let refused =
        error.kind() == ErrorKind::AuthenticationFailed || error.code() == Some("WRONGPASS");
    assert!(refused, "{error:?}");
}

fn no_password(mode: Mode, _: &mut Connection) {
    let error = mode
        .locked("")
        .and_then(|mut c| c.ping())
        .expect_err("a refusal");
    assert!(
        error.to_string().contains("NOAUTH") || error.code() == Some("NOAUTH"),
        "{error}"
    );
}

fn reconnect(mode: Mode, c: &mut Connection) {
    let mut victim = mode.open();
    let before = victim.client_id().expect("CLIENT ID");
    equal(ask(c, &["CLIENT", "KILL", "ID", &before.to_string()]), 1);
    // This client leaves reconnecting to its owner: the connection must say that it is dead, and a new one must work. Whether its end or
    // a reset is heard of first depends on who is quicker, and only the former does the client remember.
    for _ in 0..2 {
        let error = victim.ping().expect_err("a dead connection");
        assert!(error.is_connection_dropped(), "{error:?}");
    }
    let after = mode.open().client_id().expect("CLIENT ID");
    assert!(after > before);
}
