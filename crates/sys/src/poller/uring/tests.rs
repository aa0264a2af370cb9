//! What only this backend can get wrong: bytes that were taken but not sent, buffers that run out,
//! operations that outlive their descriptor. What every backend promises is tested beside the
//! poller.

use super::answers::MAX_AHEAD;
use super::outbox;
use super::state::Uring;
use crate::poller::event::{Event, Interest, MAX_EVENTS};
use crate::poller::tests::{has_uring, load::Numbers};
use crate::socket::{Listener, Socket};
use std::collections::HashSet;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long to wait for what must happen.
const LONG: Option<Duration> = Some(Duration::from_secs(60));
const NOW: Option<Duration> = Some(Duration::ZERO);

/// A poller, or `None` where the kernel refuses one.
fn uring() -> Option<Uring> {
    has_uring().then(|| Uring::new(usize::MAX).expect("a poller"))
}

fn wait(uring: &mut Uring, timeout: Option<Duration>) -> Vec<Event> {
    let mut events = Vec::new();
    uring
        .wait(&mut events, timeout, false)
        .expect("an open poller waits");
    events
}

fn wait_one(uring: &mut Uring) -> Event {
    let events = wait(uring, LONG);
    assert_eq!(events.len(), 1, "{events:?}");
    events[0]
}

fn pair() -> (Socket, UnixStream) {
    let (one, other) = UnixStream::pair().expect("a socket pair");
    (Socket::from_unix(one).expect("connected"), other)
}

fn tcp_pair() -> (Socket, TcpStream) {
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("valid"), 16).expect("a free port");
    let client = TcpStream::connect(listener.local_addr().expect("TCP")).expect("it listens");
    // The client can be told before the listener: the last step of the handshake may be left to another
    // thread of the kernel.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(server) = listener.accept().expect("an open listener") {
            return (server, client);
        }
        assert!(Instant::now() < deadline, "a client is there");
        std::thread::yield_now();
    }
}

/// Fills a socket behind the poller's back, so that the poller takes bytes that don't fit. Returns
/// how many bytes that took.
fn fill(socket: &Socket) -> usize {
    let mut filled = 0;
    for block in [&[1; 65_536][..], &[1]] {
        while let Ok(count) = crate::poller::transfer::send(socket.as_fd(), block) {
            filled += count;
        }
    }
    filled
}

/// Reads exactly what [`fill`] has sent.
fn read_filling(other: &mut impl Read, filled: usize) {
    let mut bytes = vec![0; filled];
    other.read_exact(&mut bytes).expect("all of it is there");
    assert!(bytes.iter().all(|&byte| byte == 1));
}

/// Nothing is left of any descriptor.
fn assert_clean(uring: &mut Uring) {
    for _ in 0..1_000 {
        if uring.slots.len() == 0 {
            break;
        }
        assert!(wait(uring, Some(Duration::from_millis(1))).is_empty());
    }
    assert_eq!(uring.slots.len(), 0, "{:?}", uring.slots);
    assert_eq!(uring.buffers.counts().0, 0);
}

#[test]
fn a_turn_of_echoes_is_one_system_call() {
    let Some(mut uring) = uring() else { return };
    let mut connections: Vec<_> = (0..10).map(|_| tcp_pair()).collect();
    for (token, (socket, _)) in (0..).zip(&connections) {
        uring
            .add(socket.as_fd(), token, Interest::READ)
            .expect("an open socket");
    }
    assert!(wait(&mut uring, NOW).is_empty());
    let enters = uring.enters;
    let mut waits = 0;
    for _ in 0..100 {
        for (_, client) in &mut connections {
            client.write_all(b"request").expect("there is room");
        }
        let mut answered = 0;
        while answered < connections.len() {
            waits += 1;
            for event in wait(&mut uring, LONG) {
                let fd = connections[event.token as usize].0.as_fd();
                let mut request = [0; 100];
                assert_eq!(uring.recv(fd, &mut request).expect("a request"), 7);
                assert_eq!(uring.send(fd, b"reply").expect("there is room"), 5);
                answered += 1;
            }
        }
        // The replies leave with the next wait, which finds nothing.
        waits += 1;
        assert!(wait(&mut uring, NOW).is_empty());
        for (_, client) in &mut connections {
            let mut reply = [0; 5];
            client.read_exact(&mut reply).expect("it was sent");
            assert_eq!(&reply, b"reply");
        }
    }
    assert_eq!(uring.enters - enters, waits);
}

