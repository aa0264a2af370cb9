//! The poller with many connections, and with peers that behave badly: whatever happens, every
//! connection gets exactly the bytes that are its own, in order, and ends when it should.
//!
//! Sizes and choices come from a generator with a fixed seed; what the threads make of them differs
//! from run to run.

use super::*;
use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

on_each_backend! {
    a_thousand_connections_echo_what_they_are_sent,
    a_reply_right_before_the_close_arrives,
    reused_descriptors_get_nothing_of_their_predecessors,
    a_flood_waits_while_nobody_reads,
    a_slow_reader_gets_everything_in_order,
    an_end_right_behind_the_last_bytes_is_noticed,
}

const WAKER: u64 = u64::MAX;

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

fn listen() -> (Listener, SocketAddr) {
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("valid"), 1024).expect("a free port");
    let address = listener.local_addr().expect("TCP");
    (listener, address)
}

fn accept(listener: &Listener) -> Socket {
    loop {
        if let Some(socket) = listener.accept().expect("an open listener") {
            return socket;
        }
        std::thread::yield_now();
    }
}

/// One connection of a server that echoes.
struct Echo {
    socket: Socket,
    backlog: Vec<u8>,
    interest: Interest,
}

/// A server that reads in pieces of random size and, as the worker does, reads on only when its
/// replies are gone.
struct Server {
    poller: Poller,
    numbers: Numbers,
    connections: HashMap<u64, Echo>,
    last_token: u64,
}

impl Server {
    fn new(backend: Backend) -> Server {
        Server {
            poller: poller(backend),
            numbers: Numbers::new(1),
            connections: HashMap::new(),
            last_token: 0,
        }
    }

