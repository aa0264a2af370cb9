//! Queues of messages with `appendfsync always`, while the server is killed: eight producers push, eight
//! consumers wait for messages and take them, all pipelined, over all workers.
//!
//! | file | what |
//! |---|---|
//! | `board` | what was pushed, acknowledged and received, and the rules |
//! | `roles` | a producer, a consumer |
//! | `wire` | a connection that sends requests in one piece and decodes few kinds of replies |
//!
//! A producer numbers its messages and pushes each once, with LPUSH; after a kill it goes on with the next
//! number. What must hold:
//!
//! 1. Each acknowledged message is received. A consumer of `Taking::Pops` uses BRPOP: a pop whose reply a
//!    kill has cut off may have taken one message. No more messages than such pops may be missing. A consumer
//!    of `Taking::Moves` uses BLMOVE or BRPOPLPUSH to a list of its own, and LREM; after a kill it
//!    receives what is in that list. Then none may be missing.
//! 2. A message is received once. A consumer that moves may receive one again from its own list after a kill.
//! 3. Of the pushes without a reply the first ones are there, and the others are not. An LPUSH of several
//!    messages is there whole or not at all. (Where pops may take messages, what is missing counts for 1.)
//! 4. The messages of one producer in one queue are received in the order in which they were pushed: by each
//!    consumer; and what a request gets comes behind all that was received before it was sent.
//!
//! `make queues MESSAGES=10000000 KILLS=20` runs it for longer, on the optimised server. Environment:
//! `FERRITE_QUEUE_MESSAGES`, `FERRITE_QUEUE_KILLS`, `FERRITE_SERVER` (another program).

mod board;
mod roles;
mod wire;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Value};
use crate::torture::process::Process;
use board::{Board, Taking};

const PRODUCERS: usize = 8;
const CONSUMERS: usize = 8;
const QUEUES: usize = 4;

const OPTIONS: [&str; 4] = [
    "appendfsync=always",
    "log-segment-size=64mb",
    "shards=128",
    "threads=4",
];

fn setting(name: &str, usual: u64) -> u64 {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty());
    text.map_or(usual, |text| text.parse().expect("it is a number"))
}

/// Starts the server, and lets clients connect. In every second life of a build with faults the server keeps
/// what is not synced to itself, so that a kill is a loss of power.
fn start(process: &mut Process, board: &Board, life: u64) -> Result<(), String> {
    let clock = Arc::new(AtomicU64::new(0));
    process.spawn(&OPTIONS.map(str::to_owned));
    process.wait_until_ready(&clock)?;
    if life % 2 == 1 {
        let admin = process.connect(true, &clock);
        let mut admin = admin.map_err(|error| error.to_string())?;
        let told = admin.ask("DEBUG DISK VOLATILE", PATIENCE);
        board.note_life(told == Ok(Value::Simple(b"OK".to_vec())));
    }
    board.publish(process.addr());
    Ok(())
}

/// Waits until so many messages were received.
fn wait_for(board: &Board, messages: u64) -> Result<(), String> {
    let (mut before, mut since) = (board.received(), Instant::now());
    while before < messages {
        if let Some(find) = board.find() {
            return Err(find);
        }
        sleep(Duration::from_millis(2));
        let now = board.received();
        if now != before {
            (before, since) = (now, Instant::now());
        }
        if since.elapsed() > PATIENCE {
            return Err(format!("no message is received any more after {now}"));
        }
    }
    Ok(())
}

fn kill_and_start(
    process: &mut Process,
    board: &Board,
    (messages, kills): (u64, u64),
) -> Result<(), String> {
    let mut random = fastrand::Rng::with_seed(messages ^ kills);
    for kill in 1..=kills {
        // A little before or behind an even share.
        let share = messages / (kills + 1);
        wait_for(
            board,
            kill * share - share / 4 + random.u64(..share / 2 + 1),
        )?;
        process.kill();
        if messages < 1 << 20 || kill == kills {
            let (code, said) = process.check_log();
            if code != 0 {
                return Err(format!("--check-log: {code}\n{said}"));
            }
        }
        start(process, board, kill)?;
    }
    Ok(())
}

fn soak(taking: Taking, messages: u64, kills: u64) {
    let began = Instant::now();
    let board = Board::new(taking, messages / PRODUCERS as u64, kills);
    let mut process = Process::new();
    thread::scope(|scope| {
        let board = &board;
        for producer in 0..PRODUCERS {
            scope.spawn(move || roles::produce(board, producer));
        }
        for consumer in 0..CONSUMERS {
            scope.spawn(move || roles::consume(board, consumer));
        }
        let done = start(&mut process, board, 0)
            .and_then(|()| kill_and_start(&mut process, board, (messages, kills)));
        if let Err(find) = done {
            board.fail(find);
        }
        // The threads end when all is received, or with a find; a kill ends their connections.
        board.wait_for_the_end();
        if board.find().is_some() {
            process.kill();
        }
    });
    if let Err(find) = board.verdict() {
        panic!(
            "{taking:?}, {messages} messages, {kills} kills: {find}\n{}",
            process.tail()
        );
    }
    println!(
        "{taking:?}: {}, in {:.0?}",
        board.summary(),
        began.elapsed()
    );
}

#[test]
fn messages_that_are_popped_come_once_and_in_order() {
    let messages = setting("FERRITE_QUEUE_MESSAGES", 24_000);
    soak(Taking::Pops, messages, setting("FERRITE_QUEUE_KILLS", 3));
}

#[test]
fn messages_that_are_moved_come_at_least_once_and_in_order() {
    let messages = setting("FERRITE_QUEUE_MESSAGES", 24_000);
    soak(Taking::Moves, messages, setting("FERRITE_QUEUE_KILLS", 3));
}
