//! HyperLogLogs beyond what golden scripts can say: what is left of them after a restart.

use crate::support;

use rustix::process::Signal;
use support::{Client, Server, Target, Value};

const LOGGED: Target = Target::Logged { threads: 2 };

/// Adds `count` elements, one by one or some at a time.
fn add(client: &mut Client, key: &str, count: usize, at_once: usize) {
    for first in (0..count).step_by(at_once) {
        let mut words = vec!["PFADD".to_owned(), key.to_owned()];
        words.extend((first..first + at_once).map(|number| format!("element:{number}")));
        client.call(&words).expect("a reply");
    }
}

#[test]
fn values_and_their_estimates_come_back_after_a_kill() {
    let mut server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    add(&mut client, "few", 20, 1);
    add(&mut client, "many", 3_000, 1);
    add(&mut client, "counted", 3_000, 100);
    let counted = client.ask("PFCOUNT counted");
    client.ask("PFMERGE merged few many");
    // Behind the estimate both the registers and the mark that it is out of date change.
    client.ask("PFADD counted one-more and-another");
    let counted_few = client.ask("PFCOUNT few");
    let names = ["few", "many", "counted", "merged"];
    let values = |client: &mut Client| names.map(|name| client.ask(&format!("GET {name}")));
    let before = values(&mut client);
    for way in [
        "kill",
        "compaction",
        "restart",
        "DEBUG RELOAD",
        "DEBUG LOADAOF",
    ] {
        match way {
            "kill" | "restart" => {
                drop(client);
                let signal = if way == "kill" {
                    Signal::KILL
                } else {
                    Signal::TERM
                };
                server.start_again(LOGGED, signal, &[]);
                client = server.client();
            }
            "compaction" => drop(client.ask("BGREWRITEAOF")),
            _ => assert_eq!(client.ask(way).text(), "OK"),
        }
        assert_eq!(values(&mut client), before, "{way}");
    }
    assert_eq!(client.ask("PFCOUNT few"), counted_few);
    let Value::Int(count) = counted else {
        panic!("no number");
    };
    assert!((2_900..3_100).contains(&count), "{count}");
}
