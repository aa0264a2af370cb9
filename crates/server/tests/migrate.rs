//! MIGRATE: between servers of both kinds, to targets that do not do what they should, and beside others who
//! change the keys.
//!
//! What its arguments mean is in the golden script `keys/migrate.txt`.

use crate::support;

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use rustix::process::Signal;
use support::{
    Client, PATIENCE, Server, Target, Value, encode_request, eventually, integer, ok, parse_value,
};

use crate::hash_files::fill;

const ONE: Target = Target::Ferrite { threads: 1 };
const LOGGED: Target = Target::Logged { threads: 2 };
const PATIENCE_MS: u64 = 60_000;

/// Sends `MIGRATE`; `rest` begins with the key.
fn migrate(from: &mut Client, port: u16, rest: &str) -> Value {
    from.ask(&format!("MIGRATE 127.0.0.1 {port} {rest}"))
}

/// Sends a MIGRATE of several keys.
fn migrate_all(from: &mut Client, port: u16, names: &[String]) -> Value {
    let (port, timeout) = (port.to_string(), PATIENCE_MS.to_string());
    let head = ["MIGRATE", "127.0.0.1", &port, "", "0", &timeout, "KEYS"];
    let words = head.into_iter().chain(names.iter().map(String::as_str));
    from.call(&words.collect::<Vec<_>>()).expect("a reply")
}

/// A target of which the test says what it replies.
pub(crate) struct Double(TcpListener);

impl Double {
    pub(crate) fn new() -> Double {
        Double(TcpListener::bind("127.0.0.1:0").expect("a free port"))
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.local_addr().expect("it is bound").port()
    }

    /// The next connection, whose SELECT has had its reply.
    pub(crate) fn accept(&self) -> Wire {
        let mut wire = Wire {
            stream: self.0.accept().expect("it listens").0,
            input: Vec::new(),
        };
        assert_eq!(wire.request()[0], b"SELECT");
        wire.reply("+OK\r\n");
        wire
    }
}

pub(crate) struct Wire {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Wire {
    pub(crate) fn request(&mut self) -> Vec<Vec<u8>> {
        loop {
            if let Some((Value::Array(words), len)) =
                parse_value(&self.input).expect("a request of words")
            {
                self.input.drain(..len);
                let bytes = |word: &Value| word.bytes().expect("a word").to_vec();
                return words.iter().map(bytes).collect();
            }
            let mut bytes = [0; 4096];
            let count = self.stream.read(&mut bytes).expect("connected");
            assert!(count > 0, "the connection has ended");
            self.input.extend_from_slice(&bytes[..count]);
        }
    }

    pub(crate) fn reply(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).expect("connected");
    }
}

/// Sends a MIGRATE of one key and returns when the target has its RESTORE.
fn begin(from: &mut Client, to: &Double, rest: &str) -> (Wire, Vec<Vec<u8>>) {
    let request = format!("MIGRATE 127.0.0.1 {} {rest}", to.port());
    from.send(&request.split(' ').collect::<Vec<_>>())
        .expect("connected");
    let mut wire = to.accept();
    let restore = wire.request();
    (wire, restore)
}

fn read(client: &mut Client) -> Value {
    client.read(PATIENCE).expect("a reply")
}

#[test]
fn values_of_all_types_go_from_server_to_server() {
    let first = Server::start(Target::Redis, &[]);
    let (second, third) = (Server::start(LOGGED, &[]), Server::start(LOGGED, &[]));
    let (mut one, mut two, mut three) = (first.client(), second.client(), third.client());
    let names = fill(&mut one);
    let digest = one.ask("DEBUG DIGEST");
    let carry = |from: &mut Client, server: &Server, to: &mut Client| {
        for names in names.chunks(17) {
            assert_eq!(migrate_all(from, server.addr().port(), names), ok());
        }
        assert_eq!(integer(&from.ask("DBSIZE")), 0);
        assert_eq!(to.ask("DEBUG DIGEST"), digest);
        let left = integer(&to.ask("PTTL hash:1:12"));
        assert!(left > 1_000_000_000, "{left}");
    };
    carry(&mut one, &second, &mut two);
    // Its values are in the log alone, but for the shortest.
    two.ask("DEBUG OFFLOAD-ALL 1");
    let mut is_cold = |name: &&String| two.ask(&format!("DEBUG OFFLOAD {name}")) == Value::Int(1);
    let cold = names.iter().filter(&mut is_cold).count();
    assert!(cold * 10 > names.len() * 9, "{cold} of {}", names.len());
    carry(&mut two, &third, &mut three);
    carry(&mut three, &first, &mut one);
    // All of them at once.
    assert_eq!(migrate_all(&mut one, second.addr().port(), &names), ok());
    assert_eq!(migrate_all(&mut two, third.addr().port(), &names), ok());
    assert_eq!(two.ask("DBSIZE"), Value::Int(0));
    assert_eq!(three.ask("DEBUG DIGEST"), digest);
}