#[test]
fn what_was_taken_leaves_with_the_removal() {
    let Some(mut uring) = uring() else { return };
    let (socket, mut client) = tcp_pair();
    uring
        .add(socket.as_fd(), 1, Interest::READ)
        .expect("an open socket");
    assert!(wait(&mut uring, NOW).is_empty());
    assert_eq!(uring.send(socket.as_fd(), b"+O").expect("room"), 2);
    assert_eq!(uring.send(socket.as_fd(), b"K\r\n").expect("room"), 3);
    uring.remove(socket.as_fd()).expect("it is registered");
    drop(socket);
    // No wait comes between.
    let mut reply = [0; 5];
    client.read_exact(&mut reply).expect("it was sent");
    assert_eq!(&reply, b"+OK\r\n");
    assert!(wait(&mut uring, NOW).is_empty());
    assert_eq!(client.read(&mut reply).expect("a clean end"), 0);
    assert_clean(&mut uring);
}

#[test]
fn what_was_taken_leaves_when_the_poller_goes() {
    let Some(mut uring) = uring() else { return };
    let (socket, mut client) = tcp_pair();
    uring
        .add(socket.as_fd(), 1, Interest::READ)
        .expect("an open socket");
    assert!(wait(&mut uring, NOW).is_empty());
    uring.send(socket.as_fd(), b"last words").expect("room");
    drop(uring);
    let mut reply = [0; 10];
    client.read_exact(&mut reply).expect("it was sent");
    assert_eq!(&reply, b"last words");
}

#[test]
fn the_descriptor_of_a_removed_connection_is_left_alone() {
    let Some(mut uring) = uring() else { return };
    let (one, mut first) = tcp_pair();
    uring
        .add(one.as_fd(), 1, Interest::READ)
        .expect("an open socket");
    assert!(wait(&mut uring, NOW).is_empty());
    first.write_all(b"request").expect("there is room");
    uring.send(one.as_fd(), b"for the first").expect("room");
    uring.remove(one.as_fd()).expect("it is registered");
    let number = one.fd_number();
    // The number goes to another connection before anything was handed to the kernel.
    let (other, mut second) = tcp_pair();
    // SAFETY: both descriptors are open, and the old one isn't used any more but to be closed.
    let result = unsafe { libc::dup3(other.fd_number(), number, libc::O_CLOEXEC) };
    assert_eq!(result, number);
    uring
        .add(one.as_fd(), 2, Interest::READ)
        .expect("it was removed");
    assert!(wait(&mut uring, NOW).is_empty());
    second.write_all(b"other").expect("there is room");
    assert_eq!(wait_one(&mut uring).token, 2);
    let mut bytes = [0; 100];
    assert_eq!(uring.recv(one.as_fd(), &mut bytes).expect("bytes"), 5);
    uring.send(one.as_fd(), b"for the second").expect("room");
    uring.remove(one.as_fd()).expect("it is registered");
    drop((one, other));
    assert!(wait(&mut uring, NOW).is_empty());
    let mut replies = [Vec::new(), Vec::new()];
    second.read_to_end(&mut replies[1]).expect("a clean end");
    // Closed with a request unread: that is a reset, behind what was sent.
    let _ = first.read_to_end(&mut replies[0]);
    assert_eq!(replies, [&b"for the first"[..], &b"for the second"[..]]);
    assert_clean(&mut uring);
}

