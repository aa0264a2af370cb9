//! The poller against the kernel: real sockets, every promise of its documentation, on each backend of
//! this system.
//!
//! Nothing here asserts how fast something is. A wait for what must happen has a limit only so that
//! a broken poller fails instead of hanging.

use super::*;
use crate::socket::{Listener, Socket};
use std::collections::HashSet;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

mod backends;
mod churn;
mod files;
pub(super) mod load;

#[cfg(target_os = "linux")]
pub(super) use backends::has_uring;
pub(super) use backends::{on_backends_of_linux, on_each_backend};
use files::files_are_read_while_the_poller_waits;

on_each_backend! {
    what_is_not_read_is_reported_again,
    events_are_cleared_before_each_wait,
    interest_is_changed_suspended_and_removed,
    registering_twice_or_not_at_all_is_an_error,
    a_peer_that_has_finished_sending_still_gets_replies,
    what_came_before_a_hangup_can_be_read,
    a_reset_connection_is_a_hangup_and_an_error,
    a_full_socket_takes_a_part_and_says_when_there_is_room,
    a_full_socket_is_not_writable,
    spare_capacity_is_filled_and_nothing_else,
    slices_arrive_in_order_and_the_ones_too_many_stay,
    slices_are_taken_in_part_when_the_socket_is_full,
    a_wait_is_not_shorter_than_asked_for,
    the_longest_timeouts_are_accepted,
    a_listener_is_readable_while_connections_wait,
    a_thousand_connections_each_get_their_own_bytes,
    files_are_read_while_the_poller_waits,
    an_end_with_nothing_before_it_is_reported_to_those_who_asked,
}

on_backends_of_linux! {
    a_hangup_is_reported_to_those_who_want_nothing,
    an_end_behind_unread_bytes_is_reported_to_those_who_asked,
    an_interrupted_wait_is_one_without_events,
}

/// How long to wait for what must happen.
const LONG: Option<Duration> = Some(Duration::from_secs(60));
const NOW: Option<Duration> = Some(Duration::ZERO);

fn poller(backend: Backend) -> Poller {
    Poller::new(backend).expect("a poller")
}

fn wait(poller: &mut Poller, timeout: Option<Duration>) -> Vec<Event> {
    let mut events = Vec::new();
    poller
        .wait(&mut events, timeout)
        .expect("an open poller waits");
    events
}

/// Waits for the one event that must come.
fn wait_one(poller: &mut Poller) -> Event {
    let events = wait(poller, LONG);
    assert_eq!(events.len(), 1, "{events:?}");
    events[0]
}

/// A unix socket pair: the end to be polled, and the other, blocking.
fn pair() -> (Socket, UnixStream) {
    let (one, other) = UnixStream::pair().expect("a socket pair");
    (Socket::from_unix(one).expect("connected"), other)
}

/// A TCP connection: the accepted end, and the client, blocking.
fn tcp_pair() -> (Socket, TcpStream) {
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("valid"), 16).expect("a free port");
    let client = TcpStream::connect(listener.local_addr().expect("TCP")).expect("it listens");
    let server = listener
        .accept()
        .expect("an open listener")
        .expect("a client is there");
    (server, client)
}

#[cfg(target_os = "linux")]
#[test]
fn the_backends_of_linux_have_names() {
    assert_eq!(poller(Backend::Auto).name(), "epoll");
    assert_eq!(poller(Backend::Epoll).name(), "epoll");
    assert!(!has_uring() || poller(Backend::Uring).name() == "io_uring");
}