#[test]
fn thousands_of_keys_go_in_one_request() {
    let (from, to) = (Server::start(LOGGED, &[]), Server::start(ONE, &[]));
    let (mut source, mut target) = (from.client(), to.client());
    let names: Vec<String> = (0..20_000).map(|number| format!("key:{number}")).collect();
    for name in &names {
        source.send(&["SET", name, "v"]).expect("connected");
    }
    names
        .iter()
        .for_each(|_| assert_eq!(read(&mut source), ok()));
    target.ask("SET key:19999 other");
    let busy = migrate_all(&mut source, to.addr().port(), &names);
    let text = "ERR Target instance replied with error: BUSYKEY Target key name already exists.";
    assert_eq!(busy, Value::Error(text.into()));
    // All others were taken.
    assert_eq!(source.ask("DBSIZE"), Value::Int(1));
    assert_eq!(target.ask("DBSIZE"), Value::Int(20_000));
    assert_eq!(target.ask("GET key:19999").text(), "other");
    let replaced = migrate(&mut source, to.addr().port(), "key:19999 0 60000 REPLACE");
    assert_eq!(replaced, ok());
    assert_eq!(target.ask("GET key:19999").text(), "v");
    assert_eq!(source.ask("DBSIZE"), Value::Int(0));
}

#[test]
fn a_target_that_refuses_leaves_the_keys_here() {
    let locked = Server::start(Target::Redis, &["--requirepass", "secret"]);
    let source = Server::start(LOGGED, &[]);
    let mut client = source.client();
    let port = locked.addr().port();
    client.ask("SET k v");
    let refused = "ERR Target instance replied with error: ";
    for (rest, text) in [
        ("k 0 60000", "NOAUTH Authentication required."),
        (
            "k 0 60000 AUTH wrong",
            "WRONGPASS invalid username-password pair or user is disabled.",
        ),
        (
            "k 0 60000 AUTH2 nobody secret",
            "WRONGPASS invalid username-password pair or user is disabled.",
        ),
        ("k 99 60000 AUTH secret", "ERR DB index is out of range"),
    ] {
        let reply = migrate(&mut client, port, rest);
        assert_eq!(
            reply,
            Value::Error(format!("{refused}{text}").into()),
            "{rest}"
        );
        assert_eq!(client.ask("GET k").text(), "v");
    }
    let mut target = locked.client();
    target.ask("AUTH secret");
    // A wrong database gets nothing, nor does another.
    assert_eq!(target.ask("DBSIZE"), Value::Int(0));
    client.ask("PEXPIRE k 50000000");
    let copied = migrate(&mut client, port, "k 3 60000 COPY AUTH2 default secret");
    assert_eq!((copied, client.ask("GET k").text()), (ok(), "v".to_owned()));
    target.ask("SELECT 3");
    assert_eq!(target.ask("GET k").text(), "v");
    assert!(integer(&target.ask("PTTL k")) > 40_000_000);
    let moved = migrate(&mut client, port, "k 3 60000 REPLACE AUTH secret");
    assert_eq!((moved, client.ask("EXISTS k")), (ok(), Value::Int(0)));
}