#[test]
fn sends_of_all_sizes_stay_in_order() {
    let Some(mut uring) = uring() else { return };
    let mut pairs = [pair(), pair()];
    for (socket, _) in &pairs {
        uring
            .add(socket.as_fd(), 1, Interest::NONE)
            .expect("an open socket");
    }
    assert!(wait(&mut uring, NOW).is_empty());
    let mut numbers = Numbers::new(3);
    for round in 0..200 {
        let mut sent = [Vec::new(), Vec::new()];
        for _ in 0..numbers.size(8) {
            let at = numbers.next() as usize % 2;
            let size = numbers.size(2 * COPY);
            let bytes = numbers.bytes(size);
            let (one, other) = bytes.split_at(size / 2);
            let slices = [one, b"", other].map(IoSlice::new);
            let fd = pairs[at].0.as_fd();
            let count = match numbers.next() % 2 {
                0 => uring.send(fd, &bytes),
                _ => uring.send_vectored(fd, &slices),
            };
            assert_eq!(count.expect("there is room"), size);
            sent[at].extend_from_slice(&bytes);
        }
        assert!(wait(&mut uring, NOW).is_empty());
        for ((_, other), sent) in pairs.iter_mut().zip(&sent) {
            let mut received = vec![0; sent.len()];
            other.read_exact(&mut received).expect("it was sent");
            assert!(received == *sent, "round {round}");
        }
    }
}

const COPY: usize = super::outbox::COPY_BYTES;

#[test]
fn what_finds_no_room_is_sent_later() {
    let Some(mut uring) = uring() else { return };
    let (socket, mut other) = pair();
    uring
        .add(socket.as_fd(), 1, Interest::WRITE)
        .expect("an open socket");
    assert!(wait_one(&mut uring).writable);
    let filled = fill(&socket);
    assert_eq!(uring.send(socket.as_fd(), &[2; 999]).expect("taken"), 999);
    assert!(wait(&mut uring, NOW).is_empty());
    for _ in 0..3 {
        for result in [
            uring.send(socket.as_fd(), b"x"),
            uring.send(socket.as_fd(), &[3; 100_000]),
            uring.send_vectored(socket.as_fd(), &[IoSlice::new(b"x")]),
        ] {
            let error = result.expect_err("it is full");
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        }
        assert!(wait(&mut uring, NOW).is_empty());
    }
    read_filling(&mut other, filled);
    let event = wait_one(&mut uring);
    assert!(event.writable && !event.hangup, "{event:?}");
    assert_eq!(uring.send(socket.as_fd(), b"end").expect("room"), 3);
    uring.remove(socket.as_fd()).expect("it is registered");
    drop(socket);
    wait(&mut uring, NOW);
    let mut rest = Vec::new();
    other.read_to_end(&mut rest).expect("a clean end");
    assert_eq!(rest, [&[2; 999][..], b"end"].concat());
    assert_clean(&mut uring);
}

#[test]
fn a_removed_connection_ends_when_its_last_bytes_were_read() {
    for is_waited in [false, true] {
        let Some(mut uring) = uring() else { return };
        let (socket, mut other) = pair();
        uring
            .add(socket.as_fd(), 1, Interest::READ)
            .expect("an open socket");
        assert!(wait(&mut uring, NOW).is_empty());
        let filled = fill(&socket);
        uring.send(socket.as_fd(), b"+OK\r\n").expect("taken");
        if is_waited {
            assert!(wait(&mut uring, NOW).is_empty());
        }
        uring.remove(socket.as_fd()).expect("it is registered");
        drop(socket);
        for _ in 0..3 {
            assert!(wait(&mut uring, NOW).is_empty());
        }
        assert_eq!(uring.slots.len(), 1);
        read_filling(&mut other, filled);
        assert!(wait(&mut uring, NOW).is_empty());
        let mut rest = Vec::new();
        other.read_to_end(&mut rest).expect("a clean end");
        assert_eq!(rest, b"+OK\r\n");
        assert_clean(&mut uring);
    }
}

