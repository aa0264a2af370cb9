//! Large lists of which only parts are in memory.

use std::collections::VecDeque;
use std::thread;

use rustix::process::Signal;

use super::{SMALL, TWO, ok};
use crate::support::{Client, Server, Value, eventually, info, items, texts};

/// Elements of a list that does not fit into the memory of a small server.
const MANY: usize = 300_000;
/// Elements of one that does.
const FEW: usize = 2_000;
const TEXT: &str =
    "an element that is long enough for the whole of them not to fit into memory, by far: ";

fn element(number: usize) -> String {
    format!("{TEXT}{TEXT}{TEXT}{number}")
}

fn number_of(element: &str) -> usize {
    let number = element
        .rsplit(": ")
        .next()
        .filter(|_| element.starts_with(TEXT));
    let number = number.unwrap_or_else(|| panic!("{element:?} is no element"));
    number.parse().expect("a number")
}

fn push(client: &mut Client, command: &str, key: &str, numbers: impl Iterator<Item = usize>) {
    let mut words = vec![command.to_string(), key.to_string()];
    words.extend(numbers.map(element));
    let reply = client.call(&words).expect("a reply");
    assert!(matches!(reply, Value::Int(_)), "{reply:?}");
}

fn fill(client: &mut Client, key: &str, elements: usize) {
    for first in (0..elements).step_by(1000) {
        push(client, "RPUSH", key, first..(first + 1000).min(elements));
    }
}

/// A list of which nearly all leaves are in the log alone.
fn fill_cold(client: &mut Client, key: &str) {
    client.ask(&format!("DEL {key}"));
    fill(client, key, FEW);
    let before = info(client, "cold_leaves");
    assert_eq!(client.ask(&format!("DEBUG OFFLOAD {key}")), Value::Int(1));
    assert!(info(client, "cold_leaves") > before + 50);
}

fn assert_within(client: &mut Client) {
    let memory = info(client, "used_memory");
    assert!(memory < 49 << 20, "{memory} bytes");
}

/// LRANGE of all is that of one moment, whatever is pushed, popped and changed meanwhile.
fn assert_is_told_as_it_was(server: &Server, client: &mut Client) {
    let mut all = thread::scope(|scope| {
        let writes = scope.spawn(|| {
            let mut writer = server.client();
            for step in 0..200 {
                writer.ask(&format!("LSET list {} changed:{step}", 1 + step * 1301));
                writer.ask(&format!("LPUSH list new:{step}"));
                writer.ask("RPOP list");
            }
            writer.ask("BGREWRITEAOF");
        });
        let reply = server.client().call(&["LRANGE", "list", "0", "-1"]);
        writes.join().expect("the writer is answered");
        texts(reply.expect("a reply"))
    });
    let is_new = |element: &String| element.starts_with("new:");
    let new = all.iter().take_while(|element| is_new(element)).count();
    let changed = all.iter().filter(|element| element.starts_with("changed:"));
    let changed = changed.count();
    // A moment between two requests: an LSET, then an LPUSH, then an RPOP.
    assert!(changed == new || changed == new + 1, "{changed} and {new}");
    all.drain(..new);
    assert!(all.len() == MANY - new || all.len() == MANY - new + 1);
    for (rank, element) in all.iter().enumerate() {
        match element.starts_with("changed:") {
            true => {}
            false => assert_eq!(number_of(element), rank),
        }
    }
    assert_within(client);
}