#[test]
fn each_system_has_the_portable_backend() {
    assert_eq!(poller(Backend::Portable).name(), "portable");
    #[cfg(not(target_os = "linux"))]
    for backend in [Backend::Epoll, Backend::Uring] {
        assert_eq!(poller(Backend::Auto).name(), "portable");
        let error = Poller::new(backend).expect_err("Linux has it");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

fn what_is_not_read_is_reported_again(backend: Backend) {
    let (mut poller, (socket, mut other)) = (poller(backend), pair());
    poller
        .add(socket.as_fd(), 7, Interest::READ)
        .expect("an open socket");
    assert!(wait(&mut poller, NOW).is_empty());
    other.write_all(b"hello").expect("there is room");
    for _ in 0..3 {
        let event = wait_one(&mut poller);
        assert_eq!(
            event,
            Event {
                token: 7,
                readable: true,
                writable: false,
                hangup: false,
                finished: false,
            }
        );
    }
    let mut buffer = [0; 3];
    assert_eq!(
        poller
            .recv(socket.as_fd(), &mut buffer)
            .expect("bytes are there"),
        3
    );
    assert_eq!(wait_one(&mut poller).token, 7);
    assert_eq!(
        poller
            .recv(socket.as_fd(), &mut buffer)
            .expect("bytes are there"),
        2
    );
    assert!(wait(&mut poller, NOW).is_empty());
    let error = poller
        .recv(socket.as_fd(), &mut buffer)
        .expect_err("nothing is there");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

fn events_are_cleared_before_each_wait(backend: Backend) {
    let (mut poller, (socket, _other)) = (poller(backend), pair());
    poller
        .add(socket.as_fd(), 1, Interest::WRITE)
        .expect("an open socket");
    let mut events = Vec::with_capacity(MAX_EVENTS);
    poller.wait(&mut events, NOW).expect("an open poller waits");
    poller.wait(&mut events, NOW).expect("an open poller waits");
    assert_eq!(events.len(), 1);
    poller.remove(socket.as_fd()).expect("it is registered");
    poller.wait(&mut events, NOW).expect("an open poller waits");
    assert!(events.is_empty());
}

fn interest_is_changed_suspended_and_removed(backend: Backend) {
    let (mut poller, (socket, mut other)) = (poller(backend), pair());
    other.write_all(b"x").expect("there is room");
    poller
        .add(socket.as_fd(), 1, Interest::NONE)
        .expect("an open socket");
    assert!(wait(&mut poller, NOW).is_empty());
    for (token, interest) in [
        (2, Interest::READ),
        (3, Interest::WRITE),
        (u64::MAX, Interest::BOTH),
    ] {
        poller
            .modify(socket.as_fd(), token, interest)
            .expect("it is registered");
        let event = wait_one(&mut poller);
        assert_eq!((event.token, event.hangup), (token, false));
        assert_eq!(
            (event.readable, event.writable),
            (interest.readable, interest.writable)
        );
    }
    poller
        .modify(socket.as_fd(), 4, Interest::NONE)
        .expect("it is registered");
    assert!(wait(&mut poller, NOW).is_empty());
    poller
        .modify(socket.as_fd(), 5, Interest::READ)
        .expect("it is registered");
    poller.remove(socket.as_fd()).expect("it is registered");
    assert!(wait(&mut poller, NOW).is_empty());
    poller
        .add(socket.as_fd(), 6, Interest::READ)
        .expect("it was removed");
    // What came before the removal may be lost.
    other.write_all(b"y").expect("there is room");
    assert_eq!(wait_one(&mut poller).token, 6);
}

fn registering_twice_or_not_at_all_is_an_error(backend: Backend) {
    let (mut poller, (socket, _other)) = (poller(backend), pair());
    let error = poller
        .modify(socket.as_fd(), 1, Interest::READ)
        .expect_err("it is not registered");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = poller
        .remove(socket.as_fd())
        .expect_err("it is not registered");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    poller
        .add(socket.as_fd(), 1, Interest::READ)
        .expect("an open socket");
    let error = poller
        .add(socket.as_fd(), 2, Interest::READ)
        .expect_err("it is registered");
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

#[test]
fn a_closed_descriptor_is_forgotten() {
    let (mut poller, (socket, mut other)) = (poller(Backend::Auto), pair());
    poller
        .add(socket.as_fd(), 1, Interest::BOTH)
        .expect("an open socket");
    drop(socket);
    assert!(wait(&mut poller, NOW).is_empty());
    assert_eq!(other.read(&mut [0]).expect("a clean end"), 0);
}

fn a_peer_that_has_finished_sending_still_gets_replies(backend: Backend) {
    let (mut poller, (server, mut client)) = (poller(backend), tcp_pair());
    poller
        .add(server.as_fd(), 1, Interest::READ)
        .expect("an open socket");
    client.write_all(b"last words").expect("there is room");
    client
        .shutdown(std::net::Shutdown::Write)
        .expect("connected");
    let mut received = Vec::with_capacity(64);
    loop {
        let event = wait_one(&mut poller);
        assert!(event.readable && !event.hangup, "{event:?}");
        if poller
            .recv_spare(server.as_fd(), &mut received)
            .expect("bytes or the end")
            == 0
        {
            break;
        }
    }
    assert_eq!(received, b"last words");
    // The end is reported as often as it is looked for.
    assert!(wait_one(&mut poller).readable);
    assert_eq!(
        poller
            .send(server.as_fd(), b"reply")
            .expect("it still listens"),
        5
    );
    poller.remove(server.as_fd()).expect("it is registered");
    drop(server);
    assert!(wait(&mut poller, NOW).is_empty());
    let mut reply = Vec::new();
    client.read_to_end(&mut reply).expect("a clean end");
    assert_eq!(reply, b"reply");
}

fn what_came_before_a_hangup_can_be_read(backend: Backend) {
    let (mut poller, (socket, mut other)) = (poller(backend), pair());
    poller
        .add(socket.as_fd(), 1, Interest::BOTH)
        .expect("an open socket");
    other.write_all(b"last words").expect("there is room");
    drop(other);
    let event = wait_one(&mut poller);
    assert!(event.readable && event.hangup, "{event:?}");
    let mut buffer = [0; 64];
    assert_eq!(
        poller
            .recv(socket.as_fd(), &mut buffer)
            .expect("bytes are there"),
        10
    );
    assert_eq!(
        poller.recv(socket.as_fd(), &mut buffer).expect("the end"),
        0
    );
    let error = poller
        .send(socket.as_fd(), b"x")
        .expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    let error = poller
        .send_vectored(socket.as_fd(), &[IoSlice::new(b"x")])
        .expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

#[cfg(target_os = "linux")]
fn a_hangup_is_reported_to_those_who_want_nothing(backend: Backend) {
    let (mut poller, (socket, other)) = (poller(backend), pair());
    poller
        .add(socket.as_fd(), 1, Interest::NONE)
        .expect("an open socket");
    assert!(wait(&mut poller, NOW).is_empty());
    drop(other);
    assert_eq!(
        wait_one(&mut poller),
        Event {
            token: 1,
            readable: false,
            writable: false,
            hangup: true,
            finished: false,
        }
    );
}

#[cfg(target_os = "linux")]
fn an_end_behind_unread_bytes_is_reported_to_those_who_asked(backend: Backend) {
    for is_read_first in [false, true] {
        let (mut poller, (socket, mut other)) = (poller(backend), tcp_pair());
        let fd = socket.as_fd();
        poller.add(fd, 1, Interest::READ).expect("an open socket");
        other.write_all(b"first").expect("there is room");
        if is_read_first {
            wait_one(&mut poller);
            let count = poller.recv(fd, &mut [0; 64]).expect("bytes are there");
            assert_eq!(count, 5);
        }
        poller.modify(fd, 1, Interest::END).expect("registered");
        other.write_all(b"never read").expect("there is room");
        assert!(wait(&mut poller, NOW).is_empty());
        other
            .shutdown(std::net::Shutdown::Write)
            .expect("connected");
        let ended = Event {
            token: 1,
            readable: false,
            writable: false,
            hangup: false,
            finished: true,
        };
        assert_eq!(wait_one(&mut poller), ended);
        // To those who don't ask it is the end of a stream, behind everything that came before.
        poller.modify(fd, 1, Interest::NONE).expect("registered");
        assert!(wait(&mut poller, NOW).is_empty());
        poller.modify(fd, 1, Interest::READ).expect("registered");
        let event = wait_one(&mut poller);
        assert!(event.readable && !event.hangup, "{event:?}");
    }
}

fn an_end_with_nothing_before_it_is_reported_to_those_who_asked(backend: Backend) {
    let (mut poller, (socket, other)) = (poller(backend), tcp_pair());
    poller
        .add(socket.as_fd(), 1, Interest::END)
        .expect("an open socket");
    assert!(wait(&mut poller, NOW).is_empty());
    other
        .shutdown(std::net::Shutdown::Write)
        .expect("connected");
    let event = wait_one(&mut poller);
    assert!(event.finished && !event.readable, "{event:?}");
    poller
        .modify(socket.as_fd(), 1, Interest::NONE)
        .expect("registered");
    assert!(wait(&mut poller, NOW).is_empty());
}

fn a_reset_connection_is_a_hangup_and_an_error(backend: Backend) {
    let (mut poller, (server, mut client)) = (poller(backend), tcp_pair());
    poller
        .add(server.as_fd(), 1, Interest::BOTH)
        .expect("an open socket");
    // Closing with bytes unread makes the kernel reset the connection.
    poller
        .send(server.as_fd(), b"unread")
        .expect("there is room");
    assert!(wait_one(&mut poller).writable);
    client.peek(&mut [0]).expect("bytes are there");
    drop(client);
    loop {
        let event = wait_one(&mut poller);
        if event.hangup {
            break;
        }
        assert!(event.writable && !event.readable, "{event:?}");
    }
    let error = poller
        .recv(server.as_fd(), &mut [0; 8])
        .expect_err("it is broken");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);

    let (server, moved) = tcp_pair();
    client = moved;
    server.shutdown();
    drop(client);
    poller
        .add(server.as_fd(), 2, Interest::READ)
        .expect("an open socket");
    while !wait(&mut poller, LONG)
        .iter()
        .any(|event| event.token == 2 && event.hangup)
    {}
}

fn a_full_socket_takes_a_part_and_says_when_there_is_room(backend: Backend) {
    let (mut poller, (socket, mut other)) = (poller(backend), pair());
    let message: Vec<u8> = (0..4_000_000_u32)
        .map(|index| (index % 251) as u8)
        .collect();
    poller
        .add(socket.as_fd(), 1, Interest::WRITE)
        .expect("an open socket");
    let reader = std::thread::spawn({
        let length = message.len();
        move || {
            let mut received = vec![0; length];
            other.read_exact(&mut received).expect("all of it comes");
            received
        }
    });
    let (mut sent, mut partial_sends) = (0, 0);
    while sent < message.len() {
        match poller.send(socket.as_fd(), &message[sent..]) {
            Ok(count) => {
                partial_sends += usize::from(sent + count < message.len());
                sent += count;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                assert!(wait_one(&mut poller).writable);
            }
        }
    }
    assert!(partial_sends > 0, "4 MB fitted into one send");
    assert!(reader.join().expect("the reader ends") == message);
}

fn a_full_socket_is_not_writable(backend: Backend) {
    let (mut poller, (socket, mut other)) = (poller(backend), pair());
    poller
        .add(socket.as_fd(), 1, Interest::WRITE)
        .expect("an open socket");
    // Too long to be taken before there is room for it.
    let block = [1; 64 * 1024];
    let mut sent = 0;
    let error = loop {
        match poller.send(socket.as_fd(), &block) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(wait(&mut poller, NOW).is_empty());
    let mut received = vec![0; sent];
    other.read_exact(&mut received).expect("all of it is there");
    assert!(wait_one(&mut poller).writable);
}

fn spare_capacity_is_filled_and_nothing_else(backend: Backend) {
    let (mut poller, (socket, mut other)) = (poller(backend), pair());
    other.write_all(b"0123456789").expect("there is room");
    let mut buffer = Vec::with_capacity(8);
    buffer.extend_from_slice(b"head");
    let (capacity, address) = (buffer.capacity(), buffer.as_ptr());
    let count = poller
        .recv_spare(socket.as_fd(), &mut buffer)
        .expect("bytes are there");
    assert_eq!(count, capacity - 4);
    assert_eq!(buffer, &b"head0123456789"[..capacity]);
    assert_eq!((buffer.capacity(), buffer.as_ptr()), (capacity, address));

    let mut rest = Vec::with_capacity(100);
    let left = poller
        .recv_spare(socket.as_fd(), &mut rest)
        .expect("bytes are there");
    assert_eq!(rest, &b"0123456789"[10 - left..]);
    let error = poller
        .recv_spare(socket.as_fd(), &mut rest)
        .expect_err("nothing is there");
    assert_eq!((error.kind(), rest.len()), (ErrorKind::WouldBlock, left));
    drop(other);
    assert_eq!(
        poller
            .recv_spare(socket.as_fd(), &mut rest)
            .expect("the end"),
        0
    );
    assert_eq!(rest.len(), left);
}

#[test]
#[should_panic(expected = "a receive needs room")]
fn a_receive_without_room_is_a_mistake() {
    let (socket, _other) = pair();
    let _ = poller(Backend::Auto).recv_spare(socket.as_fd(), &mut Vec::new());
}

fn slices_arrive_in_order_and_the_ones_too_many_stay(backend: Backend) {
    let (mut poller, (socket, mut other)) = (poller(backend), pair());
    assert_eq!(
        poller
            .send_vectored(socket.as_fd(), &[])
            .expect("nothing is nothing"),
        0
    );
    let parts: [&[u8]; 4] = [b"one", b"", b"two", b"three"];
    let slices = parts.map(IoSlice::new);
    assert_eq!(
        poller
            .send_vectored(socket.as_fd(), &slices)
            .expect("there is room"),
        11
    );

    let bytes: Vec<u8> = (0..MAX_SLICES + 100)
        .map(|index| (index % 256) as u8)
        .collect();
    let slices: Vec<IoSlice<'_>> = bytes.chunks(1).map(IoSlice::new).collect();
    assert_eq!(
        poller
            .send_vectored(socket.as_fd(), &slices)
            .expect("there is room"),
        MAX_SLICES
    );
    drop(socket);
    let mut received = Vec::new();
    other.read_to_end(&mut received).expect("a clean end");
    assert_eq!(received, [b"onetwothree", &bytes[..MAX_SLICES]].concat());
}

fn slices_are_taken_in_part_when_the_socket_is_full(backend: Backend) {
    let (mut poller, (socket, mut other)) = (poller(backend), pair());
    let block = vec![3; 1_000_000];
    let slices = [&block[..], &block[..], &block[..], &block[..]].map(IoSlice::new);
    let sent = poller
        .send_vectored(socket.as_fd(), &slices)
        .expect("some of it fits");
    assert!(sent > 0 && sent < 4_000_000, "{sent}");
    drop(socket);
    let mut received = Vec::new();
    other.read_to_end(&mut received).expect("a clean end");
    assert_eq!(received.len(), sent);
}

fn a_wait_is_not_shorter_than_asked_for(backend: Backend) {
    let mut poller = poller(backend);
    for timeout in [0, 1, 999, 1_000, 1_001, 5_500].map(Duration::from_micros) {
        let start = Instant::now();
        assert!(wait(&mut poller, Some(timeout)).is_empty());
        assert!(start.elapsed() >= timeout);
    }
}

fn the_longest_timeouts_are_accepted(backend: Backend) {
    let (mut poller, (socket, _other)) = (poller(backend), pair());
    poller
        .add(socket.as_fd(), 1, Interest::WRITE)
        .expect("an open socket");
    for timeout in [
        Duration::MAX,
        Duration::from_secs(u64::MAX),
        Duration::new(1 << 40, 1),
        Duration::new(1, 1),
    ] {
        assert_eq!(wait(&mut poller, Some(timeout)).len(), 1);
    }
    assert_eq!(wait(&mut poller, None).len(), 1);
}

fn an_interrupted_wait_is_one_without_events(backend: Backend) {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the structure is zeroed, which is valid, and the handler does nothing, which a
    // handler may. SIGWINCH is otherwise ignored, so nobody else in this process depends on it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(libc::c_int) = nothing;
        action.sa_sigaction = handler as libc::sighandler_t;
        assert_eq!(
            libc::sigaction(libc::SIGWINCH, &action, std::ptr::null_mut()),
            0
        );
    }
    // SAFETY: the call takes nothing and returns the name of this thread.
    let waiting = unsafe { libc::pthread_self() } as usize;
    let is_over = Arc::new(AtomicBool::new(false));
    let interrupter = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            while !is_over.load(Ordering::Acquire) {
                // SAFETY: the thread waits for this one to end, so its name is valid.
                unsafe { libc::pthread_kill(waiting as libc::pthread_t, libc::SIGWINCH) };
                std::thread::yield_now();
            }
        }
    });
    // Nothing is registered: only a signal can end these.
    for timeout in [None, LONG, Some(Duration::new(60, 1))] {
        assert!(wait(&mut poller(backend), timeout).is_empty());
    }
    is_over.store(true, Ordering::Release);
    interrupter.join().expect("the interrupter ends");
}

fn a_listener_is_readable_while_connections_wait(backend: Backend) {
    let mut poller = poller(backend);
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("valid"), 16).expect("a free port");
    poller
        .add(listener.as_fd(), 5, Interest::READ)
        .expect("an open listener");
    assert!(wait(&mut poller, NOW).is_empty());
    let _client = TcpStream::connect(listener.local_addr().expect("TCP")).expect("it listens");
    assert_eq!(
        wait_one(&mut poller),
        Event {
            token: 5,
            readable: true,
            writable: false,
            hangup: false,
            finished: false,
        }
    );
    assert!(listener.accept().expect("an open listener").is_some());
    assert!(wait(&mut poller, NOW).is_empty());
}