#[test]
fn a_peer_that_is_gone_or_never_reads_is_given_up() {
    let Some(mut uring) = uring() else { return };
    let mut others = Vec::new();
    for _ in 0..3 {
        let (socket, other) = pair();
        uring
            .add(socket.as_fd(), 1, Interest::READ)
            .expect("an open socket");
        assert!(wait(&mut uring, NOW).is_empty());
        others.push((fill(&socket), other));
        uring.send(socket.as_fd(), b"x").expect("taken");
        uring.remove(socket.as_fd()).expect("it is registered");
    }
    assert!(wait(&mut uring, NOW).is_empty());
    assert_eq!(uring.slots.len(), 3);
    others.pop();
    assert!(wait(&mut uring, Some(Duration::from_millis(1))).is_empty());
    assert!(wait(&mut uring, NOW).is_empty());
    assert_eq!(uring.slots.len(), 2);
    uring.expire_lingering(Instant::now() + outbox::LINGER);
    assert_clean(&mut uring);
    for (filled, mut other) in others {
        read_filling(&mut other, filled);
        assert_eq!(other.read(&mut [0]).expect("a clean end"), 0);
    }
}

#[test]
fn connections_that_linger_are_bounded() {
    const COUNT: usize = outbox::MAX_LINGERING + 20;
    crate::process::raise_open_files(4_000).expect("the limit can be read");
    let Some(mut uring) = uring() else { return };
    let mut others = Vec::new();
    for _ in 0..COUNT {
        let (socket, other) = pair();
        let least = 1_i32;
        // SAFETY: the pointer and the size describe an integer.
        let result = unsafe {
            let value = (&raw const least).cast();
            let size = size_of_val(&least) as libc::socklen_t;
            libc::setsockopt(
                socket.fd_number(),
                libc::SOL_SOCKET,
                libc::SO_SNDBUF,
                value,
                size,
            )
        };
        assert_eq!(result, 0);
        uring
            .add(socket.as_fd(), 1, Interest::READ)
            .expect("an open socket");
        assert!(wait(&mut uring, NOW).is_empty());
        let filled = fill(&socket);
        uring.send(socket.as_fd(), b"x").expect("taken");
        uring.remove(socket.as_fd()).expect("it is registered");
        others.push((filled, other));
    }
    assert!(wait(&mut uring, NOW).is_empty());
    assert_eq!(uring.slots.len(), outbox::MAX_LINGERING);
    for (at, (filled, other)) in others.iter_mut().enumerate() {
        read_filling(other, *filled);
        assert!(wait(&mut uring, NOW).is_empty());
        let mut rest = Vec::new();
        other.read_to_end(&mut rest).expect("a clean end");
        assert_eq!(rest.len(), usize::from(at < outbox::MAX_LINGERING));
    }
    assert_clean(&mut uring);
}

#[test]
fn a_failed_send_is_a_hangup_and_an_error() {
    let Some(mut uring) = uring() else { return };
    let (socket, other) = pair();
    uring
        .add(socket.as_fd(), 1, Interest::NONE)
        .expect("an open socket");
    assert!(wait(&mut uring, NOW).is_empty());
    drop(other);
    assert_eq!(uring.send(socket.as_fd(), b"lost").expect("taken"), 4);
    assert!(wait_one(&mut uring).hangup);
    for _ in 0..2 {
        let error = uring
            .send(socket.as_fd(), b"x")
            .expect_err("nobody is there");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        assert!(wait_one(&mut uring).hangup);
    }
    uring.remove(socket.as_fd()).expect("it is registered");
    assert_clean(&mut uring);
}

/// A poll that ends when it fires would fire for ever here: the peer has finished sending, which is
/// an event for each.
#[test]
fn waiting_for_room_after_the_peers_end_is_no_busy_loop() {
    let Some(mut uring) = uring() else { return };
    for interest in [Interest::WRITE, Interest::NONE] {
        let (socket, mut client) = pair();
        uring
            .add(socket.as_fd(), 1, interest)
            .expect("an open socket");
        wait(&mut uring, NOW);
        let filled = fill(&socket);
        uring.send(socket.as_fd(), &[2; COPY]).expect("taken");
        client
            .shutdown(std::net::Shutdown::Write)
            .expect("connected");
        assert!(wait(&mut uring, NOW).is_empty());
        let enters = uring.enters;
        assert!(wait(&mut uring, Some(Duration::from_millis(20))).is_empty());
        // One that sleeps, and one for what became of the first wait's requests.
        assert!(uring.enters - enters <= 2, "{}", uring.enters - enters);
        read_filling(&mut client, filled);
        wait(&mut uring, NOW);
        let mut rest = [0; COPY];
        client.read_exact(&mut rest).expect("it was sent");
        assert_eq!(rest, [2; COPY]);
        uring.remove(socket.as_fd()).expect("it is registered");
        drop(socket);
        assert_clean(&mut uring);
    }
}