#[test]
fn a_list_is_larger_than_memory() {
    let mut server = Server::start(TWO, SMALL);
    let mut client = server.client();
    fill(&mut client, "list", MANY);
    assert_within(&mut client);
    let cold = info(&mut client, "cold_leaf_bytes");
    let memory = info(&mut client, "used_memory");
    assert!(
        memory + cold > (MANY * TEXT.len() * 3) as u64,
        "{memory} and {cold} bytes"
    );
    assert_eq!(client.ask("LLEN list"), Value::Int(MANY as i64));
    for number in (0..MANY).step_by(7919) {
        let found = client.ask(&format!("LINDEX list {number}")).text();
        assert_eq!(number_of(&found), number);
    }
    let some = texts(client.ask("LRANGE list 100000 100999"));
    assert!(
        some.iter()
            .map(|element| number_of(element))
            .eq(100_000..101_000)
    );
    assert_is_told_as_it_was(&server, &mut client);
    // Leaves are read as a search comes to them.
    assert_eq!(client.ask("LPOS list nope"), Value::NullBulk);
    let middle = client.ask("LINDEX list 150000").text();
    let there = Value::Int(150_000);
    for (options, reply) in [
        (&[][..], there.clone()),
        (&["RANK", "-1"], there.clone()),
        (&["MAXLEN", "150000"], Value::NullBulk),
        (&["MAXLEN", "150001"], there.clone()),
        (&["COUNT", "0"], Value::Array(vec![there])),
        (&["RANK", "-2", "COUNT", "1"], Value::Array(Vec::new())),
    ] {
        let request = [&["LPOS", "list", &middle], options].concat();
        assert_eq!(
            client.call(&request).expect("a reply"),
            reply,
            "{options:?}"
        );
    }
    assert_within(&mut client);
    // There is no room for all of it at once.
    for request in ["LREM list 0 nope", "LINSERT list BEFORE nope new"] {
        let reply = client.ask(request).text();
        assert!(reply.starts_with("OOM "), "{request}: {reply}");
    }
    client.ask("MULTI");
    client.ask("LRANGE list 0 -1");
    client.ask("LLEN list");
    client.ask("LPOP list");
    let replies = items(client.ask("EXEC"));
    assert!(replies[0].text().starts_with("OOM "));
    assert_eq!(replies[1], Value::Int(MANY as i64));
    assert_eq!(replies[2].text(), "new:199");
    assert_within(&mut client);
    let digest = client.ask("DEBUG DIGEST-VALUE list").text();
    server.start_again(TWO, Signal::KILL, &[]);
    let mut client = server.client();
    assert_eq!(client.ask("DEBUG DIGEST-VALUE list").text(), digest);
    drop(client);
    // Cut to its middle, of which nothing was in memory.
    server.start_again(TWO, Signal::KILL, SMALL);
    let mut client = server.client();
    eventually("the server may take requests", || {
        client.ask("PING").text() == "PONG"
    });
    assert_eq!(client.ask("LTRIM list 150001 150010"), ok());
    let left = texts(client.ask("LRANGE list 0 -1"));
    assert_eq!(left.len(), 10);
    let digest = client.ask("DEBUG DIGEST-VALUE list").text();
    server.start_again(TWO, Signal::KILL, SMALL);
    let mut client = server.client();
    assert_eq!(client.ask("DEBUG DIGEST-VALUE list").text(), digest);
    assert_eq!(texts(client.ask("LRANGE list 0 -1")), left);
}

#[test]
fn a_queue_is_larger_than_memory() {
    let mut server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let mut first = 0;
    let (mut last, mut was_cold) = (0, 0);
    // It grows through a kill, and is drained again.
    while last < MANY {
        push(&mut client, "LPUSH", "queue", last..last + 500);
        last += 500;
        let popped = texts(client.ask("RPOP queue 50"));
        assert!(
            popped
                .iter()
                .map(|element| number_of(element))
                .eq(first..first + 50)
        );
        first += 50;
        let one = items(client.ask("BRPOP nope queue 1"));
        assert_eq!(number_of(&one[1].text()), first);
        first += 1;
        if last % 20_000 == 0 {
            assert_within(&mut client);
            was_cold = was_cold.max(info(&mut client, "cold_leaf_bytes"));
        }
        if last == MANY / 2 {
            drop(client);
            server.start_again(TWO, Signal::KILL, SMALL);
            client = server.client();
        }
    }
    assert!(was_cold > 30 << 20, "{was_cold} bytes");
    while first < last {
        let popped = texts(client.ask("RPOP queue 200"));
        assert!(popped.len() == 200.min(last - first));
        let numbers = popped.iter().map(|element| number_of(element));
        assert!(numbers.eq(first..first + popped.len()));
        first += popped.len();
        if first < last {
            let one = client.ask("BRPOPLPUSH queue done 1").text();
            assert_eq!(number_of(&one), first);
            first += 1;
        }
        if first % 1_000 < 200 {
            assert_within(&mut client);
        }
    }
    assert_eq!(client.ask("EXISTS queue"), Value::Int(0));
}