#[test]
fn a_target_that_is_lost_or_says_something_else_leaves_the_keys_here() {
    let source = Server::start(LOGGED, &["--rdbcompression", "no"]);
    let (mut client, double) = (source.client(), Double::new());
    let reading = Value::Error("IOERR error or timeout reading to target instance".into());
    for reply in [
        // The end of the connection.
        "",
        "+O",
        "+QUEUED\r\n",
        ":1\r\n",
        "$2\r\nOK\r\n",
        "OK\r\n",
        "\r\n",
        &"+".repeat(5000),
        "\u{0}\u{1}\u{2}\r\n",
    ] {
        client.ask("SET k v");
        let (mut wire, restore) = begin(&mut client, &double, "k 0 60000");
        assert_eq!(restore.len(), 4);
        wire.reply(reply);
        drop(wire);
        assert_eq!(read(&mut client), reading, "{reply:?}");
        assert_eq!(client.ask("GET k").text(), "v");
    }
    // It hangs: after the request, or before it has accepted anything.
    let (wire, _) = begin(&mut client, &double, "k 0 2000");
    assert_eq!(read(&mut client), reading);
    drop(wire);
    assert_eq!(migrate(&mut client, double.port(), "k 0 20"), reading);
    // It does not read.
    client.ask("SETRANGE large 80000000 x");
    let silent = double.0.accept().expect("the one before");
    let request = format!("MIGRATE 127.0.0.1 {} large 0 2000", double.port());
    client
        .send(&request.split(' ').collect::<Vec<_>>())
        .expect("connected");
    let wire = double.accept();
    let writing = Value::Error("IOERR error or timeout writing to target instance".into());
    assert_eq!(read(&mut client), writing);
    assert_eq!(client.ask("STRLEN large"), Value::Int(80_000_001));
    drop((silent, wire));
    // It is not there.
    let port = double.port();
    drop(double);
    assert_eq!(migrate(&mut client, port, "k 0 60000"), writing);
    assert_eq!(client.ask("GET k").text(), "v");
}

#[test]
fn others_go_on_while_a_target_is_slow() {
    let source = Server::start(ONE, &["--rdbcompression", "no"]);
    let (mut client, mut other) = (source.client(), source.client());
    let double = Double::new();
    client.ask("SETRANGE k 3000000 x");
    let request = format!("MIGRATE 127.0.0.1 {} k 0 60000", double.port());
    client
        .send(&request.split(' ').collect::<Vec<_>>())
        .expect("connected");
    let mut wire = double.accept();
    // Bytes are read one after the other, as it were.
    let mut bytes = vec![0; 1_000_000];
    for _ in 0..3 {
        wire.stream.read_exact(&mut bytes).expect("connected");
        assert_eq!(other.ask("STRLEN k"), Value::Int(3_000_001));
        assert_eq!(other.ask("SET other v"), ok());
        wire.input.extend_from_slice(&bytes);
    }
    assert_eq!(wire.request()[1], b"k");
    assert_eq!(other.ask("EXISTS k"), Value::Int(1));
    wire.reply("+OK\r\n");
    assert_eq!(read(&mut client), ok());
    assert_eq!(other.ask("EXISTS k"), Value::Int(0));
}

#[test]
fn so_many_at_a_time_and_others_wait_for_their_turn() {
    /// As `limits/` has it.
    const MIGRATIONS: usize = 64;
    let (source, double) = (Server::start(ONE, &[]), Double::new());
    let mut clients: Vec<Client> = (0..MIGRATIONS + 6).map(|_| source.client()).collect();
    let port = double.port().to_string();
    for (number, client) in clients.iter_mut().enumerate() {
        let key = format!("key:{number}");
        client.ask(&format!("SET {key} v"));
        let request = ["MIGRATE", "127.0.0.1", &port, &key, "0", "60000"];
        client.send(&request).expect("connected");
    }
    let begun = |_| {
        let mut wire = double.accept();
        wire.request();
        wire
    };
    let mut wires: Vec<Wire> = (0..MIGRATIONS).map(begun).collect();
    double.0.set_nonblocking(true).expect("a socket");
    let next = double.0.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(next, Err(ErrorKind::WouldBlock));
    double.0.set_nonblocking(false).expect("a socket");
    let mut other = source.client();
    assert_eq!(other.ask("DBSIZE"), Value::Int(MIGRATIONS as i64 + 6));
    wires.iter_mut().for_each(|wire| wire.reply("+OK\r\n"));
    for mut wire in (0..6).map(begun) {
        wire.reply("+OK\r\n");
    }
    clients
        .iter_mut()
        .for_each(|client| assert_eq!(read(client), ok()));
    assert_eq!(other.ask("DBSIZE"), Value::Int(0));
}