#[test]
fn what_lies_ahead_is_bounded() {
    const MOST: u16 = MAX_AHEAD + 2 * 33;
    let Some(mut uring) = uring() else { return };
    let (socket, mut client) = tcp_pair();
    let fd = socket.as_fd();
    let total = 20_000_000;
    let sender = std::thread::spawn(move || {
        let mut numbers = Numbers::new(4);
        for _ in 0..total / 100_000 {
            let block = numbers.bytes(100_000);
            client.write_all(&block).expect("somebody reads");
        }
    });
    uring.add(fd, 1, Interest::READ).expect("an open socket");
    let queued = |uring: &Uring| uring.buffers.counts().0;
    // Nobody reads, however often it is reported.
    for _ in 0..200 {
        assert!(wait_one(&mut uring).readable);
        assert!(queued(&uring) <= MOST, "{}", queued(&uring));
    }
    let (mut numbers, mut expected) = (Numbers::new(5), Numbers::new(4));
    let mut received = 0;
    while received < total {
        assert!(wait_one(&mut uring).readable);
        let mut bytes = vec![0; numbers.size(100_000)];
        let count = uring.recv(fd, &mut bytes).expect("bytes");
        assert!(
            bytes[..count]
                .iter()
                .all(|&byte| byte == expected.next() as u8)
        );
        received += count;
        if numbers.next().is_multiple_of(10) {
            uring.modify(fd, 1, Interest::NONE).expect("registered");
            assert!(wait(&mut uring, NOW).is_empty());
            let before = queued(&uring);
            for _ in 0..5 {
                assert!(wait(&mut uring, Some(Duration::from_micros(100))).is_empty());
            }
            // What was under way may have come, and nothing after that.
            assert!(queued(&uring) <= before.max(MOST));
            uring.modify(fd, 1, Interest::READ).expect("registered");
        }
    }
    sender.join().expect("all was sent");
    uring.remove(fd).expect("it is registered");
    assert_clean(&mut uring);
}

#[test]
fn exhausted_buffers_starve_nobody() {
    const CONNECTIONS: usize = 40;
    const BYTES: usize = 100_000;
    for (first, max) in [(1, 1), (1, 8), (2, 4), (16, 16)] {
        if !has_uring() {
            return;
        }
        let mut uring = Uring::with_buffers(first, max).expect("a poller");
        let mut sockets = Vec::new();
        let mut senders = Vec::new();
        for token in 0..CONNECTIONS {
            let (socket, mut client) = tcp_pair();
            uring
                .add(socket.as_fd(), token as u64, Interest::READ)
                .expect("an open socket");
            sockets.push(socket);
            senders.push(std::thread::spawn(move || {
                let bytes = Numbers::new(token as u64).bytes(BYTES);
                client.write_all(&bytes).expect("somebody reads");
                client
            }));
        }
        // Whoever has no buffer is ready all the same, and there are more only when they are all out.
        let mut seen = HashSet::new();
        while seen.len() < CONNECTIONS {
            seen.extend(wait(&mut uring, LONG).iter().map(|event| event.token));
        }
        assert_eq!(uring.buffers.counts().1, max);
        // Half of them are not read before the others are done: they keep their buffers.
        let mut received = vec![Vec::new(); CONNECTIONS];
        for half in [0..CONNECTIONS / 2, CONNECTIONS / 2..CONNECTIONS] {
            while received[half.clone()]
                .iter()
                .any(|bytes| bytes.len() < BYTES)
            {
                for event in wait(&mut uring, LONG) {
                    let at = event.token as usize;
                    if half.contains(&at) && received[at].len() < BYTES {
                        let bytes = &mut received[at];
                        bytes.reserve_exact(1 + at * 1_000);
                        let count = uring.recv_spare(sockets[at].as_fd(), bytes);
                        assert!(count.expect("bytes") > 0);
                    }
                }
            }
        }
        for (seed, (sender, bytes)) in senders.into_iter().zip(received).enumerate() {
            sender.join().expect("it was read");
            assert!(bytes == Numbers::new(seed as u64).bytes(BYTES));
        }
        for socket in &sockets {
            uring.remove(socket.as_fd()).expect("it is registered");
        }
        drop(sockets);
        assert_clean(&mut uring);
    }
}

