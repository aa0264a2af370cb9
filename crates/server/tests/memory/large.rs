//! Values that are larger than what clients may take together: who sends or reads one is not cut for it, and
//! the limit holds.

use std::time::Duration;

use super::support::{self, Client, PATIENCE, Server, Target, Value, info};
use super::{TWO, eventually};

const LIMIT: u64 = 100_000_000;
const LEN: usize = 16_000_000;
const LIMITED: &[&str] = &["--maxmemory", "100000000", "--shards", "16"];
const LOGGED: Target = Target::Logged { threads: 2 };

/// A value of which every byte says whose it is.
fn value(number: usize) -> Vec<u8> {
    vec![b'a' + number as u8; LEN]
}

fn store(client: &mut Client, command: &str, key: &str, value: &[u8]) {
    let parts = match command {
        "APPEND" => 16,
        _ => 1,
    };
    for part in value.chunks(LEN / parts) {
        let reply = client.call(&[command.as_bytes(), key.as_bytes(), part]);
        let reply = reply.expect("nobody is cut");
        let is_stored = reply == Value::Simple(b"OK".to_vec()) || matches!(reply, Value::Int(_));
        assert!(is_stored, "{command}: {reply:?}");
    }
}

/// Asks for a value and reads nothing yet.
fn ask(server: &Server, key: &str) -> Client {
    let mut reader = server.client();
    reader.send(&["GET", key]).expect("the server reads");
    reader
}

fn expect_value(reader: &mut Client, number: usize) {
    let reply = reader.read(PATIENCE).expect("nobody is cut");
    assert!(reply == Value::Bulk(value(number)), "value {number}");
}

#[test]
fn a_value_that_could_be_stored_can_be_read() {
    for (target, command) in [
        (TWO, "SET"),
        (TWO, "MSET"),
        (TWO, "APPEND"),
        (LOGGED, "SET"),
        (LOGGED, "MSET"),
        (LOGGED, "APPEND"),
    ] {
        let server = Server::start(target, LIMITED);
        let mut client = server.client();
        for number in 0..3 {
            store(&mut client, command, &format!("k{number}"), &value(number));
        }
        // All ask before any of them reads; then some read at once, and the others when much has happened
        // since.
        let mut readers: Vec<Client> = (0..9)
            .map(|number| ask(&server, &format!("k{}", number % 3)))
            .collect();
        // Long enough for the server to look at what its clients take.
        std::thread::sleep(Duration::from_millis(300));
        for (number, reader) in readers.iter_mut().enumerate().rev() {
            expect_value(reader, number % 3);
        }
        // What is deleted while it is sent is sent whole: three have one value, which is the memory of one.
        let mut readers: Vec<Client> = (0..3).map(|_| ask(&server, "k0")).collect();
        for reader in &mut readers {
            assert_eq!(reader.read_bytes(11, PATIENCE), b"$16000000\r\n");
        }
        client.ask("DEL k0");
        std::thread::sleep(Duration::from_millis(300));
        for reader in &mut readers {
            let got = reader.read_bytes(LEN + 2, PATIENCE);
            assert!(got[..LEN] == value(0) && got.len() == LEN + 2);
        }
        assert_eq!(info(&mut client, "evicted_clients"), 0, "{command}");
        let resident = server.most_resident_bytes();
        assert!(resident <= LIMIT / 10 * 11, "{command}: {resident}");
    }
}

/// A reader that does not read keeps the version that it asked for. The keyspace has let go of it, so it is
/// the reader's.
#[test]
fn versions_that_only_readers_keep_are_clients_memory() {
    let server = Server::start(TWO, LIMITED);
    let mut admin = server.client();
    let mut readers = Vec::new();
    eventually("some are dropped", || {
        let short = Duration::from_millis(200);
        let words = [b"SET".to_vec(), b"k".to_vec(), value(readers.len() % 20)];
        // It may have to wait until there is room, be refused, or be the largest client itself.
        let _ = server.client().call(&words);
        readers.push(ask(&server, "k"));
        std::thread::sleep(short);
        info(&mut admin, "evicted_clients") > 0
    });
    // One reply may be larger than what clients may take, and the rest of them fits.
    eventually("the rest fits", || {
        info(&mut admin, "mem_clients_normal") <= LIMIT / 8 + LEN as u64 + (1 << 20)
    });
    // Beside a reply that is as large, and that nobody reads, a request may be the one that has to go.
    drop(readers);
    eventually("they have gone", || {
        info(&mut admin, "connected_clients") == 1
    });
    let mut client = server.client();
    store(&mut client, "SET", "k", &value(0));
    assert!(client.ask("GET k") == Value::Bulk(value(0)));
    let resident = server.most_resident_bytes();
    assert!(resident <= LIMIT / 10 * 11, "{resident}");
}

/// What somebody has set holds for everybody, as in Redis.
#[test]
fn a_limit_that_was_set_holds_for_one_request_too() {
    let server = Server::start(TWO, &["--maxmemory", "100mb", "--maxmemory-clients", "8mb"]);
    let mut client = server.client();
    let mut sender = server.client();
    let request = support::encode_request(&[b"SET".to_vec(), b"k".to_vec(), value(0)]);
    // It ends before all of it is sent.
    let _ = sender.send_bytes(&request);
    assert!(sender.read(PATIENCE).is_err());
    assert_eq!(info(&mut client, "evicted_clients"), 1);
}