fn a_thousand_connections_each_get_their_own_bytes(backend: Backend) {
    const CONNECTIONS: u64 = 1_000;
    let open_files =
        crate::process::raise_open_files(2 * CONNECTIONS + 500).expect("the limit can be read");
    assert!(
        open_files >= 2 * CONNECTIONS + 100,
        "this test needs 2100 descriptors, the limit is {open_files}"
    );
    let mut poller = poller(backend);
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("valid"), 128).expect("a free port");
    let bound = listener.local_addr().expect("TCP");
    let (mut clients, mut servers) = (Vec::new(), Vec::new());
    for token in 0..CONNECTIONS {
        let mut client = TcpStream::connect(bound).expect("it listens");
        client
            .write_all(&token.to_le_bytes())
            .expect("there is room");
        clients.push(client);
        let server = listener
            .accept()
            .expect("an open listener")
            .expect("a client is there");
        poller
            .add(server.as_fd(), token, Interest::READ)
            .expect("an open socket");
        servers.push(server);
    }
    let descriptors: HashSet<_> = servers.iter().map(Socket::fd_number).collect();
    assert_eq!(descriptors.len(), servers.len());

    let mut is_answered = vec![false; servers.len()];
    let mut left = servers.len();
    let mut events = Vec::with_capacity(MAX_EVENTS);
    while left > 0 {
        poller
            .wait(&mut events, LONG)
            .expect("an open poller waits");
        assert!(!events.is_empty() && events.len() <= MAX_EVENTS);
        for event in &events {
            let index = event.token as usize;
            let mut bytes = [0; 8];
            let fd = servers[index].as_fd();
            assert_eq!(poller.recv(fd, &mut bytes).expect("bytes are there"), 8);
            assert_eq!(u64::from_le_bytes(bytes), event.token);
            assert_eq!(poller.send(fd, &bytes).expect("there is room"), 8);
            assert!(!std::mem::replace(&mut is_answered[index], true));
            left -= 1;
        }
    }
    assert_eq!(events.capacity(), MAX_EVENTS);
    assert!(wait(&mut poller, NOW).is_empty());
    for (token, client) in clients.iter_mut().enumerate() {
        let mut bytes = [0; 8];
        client.read_exact(&mut bytes).expect("the answer comes");
        assert_eq!(u64::from_le_bytes(bytes), token as u64);
    }
    drop(clients);
    let mut ended = HashSet::new();
    while ended.len() < servers.len() {
        for event in wait(&mut poller, LONG) {
            let fd = servers[event.token as usize].as_fd();
            assert_eq!(poller.recv(fd, &mut [0; 8]).expect("a clean end"), 0);
            poller.remove(fd).expect("it is registered");
            assert!(ended.insert(event.token));
        }
    }
}

#[test]
fn a_poller_and_its_wakers_go_to_other_threads() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Poller>();
    is_send::<Socket>();
    is_send::<Listener>();
    is_send::<Waker>();
    is_sync::<Waker>();
    let (socket, _other) = pair();
    assert!(socket.as_fd().as_raw_fd() >= 0);
}