/// More requests than fit into the queue, and more answers: the data of each, its end, its hangup.
#[test]
fn more_connections_at_once_than_the_queues_hold() {
    const CONNECTIONS: usize = 2_500;
    crate::process::raise_open_files(8_000).expect("the limit can be read");
    let Some(mut uring) = uring() else { return };
    let mut sockets = Vec::new();
    for token in 0..CONNECTIONS as u64 {
        let (socket, mut other) = pair();
        uring
            .add(socket.as_fd(), token, Interest::READ)
            .expect("an open socket");
        other
            .write_all(&token.to_le_bytes())
            .expect("there is room");
        sockets.push(Some(socket));
    }
    let mut left = CONNECTIONS;
    let mut received = vec![0; CONNECTIONS];
    while left > 0 {
        let events = wait(&mut uring, LONG);
        assert!(!events.is_empty() && events.len() <= MAX_EVENTS);
        for event in events {
            let at = event.token as usize;
            let fd = sockets[at].as_ref().expect("it is open").as_fd();
            let mut bytes = [0; 8];
            match uring.recv(fd, &mut bytes).expect("bytes or the end") {
                0 => {
                    assert_eq!(received[at], 1);
                    uring.remove(fd).expect("it is registered");
                    sockets[at] = None;
                    left -= 1;
                }
                count => {
                    assert_eq!((count, u64::from_le_bytes(bytes)), (8, event.token));
                    received[at] += 1;
                }
            }
        }
    }
    assert_clean(&mut uring);
}