#[test]
fn commands_read_the_leaves_of_a_list_that_they_need_and_no_others() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    for (request, most) in [
        ("LLEN key", 0),
        ("TYPE key", 0),
        ("EXPIRE key 1000", 0),
        ("SADD key member", 0),
        ("LPUSH key new", 1),
        ("RPUSH key new new", 1),
        ("LPUSHX key new", 1),
        ("LPOP key", 1),
        ("RPOP key", 1),
        ("RPOP key 3", 2),
        ("LPOP key 100", 20),
        ("LMPOP 2 nope key LEFT COUNT 2", 1),
        ("BLPOP nope key 1", 1),
        ("BRPOP key 1", 1),
        ("BLMPOP 1 1 key RIGHT", 1),
        // The list counts once for each of the keys.
        ("LMOVE key key LEFT RIGHT", 4),
        ("RPOPLPUSH key other", 2),
        ("LINDEX key 1000", 1),
        ("LINDEX key -1", 1),
        ("LSET key 1000 new", 1),
        ("LRANGE key 0 3", 1),
        ("LRANGE key -3 -1", 1),
        ("LTRIM key 0 1500", 3),
        ("LTRIM key 500 -1", 3),
        ("LTRIM key 500 1500", 6),
        ("LTRIM key 5 4", 0),
        ("RENAME key other", 0),
        ("DEL key", 0),
    ] {
        fill_cold(&mut client, "key");
        let before = info(&mut client, "disk_reads");
        client.ask(request);
        let reads = info(&mut client, "disk_reads") - before;
        assert!(reads <= most, "{request} reads {reads}");
    }
}

/// Every command, on a list of which all is cold each time, against a deque.
#[test]
fn what_leaves_and_comes_back_is_like_a_deque() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    fill(&mut client, "key", FEW);
    let mut model: VecDeque<String> = (0..FEW).map(element).collect();
    let mut random = fastrand::Rng::with_seed(1);
    for step in 0..300 {
        client.ask("DEBUG OFFLOAD key");
        let (len, new) = (model.len(), format!("new:{step}"));
        let rank = random.usize(..len);
        match random.u8(..12) {
            0 => {
                client.ask(&format!("LPUSH key {new}"));
                model.push_front(new);
            }
            1 => {
                client.ask(&format!("RPUSH key {new}"));
                model.push_back(new);
            }
            2 => {
                let popped = texts(client.ask("LPOP key 12"));
                assert!(popped.into_iter().eq(model.drain(..12)));
            }
            3 => {
                let popped = texts(client.ask("RPOP key 12"));
                assert!(popped.into_iter().eq(model.drain(len - 12..).rev()));
            }
            4 => {
                client.ask(&format!("LTRIM key 3 -{}", 1 + rank % 7));
                model.truncate(len - rank % 7);
                model.drain(..3);
            }
            5 => {
                client.ask(&format!("LSET key {rank} {new}"));
                model[rank] = new;
            }
            6 => {
                let moved = client.ask("LMOVE key key RIGHT LEFT").text();
                let last = model.pop_back().expect("it has some");
                assert_eq!(moved, last);
                model.push_front(last);
            }
            7 => {
                let pivot = model[rank].clone();
                let request = ["LINSERT", "key", "AFTER", &pivot, &new];
                client.call(&request).expect("a reply");
                let first = model.iter().position(|element| *element == pivot);
                model.insert(first.expect("it is there") + 1, new);
            }
            8 => {
                let gone = model[rank].clone();
                client.call(&["LREM", "key", "-1", &gone]).expect("a reply");
                let last = model.iter().rposition(|element| *element == gone);
                model.remove(last.expect("it is there"));
            }
            9 => {
                let found = client
                    .call(&["LPOS", "key", &model[rank]])
                    .expect("a reply");
                let first = model.iter().position(|element| *element == model[rank]);
                assert_eq!(found, Value::Int(first.expect("it is there") as i64));
            }
            10 => {
                let to = (rank + 40).min(len);
                let some = texts(client.ask(&format!("LRANGE key {rank} {}", to - 1)));
                assert!(some.iter().eq(model.range(rank..to)));
            }
            _ => assert_eq!(
                client.ask(&format!("LINDEX key {rank}")).text(),
                model[rank]
            ),
        }
    }
    assert!(texts(client.ask("LRANGE key 0 -1")).into_iter().eq(model));
}
