//! Guesses at the password: attempts from an address that has sent many wrong ones wait for their turns, on
//! whatever connections they come. Nobody else waits, and the right password is right after the wait.
//!
//! Nothing here measures time: counters and the order of replies say who waited.

use crate::support;

use support::{Client, PATIENCE, Server, Target, encode_request, eventually, info as figure};

const ONE: Target = Target::Ferrite { threads: 1 };
const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const TOO_MANY: &str = "ERR too many wrong passwords came from this address";

/// A server with a password, and a connection that has given it.
fn start(options: &[&str]) -> (Server, Client) {
    let options = [&["--requirepass", "secret"][..], options].concat();
    let server = Server::start(ONE, &options);
    let mut admin = server.client();
    assert_eq!(admin.ask("AUTH secret").text(), "OK");
    (server, admin)
}

/// Wrong passwords as long as they are answered without a wait.
fn use_up(server: &Server, admin: &mut Client) {
    let mut client = server.client();
    while figure(admin, "auth_delayed") == 0 {
        assert_eq!(client.ask("AUTH wrong").text(), WRONG);
        assert!(figure(admin, "auth_failures") < 50, "nobody waits");
    }
}

#[test]
fn twenty_thousand_tries_in_a_pipeline_are_not_twenty_thousand_guesses() {
    let (server, mut admin) = start(&[]);
    let mut client = server.client();
    let requests = encode_request(&["AUTH", "wrong"]).repeat(20_000);
    client.send_bytes(&requests).expect("the server reads");
    eventually("waiting", || figure(&mut admin, "auth_delayed") > 0);
    // Who has logged in goes on meanwhile, on the same worker.
    for _ in 0..100 {
        assert_eq!(admin.ask("SET key value").text(), "OK");
    }
    assert!(figure(&mut admin, "auth_failures") < 1000);
    for _ in 0..12 {
        assert_eq!(client.read(PATIENCE).expect("a reply").text(), WRONG);
    }
    assert_eq!(figure(&mut admin, "auth_addresses"), 1);
}

#[test]
fn the_right_password_is_right_after_the_wait() {
    let (server, mut admin) = start(&[]);
    // Each way to give it, with something behind it that waits, too.
    for (login, behind) in [
        (&["AUTH", "secret"][..], "PONG"),
        (&["AUTH", "default", "secret"], "PONG"),
        (
            &["HELLO", "2", "SETNAME", "me", "AUTH", "default", "secret"],
            "PONG",
        ),
    ] {
        use_up_again(&server, &mut admin);
        let mut client = server.client();
        let bytes = [encode_request(login), encode_request(&["PING"])].concat();
        client.send_bytes(&bytes).expect("the server reads");
        let reply = client.read(PATIENCE).expect("a reply");
        assert!(
            !reply.text().starts_with("WRONGPASS"),
            "{login:?}: {reply:?}"
        );
        assert_eq!(client.read(PATIENCE).expect("a reply").text(), behind);
        // That ends it: the next wrong one does not wait.
        assert_eq!(figure(&mut admin, "auth_addresses"), 0);
    }
    // A command that waited is counted once.
    let stats = admin.ask("INFO commandstats").text();
    let calls = stats
        .lines()
        .find(|line| line.starts_with("cmdstat_hello:"));
    assert!(
        calls.is_some_and(|line| line.contains("calls=1,")),
        "{stats}"
    );
}

/// As [`use_up`], where some have waited before.
fn use_up_again(server: &Server, admin: &mut Client) {
    assert_eq!(admin.ask("CONFIG RESETSTAT").text(), "OK");
    use_up(server, admin);
}

#[test]
fn more_connections_are_not_more_guesses() {
    let (server, mut admin) = start(&[]);
    // Those that find no turn are refused unseen, the right password among them. On a busy machine a turn may
    // have become free before the right password is sent: then it is right, and all begins again.
    let mut clients: Vec<Client> = Vec::new();
    let is_refused = (0..5).any(|_| {
        use_up_again(&server, &mut admin);
        clients = (0..600).map(|_| server.client()).collect();
        for client in &mut clients {
            client.send(&["AUTH", "wrong"]).expect("the server reads");
        }
        eventually("refusing", || figure(&mut admin, "auth_refused") > 0);
        let reply = server.client().ask("AUTH secret").text();
        assert!(reply == "OK" || reply.starts_with(TOO_MANY), "{reply}");
        reply != "OK"
    });
    assert!(is_refused, "the right password always finds a turn");
    let failures = figure(&mut admin, "auth_failures");
    assert!(failures < 300, "{failures} were looked at");
    // CLIENT UNBLOCK is no way around the wait: the others are still in line.
    let list = admin.ask("CLIENT LIST").text();
    let waiting = list
        .lines()
        .find(|line| line.contains(" flags=b ") && line.contains("cmd=auth"));
    if let Some(line) = waiting {
        let id = line
            .strip_prefix("id=")
            .and_then(|rest| rest.split(' ').next());
        let id = id.expect("it has one");
        for how in ["TIMEOUT", "ERROR"] {
            let before = figure(&mut admin, "auth_failures");
            admin.ask(&format!("CLIENT UNBLOCK {id} {how}"));
            assert!(figure(&mut admin, "auth_failures") <= before + 2);
        }
    }
    // Others are served.
    assert_eq!(admin.ask("PING").text(), "PONG");
}

#[test]
fn peers_of_a_unix_socket_are_one_address() {
    let (server, mut admin) = start(&["--unixsocket", "socket"]);
    let path = server.dir().join("socket");
    let mut first = Client::connect_unix(&path).expect("it listens");
    let mut second = Client::connect_unix(&path).expect("it listens");
    while figure(&mut admin, "auth_delayed") == 0 {
        assert_eq!(first.ask("AUTH wrong").text(), WRONG);
        assert_eq!(second.ask("AUTH wrong").text(), WRONG);
        assert!(figure(&mut admin, "auth_failures") < 50, "nobody waits");
    }
    // Those that come over the network are others.
    let delayed = figure(&mut admin, "auth_delayed");
    assert_eq!(server.client().ask("AUTH wrong").text(), WRONG);
    assert_eq!(figure(&mut admin, "auth_delayed"), delayed);
    assert_eq!(figure(&mut admin, "auth_addresses"), 2);
}