/// Between two waits the socket and what the kernel has received ahead are one stream.
#[test]
fn a_receive_sees_what_no_wait_has_told_of() {
    let Some(mut uring) = uring() else { return };
    let (socket, mut client) = tcp_pair();
    let fd = socket.as_fd();
    uring.add(fd, 1, Interest::READ).expect("an open socket");
    let mut numbers = Numbers::new(12);
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    while sent.len() < 1_000_000 {
        let size = numbers.size(60_000);
        let bytes = numbers.bytes(size);
        client.write_all(&bytes).expect("there is room");
        sent.extend_from_slice(&bytes);
        while received.len() < sent.len() {
            if numbers.next().is_multiple_of(2) {
                assert!(wait_one(&mut uring).readable);
            }
            let mut bytes = vec![0; numbers.size(60_000)];
            match uring.recv(fd, &mut bytes) {
                Ok(count) => received.extend_from_slice(&bytes[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        let error = uring.recv(fd, &mut [0]).expect_err("that was all");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(wait(&mut uring, NOW).is_empty());
    }
    assert!(received == sent);
    // However much it was: what is read to its end is received ahead again.
    client.write_all(b"x").expect("there is room");
    assert!(wait_one(&mut uring).readable);
    assert_eq!(uring.buffers.counts().0, 1);
}

#[test]
fn the_thread_of_the_first_wait_keeps_the_poller() {
    let Some(mut uring) = uring() else { return };
    let (socket, mut client) = tcp_pair();
    uring
        .add(socket.as_fd(), 1, Interest::BOTH)
        .expect("an open socket");
    // Before there is such a thread, everything is done at once.
    assert_eq!(uring.send(socket.as_fd(), b"hello").expect("room"), 5);
    let mut greeting = [0; 5];
    client.read_exact(&mut greeting).expect("it was sent");
    client.write_all(b"request").expect("there is room");
    let mut uring = std::thread::spawn(move || {
        let events = wait(&mut uring, LONG);
        assert!(events.iter().any(|event| event.readable), "{events:?}");
        let mut request = [0; 8];
        assert_eq!(uring.recv(socket.as_fd(), &mut request).expect("bytes"), 7);
        uring.send(socket.as_fd(), b"reply").expect("room");
        wait(&mut uring, LONG);
        uring.remove(socket.as_fd()).expect("it is registered");
        uring
    })
    .join()
    .expect("it works there");
    let mut reply = Vec::new();
    uring
        .wait(&mut Vec::new(), NOW, false)
        .expect_err("it belongs to another thread");
    drop(uring);
    client.read_to_end(&mut reply).expect("a clean end");
    assert_eq!(reply, b"reply");
}

#[test]
fn who_gathers_misses_nobody_and_waits_for_nobody_for_long() {
    let Some(mut uring) = uring() else { return };
    let mut peers: Vec<_> = (0..64).map(|_| pair()).collect();
    for (token, (socket, _)) in peers.iter().enumerate() {
        uring
            .add(socket.as_fd(), token as u64, Interest::READ)
            .expect("an open socket");
    }
    let gather = |uring: &mut Uring, timeout| {
        let mut events = Vec::new();
        uring
            .wait(&mut events, timeout, true)
            .expect("an open poller waits");
        events
    };
    let (mut buffer, mut has_gathered) = ([0; 16], false);
    for senders in [64, 1, 3, 64, 0, 5, 64, 64, 2] {
        for (_, client) in &mut peers[..senders] {
            client.write_all(b"x").expect("there is room");
        }
        let mut heard = HashSet::new();
        while heard.len() < senders {
            // Nothing else will happen, so whoever waits for more of them waits in vain.
            has_gathered |= uring.crowd.wanted() > 1;
            for event in gather(&mut uring, LONG) {
                let (socket, _) = &peers[event.token as usize];
                let received = uring.recv(socket.as_fd(), &mut buffer);
                assert_eq!(received.expect("a byte"), 1);
                assert!(heard.insert(event.token));
            }
        }
        let short = Some(Duration::from_millis(2));
        has_gathered |= uring.crowd.wanted() > 1;
        assert!(gather(&mut uring, short).is_empty());
    }
    assert!(has_gathered);
}

#[test]
fn a_listener_of_a_unix_socket_is_readable_too() {
    let Some(mut uring) = uring() else { return };
    let name = format!("ferrite-uring-{}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    let listener = Listener::unix(&path, None, 16).expect("a free path");
    uring
        .add(listener.as_fd(), 3, Interest::READ)
        .expect("an open listener");
    assert!(wait(&mut uring, NOW).is_empty());
    let _client = UnixStream::connect(&path).expect("it listens");
    for _ in 0..3 {
        let event = wait_one(&mut uring);
        assert!(event.readable && !event.hangup, "{event:?}");
    }
    assert!(listener.accept().expect("an open listener").is_some());
    assert!(wait(&mut uring, NOW).is_empty());
    uring.remove(listener.as_fd()).expect("it is registered");
    assert_clean(&mut uring);
}

/// A receive that is just being repeated can't be found by a cancel, which then has to be said
/// again.
#[test]
fn a_flooding_connection_is_gone_when_it_was_removed() {
    if !has_uring() {
        return;
    }
    let mut uring = Uring::with_buffers(4, 4).expect("a poller");
    for _ in 0..20 {
        let (socket, mut client) = tcp_pair();
        let sender = std::thread::spawn(move || while client.write_all(&[0; 200_000]).is_ok() {});
        uring
            .add(socket.as_fd(), 1, Interest::READ)
            .expect("an open socket");
        assert!(wait_one(&mut uring).readable);
        uring.remove(socket.as_fd()).expect("it is registered");
        drop(socket);
        while !sender.is_finished() {
            assert!(wait(&mut uring, Some(Duration::from_millis(1))).is_empty());
        }
        sender.join().expect("it was reset");
        assert_clean(&mut uring);
    }
    // Its buffers are there for others.
    let (socket, mut other) = pair();
    other.write_all(b"x").expect("there is room");
    uring
        .add(socket.as_fd(), 1, Interest::READ)
        .expect("an open socket");
    assert!(wait_one(&mut uring).readable);
    assert_eq!(uring.buffers.counts(), (1, 4));
}