#[test]
fn a_key_that_changes_while_it_is_sent_stays() {
    let source = Server::start(LOGGED, &[]);
    let (mut client, mut other) = (source.client(), source.client());
    let double = Double::new();
    let changed = "ERR a key was changed while it was sent: it stays here, and the target instance has \
                   its value from before";
    for (change, look, found) in [
        ("APPEND b 1", "GET b", "b1"),
        ("SET b b", "GET b", "b"),
        ("PEXPIRE b 100000000", "GET b", "b"),
        ("HSET h f w", "HGET h f", "w"),
        ("DEL b", "EXISTS b", "0"),
        ("RENAME b n", "GET n", "b"),
        ("FLUSHALL", "DBSIZE", "0"),
    ] {
        for request in ["FLUSHALL", "SET a a", "SET b b", "HSET h f v"] {
            client.ask(request);
        }
        let key = if change.contains('h') { "h" } else { "b" };
        let names = format!(" 0 60000 KEYS a {key}");
        let request = format!("MIGRATE 127.0.0.1 {} {names}", double.port());
        client
            .send(&request.split(' ').collect::<Vec<_>>())
            .expect("connected");
        let mut wire = double.accept();
        assert_eq!((wire.request().len(), wire.request().len()), (4, 4));
        other.ask(change);
        other.ask("SET unrelated v");
        other.ask("DEL unrelated");
        wire.reply("+OK\r\n+OK\r\n");
        assert_eq!(read(&mut client), Value::Error(changed.into()), "{change}");
        assert_eq!(other.ask(look).text(), found, "{change}");
        assert_eq!(other.ask("EXISTS a"), Value::Int(0));
    }
    // A key whose time comes meanwhile is gone, as it is there soon.
    // Both requests run in one turn, so it is there for the second.
    let port = double.port().to_string();
    let set = encode_request(&["SET", "k", "v", "PX", "2000"]);
    let sent = encode_request(&["MIGRATE", "127.0.0.1", &port, "k", "0", "60000"]);
    client.send_bytes(&[set, sent].concat()).expect("connected");
    let mut wire = double.accept();
    let ttl: i64 = String::from_utf8_lossy(&wire.request()[2])
        .parse()
        .expect("ms");
    assert!((1..=2000).contains(&ttl));
    assert_eq!(read(&mut client), ok());
    eventually("expiry", || other.ask("EXISTS k") == Value::Int(0));
    wire.reply("+OK\r\n");
    assert_eq!(read(&mut client), ok());
    // Databases change places: the key of that number is another.
    client.ask("SET k v");
    other.ask("SELECT 1");
    other.ask("SET k w");
    let (mut wire, _) = begin(&mut client, &double, "k 0 60000");
    other.ask("SWAPDB 0 1");
    wire.reply("+OK\r\n");
    assert_eq!(read(&mut client), Value::Error(changed.into()));
    assert_eq!(client.ask("GET k").text(), "w");
    assert_eq!(other.ask("GET k").text(), "v");
}

#[test]
fn a_source_that_is_killed_has_lost_nothing() {
    let mut source = Server::start(LOGGED, &["--appendfsync", "always"]);
    let double = Double::new();
    let mut client = source.client();
    client.ask("SET k v");
    let (mut wire, _) = begin(&mut client, &double, "k 0 60000");
    source.start_again(LOGGED, Signal::KILL, &["--appendfsync", "always"]);
    let _ = wire.stream.write_all(b"+OK\r\n");
    let mut client = source.client();
    assert_eq!(client.ask("GET k").text(), "v");
    let (mut wire, _) = begin(&mut client, &double, "k 0 60000");
    wire.reply("+OK\r\n");
    assert_eq!(read(&mut client), ok());
    source.start_again(LOGGED, Signal::KILL, &["--appendfsync", "always"]);
    assert_eq!(source.client().ask("EXISTS k"), Value::Int(0));
}

