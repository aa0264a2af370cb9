//! A server that is stopped again and again while it shows a list.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::LOGGED;
use crate::support::{Server, Value, items};

/// Elements of the longest list that is inside of its entry: integers of one byte.
const ELEMENTS: usize = 3_000;
const STOPS: usize = 150;

/// Nothing depends on how long a command takes that is never done in parts. The clock of a process goes on
/// while it is stopped, as it does while the system gives its processor to others.
#[test]
fn a_small_list_is_shown_whole_however_long_it_takes() {
    let server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    let mut push = vec!["RPUSH", "small"];
    push.extend(["7"; ELEMENTS]);
    client.call(&push).expect("a reply");
    let asking = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut client = server.client();
            let (mut asked, patience) = (0, Duration::from_secs(60));
            while asked < STOPS * 20 {
                (0..20).for_each(|_| client.send(&["LRANGE", "small", "0", "-1"]).expect("sent"));
                for _ in 0..20 {
                    let reply: Value = client.read(patience).expect("the server lives");
                    assert_eq!(items(reply).len(), ELEMENTS);
                    asked += 1;
                }
            }
        });
        while !asking.is_finished() {
            server.signal(Signal::STOP);
            thread::sleep(Duration::from_millis(1));
            server.signal(Signal::CONT);
            thread::sleep(Duration::from_micros(fastrand::u64(300..3_000)));
        }
        asking.join()
    });
    assert!(asking.is_ok(), "{}", server.output());
}