    fn add(&mut self, socket: Socket) {
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

    fn close(&mut self, token: u64) {
        if let Some(echo) = self.connections.remove(&token) {
            self.poller
                .remove(echo.socket.as_fd())
                .expect("it is registered");
        }
    }

    fn handle(&mut self, event: Event) {
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
    let (listener, address) = listen();
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

/// Accepts in a thread of its own, as the server does: a number that was just closed is then given
/// out again at any moment.
struct Acceptor {
    sockets: Receiver<Socket>,
    waker: Arc<Waker>,
    thread: JoinHandle<()>,
}

impl Acceptor {
    fn new(listener: Listener, count: usize) -> Acceptor {
        let (sender, sockets) = channel();
        let waker = Arc::new(Waker::new().expect("a waker"));
        let thread = std::thread::spawn({
            let waker = Arc::clone(&waker);
            move || {
                for _ in 0..count {
                    sender.send(accept(&listener)).expect("somebody takes it");
                    waker.wake();
                }
            }
        });
        Acceptor {
            sockets,
            waker,
            thread,
        }
    }
}

/// What a client of these is answered.
fn reply_to(request: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(request);
    let size = numbers.size(50_000);
    numbers.bytes(size)
}

/// Each request is answered, and its connection closed with that: the reply arrives whole, however
/// long the client takes to read it.
fn a_reply_right_before_the_close_arrives(backend: Backend) {
    const THREADS: u64 = 4;
    const EACH: u64 = 250;
    let (listener, address) = listen();
    let acceptor = Acceptor::new(listener, (THREADS * EACH) as usize);
    let clients: Vec<_> = (0..THREADS)
        .map(|thread| {
            std::thread::spawn(move || {
                for number in 0..EACH {
                    let request = thread * EACH + number;
                    let mut client = TcpStream::connect(address).expect("it listens");
                    client
                        .write_all(&request.to_le_bytes())
                        .expect("the server reads");
                    if request.is_multiple_of(3) {
                        client.shutdown(Shutdown::Write).expect("connected");
                    }
                    let mut reply = Vec::new();
                    client.read_to_end(&mut reply).expect("a clean end");
                    assert!(reply == reply_to(request), "{request}: {}", reply.len());
                }
            })
        })
        .collect();
    answer_and_close(backend, &acceptor, THREADS * EACH);
    acceptor.thread.join().expect("all were accepted");
    for client in clients {
        client.join().expect("every reply was whole");
    }
}

fn answer_and_close(backend: Backend, acceptor: &Acceptor, count: u64) {
    let mut poller = poller(backend);
    poller
        .add_waker(&acceptor.waker, WAKER)
        .expect("an open waker");
    let mut connections: HashMap<u64, (Socket, Vec<u8>)> = HashMap::new();
    let (mut token, mut closed) = (0, 0);
    let mut events = Vec::new();
    while closed < count {
        poller
            .wait(&mut events, LONG)
            .expect("an open poller waits");
        assert!(!events.is_empty(), "{closed} of {count}");
        for event in &events {
            if event.token == WAKER {
                acceptor.waker.drain();
                while let Ok(socket) = acceptor.sockets.try_recv() {
                    poller
                        .add(socket.as_fd(), token, Interest::READ)
                        .expect("a new descriptor");
                    connections.insert(token, (socket, Vec::new()));
                    token += 1;
                }
                continue;
            }
            let (socket, reply) = connections.get_mut(&event.token).expect("it is open");
            let fd = socket.as_fd();
            if event.readable {
                let mut request = [0; 8];
                assert_eq!(poller.recv(fd, &mut request).expect("a request"), 8);
                *reply = reply_to(u64::from_le_bytes(request));
            }
            while !reply.is_empty() {
                // Some in pieces, so that there are bytes in the outbox when others are sent.
                let piece = reply.len().min(1_500 + (event.token as usize % 7) * 1_000);
                match poller.send(fd, &reply[..piece]) {
                    Ok(count) => drop(reply.drain(..count)),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        poller
                            .modify(fd, event.token, Interest::WRITE)
                            .expect("it is registered");
                        break;
                    }
                }
            }
            if reply.is_empty() {
                poller.remove(fd).expect("it is registered");
                connections.remove(&event.token);
                closed += 1;
            }
        }
    }
    // Removed is not closed: that is for the next wait.
    assert!(wait(&mut poller, NOW).is_empty());
}

/// Connections that come and go as fast as they can, closed by either side in the middle of
/// everything. A client that gets anything gets its own number, as often as it was sent.
fn reused_descriptors_get_nothing_of_their_predecessors(backend: Backend) {
    const THREADS: u64 = 4;
    const EACH: u64 = 500;
    let (listener, address) = listen();
    let acceptor = Acceptor::new(listener, (THREADS * EACH) as usize);
    let clients: Vec<_> = (0..THREADS)
        .map(|thread| {
            std::thread::spawn(move || {
                let mut numbers = Numbers::new(thread + 1);
                for number in 0..EACH {
                    storm(address, thread * EACH + number, &mut numbers);
                }
            })
        })
        .collect();
    echo_and_hang_up(backend, &acceptor, THREADS * EACH);
    acceptor.thread.join().expect("all were accepted");
    for client in clients {
        client.join().expect("nobody got another's bytes");
    }
}

fn storm(address: SocketAddr, number: u64, numbers: &mut Numbers) {
    let mut client = TcpStream::connect(address).expect("it listens");
    let message = number.to_le_bytes().repeat(numbers.size(400));
    if client.write_all(&message).is_err() || numbers.next().is_multiple_of(3) {
        return;
    }
    // Without an end of its own it has to be content with what it has sent.
    let mut most = message.len();
    if numbers.next().is_multiple_of(2) {
        let _ = client.shutdown(Shutdown::Write);
        most += 1;
    }
    let mut echo = Vec::new();
    let _ = client
        .take(numbers.size(most) as u64)
        .read_to_end(&mut echo);
    // However it ended: what came is the message's beginning.
    assert!(message.starts_with(&echo), "{number}");
}

fn echo_and_hang_up(backend: Backend, acceptor: &Acceptor, count: u64) {
    let mut server = Server::new(backend);
    server
        .poller
        .add_waker(&acceptor.waker, WAKER)
        .expect("an open waker");
    let mut events = Vec::new();
    while server.last_token < count || !server.connections.is_empty() {
        server
            .poller
            .wait(&mut events, LONG)
            .expect("an open poller waits");
        assert!(
            !events.is_empty(),
            "{} of {count} came, {} are left",
            server.last_token,
            server.connections.len()
        );
        for event in std::mem::take(&mut events) {
            if event.token == WAKER {
                acceptor.waker.drain();
                while let Ok(socket) = acceptor.sockets.try_recv() {
                    server.add(socket);
                }
                continue;
            }
            server.handle(event);
            // What is in flight is anything: receives, bytes just taken, a wait for room.
            if server.numbers.next().is_multiple_of(4) {
                server.close(event.token);
            }
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
                // The end of the stream makes no hangup, as this side is open.
                assert!(events.is_empty(), "{events:?}");
            }
            poller
                .modify(fd, 1, Interest::READ)
                .expect("it is registered");
        }
    }
    assert_eq!(total, TOTAL);
    sender.join().expect("all of it was sent");
    let event = wait_one(&mut poller);
    assert!(event.readable, "{event:?}");
    assert_eq!(poller.recv(fd, &mut [0; 8]).expect("the end"), 0);
}

fn flood(mut stream: TcpStream, total: usize) {
    let mut numbers = Numbers::new(6);
    let mut left = total;
    while left > 0 {
        let block = numbers.bytes(left.min(100_000));
        stream.write_all(&block).expect("somebody reads");
        left -= block.len();
    }
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

/// The last bytes and the end together, over and over: there is no second chance to notice the end.
fn an_end_right_behind_the_last_bytes_is_noticed(backend: Backend) {
    const CLIENTS: usize = 2_000;
    let (listener, address) = listen();
    let acceptor = Acceptor::new(listener, CLIENTS);
    let client = std::thread::spawn(move || {
        let mut numbers = Numbers::new(11);
        for _ in 0..CLIENTS {
            let mut client = TcpStream::connect(address).expect("it listens");
            if numbers.next().is_multiple_of(2) {
                std::thread::yield_now();
            }
            client.write_all(b"bye").expect("there is room");
        }
    });
    let mut poller = poller(backend);
    poller
        .add_waker(&acceptor.waker, WAKER)
        .expect("an open waker");
    let mut connections = HashMap::new();
    let mut events = Vec::new();
    let mut ended = 0;
    while ended < CLIENTS {
        poller
            .wait(&mut events, LONG)
            .expect("an open poller waits");
        assert!(!events.is_empty(), "{} wait for ever", connections.len());
        for event in &events {
            if event.token == WAKER {
                acceptor.waker.drain();
                while let Ok(socket) = acceptor.sockets.try_recv() {
                    let token = connections.len() as u64;
                    poller
                        .add(socket.as_fd(), token, Interest::READ)
                        .expect("a new descriptor");
                    connections.insert(token, Some(socket));
                }
                continue;
            }
            let socket = connections.get_mut(&event.token).expect("it is known");
            let fd = socket.as_ref().expect("it is open").as_fd();
            match poller.recv(fd, &mut [0; 64]) {
                Ok(0) => {
                    poller.remove(fd).expect("it is registered");
                    *socket = None;
                    ended += 1;
                }
                Ok(bytes) => assert_eq!(bytes, 3),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
    }
    client.join().expect("it sends");
    acceptor.thread.join().expect("all were accepted");
}