#[test]
fn a_client_that_leaves_has_its_keys_moved() {
    let source = Server::start(ONE, &[]);
    let (mut client, mut other) = (source.client(), source.client());
    let double = Double::new();
    client.ask("SET k v");
    let (mut wire, _) = begin(&mut client, &double, "k 0 60000");
    drop(client);
    assert_eq!(other.ask("GET k").text(), "v");
    wire.reply("+OK\r\n");
    eventually("removal", || other.ask("EXISTS k") == Value::Int(0));
}

#[test]
fn a_transaction_moves_its_keys_before_others_see_them() {
    let (from, to) = (
        Server::start(LOGGED, &[]),
        Server::start(Target::Redis, &[]),
    );
    let mut client = from.client();
    let port = to.addr().port();
    for request in ["SET a 1", "SET b 2", "CONFIG SET notify-keyspace-events Kg"] {
        client.ask(request);
    }
    let mut listener = from.client();
    listener.ask("PSUBSCRIBE __keyspace@0__:*");
    client.ask("MULTI");
    client.ask("INCR a");
    client
        .send(&[
            "MIGRATE",
            "127.0.0.1",
            &port.to_string(),
            "",
            "5",
            "60000",
            "KEYS",
            "a",
            "b",
        ])
        .expect("connected");
    assert_eq!(read(&mut client).text(), "QUEUED");
    client.ask("EXISTS a b");
    client.ask(&format!("MIGRATE 127.0.0.1 {port} a 0 60000"));
    let Value::Array(replies) = client.ask("EXEC") else {
        panic!("no array");
    };
    let nokey = Value::Simple("NOKEY".into());
    assert_eq!(replies, [Value::Int(2), ok(), Value::Int(0), nokey]);
    for name in ["a", "b"] {
        let event = read(&mut listener);
        let shown = format!("{event:?}");
        assert!(
            shown.contains(&format!("__keyspace@0__:{name}")) && shown.contains("del"),
            "{shown}"
        );
    }
    let mut target = to.client();
    target.ask("SELECT 5");
    assert_eq!(
        target.ask("MGET a b"),
        Value::Array(vec![support::bulk("2"), support::bulk("2")])
    );
    // A target that hangs: the transaction waits for as long as it says.
    let double = Double::new();
    client.ask("SET k v");
    client.ask("MULTI");
    client.ask(&format!("MIGRATE 127.0.0.1 {} k 0 20", double.port()));
    client.ask("GET k");
    let reading = Value::Error("IOERR error or timeout reading to target instance".into());
    assert_eq!(
        client.ask("EXEC"),
        Value::Array(vec![reading, support::bulk("v")])
    );
    // Nor does a client without replies wait.
    client.ask("SET k v");
    client.send(&["CLIENT", "REPLY", "OFF"]).expect("connected");
    client
        .send(&["MIGRATE", "127.0.0.1", &port.to_string(), "k", "0", "60000"])
        .expect("connected");
    client.send(&["CLIENT", "REPLY", "ON"]).expect("connected");
    assert_eq!(read(&mut client), ok());
    assert_eq!(client.ask("EXISTS k"), Value::Int(0));
    target.ask("SELECT 0");
    assert_eq!(target.ask("GET k").text(), "v");
}

#[test]
fn passwords_are_shown_to_nobody() {
    let source = Server::start(ONE, &["--slowlog-log-slower-than", "0"]);
    let (mut client, mut monitor) = (source.client(), source.client());
    monitor.ask("MONITOR");
    let (hidden, shown) = ("hidden1", "AUTH2");
    client.ask(&format!(
        "MIGRATE 127.0.0.1 1 k 0 10 COPY AUTH {hidden} {shown} {hidden} {hidden}"
    ));
    let line = read(&mut monitor).text();
    assert!(
        line.contains("COPY") && line.contains(shown) && !line.contains(hidden),
        "{line}"
    );
    let slow = format!("{:?}", client.ask("SLOWLOG GET"));
    assert!(
        slow.contains("(redacted)") && !slow.contains(hidden),
        "{slow}"
    );
}
