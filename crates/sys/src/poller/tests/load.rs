//! The poller with many connections, and with peers that send without end or read slowly: each
//! connection gets exactly the bytes that are its own, in order.
//!
//! Sizes and choices come from a generator with a fixed seed; what the threads make of them differs
//! from run to run.

use super::*;
use std::collections::HashMap;

on_each_backend! {
    a_thousand_connections_echo_what_they_are_sent,
    a_flood_waits_while_nobody_reads,
    a_slow_reader_gets_everything_in_order,
}

/// A generator of numbers (xorshift) that gives the same ones in each run.
pub(in crate::poller) struct Numbers(u64);

impl Numbers {
    pub(in crate::poller) fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(in crate::poller) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 1 to `most`; small ones and large ones are as likely.
    pub(in crate::poller) fn size(&mut self, most: usize) -> usize {
        let bound = most >> (self.next() % u64::from(usize::BITS - most.leading_zeros()));
        1 + self.next() as usize % bound
    }

    pub(in crate::poller) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// The connection that comes next, and that comes for sure.
pub(super) fn accept(listener: &Listener) -> Socket {
    loop {
        if let Some(socket) = listener.accept().expect("an open listener") {
            return socket;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// One connection of a server that echoes.
pub(super) struct Echo {
    socket: Socket,
    backlog: Vec<u8>,
    interest: Interest,
}

/// A server that reads in pieces of random size and, as the worker does, reads on only when its
/// replies are gone.
pub(super) struct Server {
    pub(super) poller: Poller,
    pub(super) numbers: Numbers,
    pub(super) connections: HashMap<u64, Echo>,
    pub(super) last_token: u64,
}

impl Server {
    pub(super) fn new(backend: Backend) -> Server {
        Server {
            poller: poller(backend),
            numbers: Numbers::new(1),
            connections: HashMap::new(),
            last_token: 0,
        }
    }

    pub(super) fn add(&mut self, socket: Socket) {
        self.last_token += 1;
        let (token, interest) = (self.last_token, Interest::READ);
        self.poller
            .add(socket.as_fd(), token, interest)
            .expect("a new descriptor");
        let backlog = Vec::new();
        self.connections.insert(
            token,
            Echo {
                socket,
                backlog,
                interest,
            },
        );
    }

    pub(super) fn close(&mut self, token: u64) {
        if let Some(echo) = self.connections.remove(&token) {
            self.poller
                .remove(echo.socket.as_fd())
                .expect("it is registered");
        }
    }

    pub(super) fn handle(&mut self, event: Event) {
        let Some(echo) = self.connections.get_mut(&event.token) else {
            return;
        };
        if event.readable || event.hangup {
            let mut piece = vec![0; self.numbers.size(40_000)];
            match self.poller.recv(echo.socket.as_fd(), &mut piece) {
                Ok(0) => return self.close(event.token),
                Ok(count) => echo.backlog.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return self.close(event.token),
            }
        }
        self.flush(event.token);
    }

    /// Sends what is there, sometimes in slices, and waits for room or for more.
    fn flush(&mut self, token: u64) {
        let Some(echo) = self.connections.get_mut(&token) else {
            return;
        };
        let fd = echo.socket.as_fd();
        while !echo.backlog.is_empty() {
            let result = if self.numbers.next().is_multiple_of(2) {
                self.poller.send(fd, &echo.backlog)
            } else {
                let (one, other) = echo.backlog.split_at(echo.backlog.len() / 2);
                let slices = [IoSlice::new(one), IoSlice::new(other)];
                self.poller.send_vectored(fd, &slices)
            };
            match result {
                Ok(count) => drop(echo.backlog.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return self.close(token),
            }
        }
        let wanted = match echo.backlog.is_empty() {
            true => Interest::READ,
            false => Interest::WRITE,
        };
        if wanted != echo.interest {
            echo.interest = wanted;
            self.poller
                .modify(fd, token, wanted)
                .expect("it is registered");
        }
    }

    /// Echoes until all connections have ended.
    fn run(&mut self) {
        let mut events = Vec::new();
        while !self.connections.is_empty() {
            self.poller
                .wait(&mut events, LONG)
                .expect("an open poller waits");
            assert!(!events.is_empty(), "{} are left", self.connections.len());
            for event in std::mem::take(&mut events) {
                self.handle(event);
            }
        }
    }
}

fn a_thousand_connections_echo_what_they_are_sent(backend: Backend) {
    const THREADS: usize = 4;
    const EACH: usize = 250;
    crate::process::raise_open_files(2_600).expect("the limit can be read");
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("valid"), 16).expect("a free port");
    let address = listener.local_addr().expect("TCP");
    let mut server = Server::new(backend);
    let mut threads = Vec::new();
    for seed in 0..THREADS {
        let mut clients = Vec::new();
        for _ in 0..EACH {
            clients.push(TcpStream::connect(address).expect("it listens"));
            server.add(accept(&listener));
        }
        threads.push(std::thread::spawn(move || converse(&mut clients, seed)));
    }
    server.run();
    for thread in threads {
        thread.join().expect("all echoes are right");
    }
}

/// Rounds in which every client sends something and then gets it back.
fn converse(clients: &mut [TcpStream], seed: usize) {
    let mut numbers = Numbers::new(100 + seed as u64);
    for _ in 0..6 {
        let messages: Vec<_> = clients
            .iter()
            .map(|_| {
                let size = numbers.size(30_000);
                numbers.bytes(size)
            })
            .collect();
        for (client, message) in clients.iter_mut().zip(&messages) {
            let (one, other) = message.split_at(message.len() / 3);
            client.write_all(one).expect("the server reads");
            client.write_all(other).expect("the server reads");
        }
        for (client, message) in clients.iter_mut().zip(&messages) {
            let mut echo = vec![0; message.len()];
            client.read_exact(&mut echo).expect("the server echoes");
            assert!(echo == *message);
        }
    }
}

/// A sender that never stops, and a receiver that looks away again and again.
fn a_flood_waits_while_nobody_reads(backend: Backend) {
    const TOTAL: usize = 30_000_000;
    let mut poller = poller(backend);
    let (socket, other) = tcp_pair();
    let sender = std::thread::spawn(move || flood(other, TOTAL));
    let fd = socket.as_fd();
    poller.add(fd, 1, Interest::READ).expect("an open socket");
    let mut numbers = Numbers::new(5);
    let (mut received, mut expected) = (Vec::new(), Numbers::new(6));
    let mut total = 0;
    while total < TOTAL {
        let event = wait_one(&mut poller);
        assert!(event.readable, "{event:?}");
        received.clear();
        received.reserve_exact(numbers.size(200_000));
        total += poller
            .recv_spare(fd, &mut received)
            .expect("bytes are there");
        assert!(received.iter().all(|&byte| byte == expected.next() as u8));
        if numbers.next().is_multiple_of(4) {
            poller
                .modify(fd, 1, Interest::NONE)
                .expect("it is registered");
            for _ in 0..numbers.next() % 4 {
                let events = wait(&mut poller, Some(Duration::from_micros(200)));
                assert!(events.is_empty(), "{events:?}");
            }
            poller
                .modify(fd, 1, Interest::READ)
                .expect("it is registered");
        }
    }
    assert_eq!(total, TOTAL);
    drop(sender.join().expect("all of it was sent"));
    // The end of the stream makes no hangup, as this side is open.
    let event = wait_one(&mut poller);
    assert!(event.readable && !event.hangup, "{event:?}");
    assert_eq!(poller.recv(fd, &mut [0; 8]).expect("the end"), 0);
}

/// Gives the stream back: once it is closed, a kernel with too many connections in TIME_WAIT answers
/// whatever still comes with a reset.
fn flood(mut stream: TcpStream, total: usize) -> TcpStream {
    let mut numbers = Numbers::new(6);
    let mut left = total;
    while left > 0 {
        let block = numbers.bytes(left.min(100_000));
        stream.write_all(&block).expect("somebody reads");
        left -= block.len();
    }
    stream
}

/// Small sends and large ones to a reader that is slower, on both kinds of socket.
fn a_slow_reader_gets_everything_in_order(backend: Backend) {
    let (socket, other) = tcp_pair();
    feed_slowly(backend, socket, other);
    let (socket, other) = pair();
    feed_slowly(backend, socket, other);
}

fn feed_slowly(backend: Backend, socket: Socket, mut other: impl Read + Send + 'static) {
    const TOTAL: usize = 12_000_000;
    let reader = std::thread::spawn(move || {
        let (mut numbers, mut expected) = (Numbers::new(7), Numbers::new(8));
        let mut buffer = vec![0; 300_000];
        let mut total = 0;
        loop {
            let room = numbers.size(300_000);
            let count = other.read(&mut buffer[..room]).expect("a clean end");
            if count == 0 {
                return total;
            }
            total += count;
            let mut bytes = buffer[..count].iter();
            assert!(bytes.all(|&byte| byte == expected.next() as u8));
            if numbers.next().is_multiple_of(16) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let mut poller = poller(backend);
    let fd = socket.as_fd();
    poller.add(fd, 1, Interest::WRITE).expect("an open socket");
    let (mut numbers, mut source) = (Numbers::new(9), Numbers::new(8));
    let (mut sent, mut waiting) = (0, Vec::new());
    while sent < TOTAL {
        let event = wait_one(&mut poller);
        assert!(event.writable && !event.hangup, "{event:?}");
        for _ in 0..numbers.size(20) {
            if waiting.is_empty() {
                let size = numbers.size(30_000).min(TOTAL - sent);
                waiting = source.bytes(size);
            }
            match poller.send(fd, &waiting) {
                Ok(count) => {
                    sent += count;
                    waiting.drain(..count);
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
    }
    assert_eq!(sent, TOTAL);
    // With what it has taken still on its way.
    poller.remove(fd).expect("it is registered");
    drop(socket);
    let end = Instant::now() + Duration::from_secs(60);
    while !reader.is_finished() {
        assert!(Instant::now() < end, "the reader waits for ever");
        wait(&mut poller, Some(Duration::from_millis(1)));
    }
    assert_eq!(reader.join().expect("all of it came in order"), TOTAL);
}
