//! The poller with connections that come and go: each gets all of its own bytes and none of
//! another's, and ends when it should.
//!
//! Most of them are connections of a unix socket, which leave nothing behind. A TCP connection
//! leaves a TIME_WAIT for a minute, and a kernel with too many of those resets others.

use super::load::{Numbers, Server, accept};
use super::*;
use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

on_each_backend! {
    a_reply_right_before_the_close_arrives,
    reused_descriptors_get_nothing_of_their_predecessors,
    an_end_right_behind_the_last_bytes_is_noticed,
}

const WAKER: u64 = u64::MAX;
/// Threads that play clients.
const THREADS: u64 = 4;

#[derive(Clone, Copy)]
enum Network {
    Tcp,
    Unix,
}

#[derive(Clone)]
enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The end of a client.
enum Client {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Network {
    fn listen(self, name: &str, backend: Backend) -> (Listener, Address) {
        let (listener, address) = match self {
            Network::Tcp => {
                let any = "127.0.0.1:0".parse().expect("valid");
                let listener = Listener::tcp(any, 1024).expect("a free port");
                let address = Address::Tcp(listener.local_addr().expect("TCP"));
                (listener, address)
            }
            Network::Unix => {
                let file = format!("ferrite-{name}-{backend:?}-{}.sock", std::process::id());
                let path = std::env::temp_dir().join(file);
                let listener = Listener::unix(&path, None, 1024).expect("a free path");
                (listener, Address::Unix(path))
            }
        };
        (listener, address)
    }
}

impl Address {
    fn connect(&self) -> Client {
        match self {
            Address::Tcp(address) => Client::Tcp(TcpStream::connect(address).expect("it listens")),
            Address::Unix(path) => Client::Unix(UnixStream::connect(path).expect("it listens")),
        }
    }
}

impl Client {
    /// Ends the stream to the server.
    fn finish(&self) -> io::Result<()> {
        match self {
            Client::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Client::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

impl Read for Client {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Client::Tcp(stream) => stream.read(buffer),
            Client::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Client::Tcp(stream) => stream.write(bytes),
            Client::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
    fn new(listener: Listener, count: u64) -> Acceptor {
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
    ask_and_leave(backend, Network::Tcp, 50);
    ask_and_leave(backend, Network::Unix, 250);
}

fn ask_and_leave(backend: Backend, network: Network, each: u64) {
    let (listener, address) = network.listen("ask", backend);
    let acceptor = Acceptor::new(listener, THREADS * each);
    let clients: Vec<_> = (0..THREADS)
        .map(|thread| {
            let address = address.clone();
            std::thread::spawn(move || {
                for number in 0..each {
                    let request = thread * each + number;
                    let mut client = address.connect();
                    client
                        .write_all(&request.to_le_bytes())
                        .expect("the server reads");
                    if request.is_multiple_of(3) {
                        client.finish().expect("connected");
                    }
                    let mut reply = Vec::new();
                    client.read_to_end(&mut reply).expect("a clean end");
                    assert!(reply == reply_to(request), "{request}: {}", reply.len());
                }
            })
        })
        .collect();
    answer_and_close(backend, &acceptor, THREADS * each);
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
    come_and_go(backend, Network::Tcp, 50);
    come_and_go(backend, Network::Unix, 500);
}

fn come_and_go(backend: Backend, network: Network, each: u64) {
    let (listener, address) = network.listen("storm", backend);
    let acceptor = Acceptor::new(listener, THREADS * each);
    let clients: Vec<_> = (0..THREADS)
        .map(|thread| {
            let address = address.clone();
            std::thread::spawn(move || {
                let mut numbers = Numbers::new(thread + 1);
                for number in 0..each {
                    storm(&address, thread * each + number, &mut numbers);
                }
            })
        })
        .collect();
    echo_and_hang_up(backend, &acceptor, THREADS * each);
    acceptor.thread.join().expect("all were accepted");
    for client in clients {
        client.join().expect("nobody got another's bytes");
    }
}

fn storm(address: &Address, number: u64, numbers: &mut Numbers) {
    let mut client = address.connect();
    let message = number.to_le_bytes().repeat(numbers.size(400));
    if client.write_all(&message).is_err() || numbers.next().is_multiple_of(3) {
        return;
    }
    // Without an end of its own it has to be content with what it has sent.
    let mut most = message.len();
    if numbers.next().is_multiple_of(2) {
        let _ = client.finish();
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

/// The last bytes and the end together, over and over: there is no second chance to notice the end.
fn an_end_right_behind_the_last_bytes_is_noticed(backend: Backend) {
    say_bye(backend, Network::Tcp, 300);
    say_bye(backend, Network::Unix, 2_000);
}

fn say_bye(backend: Backend, network: Network, clients: u64) {
    let (listener, address) = network.listen("bye", backend);
    let acceptor = Acceptor::new(listener, clients);
    let client = std::thread::spawn(move || {
        let mut numbers = Numbers::new(11);
        for _ in 0..clients {
            let mut client = address.connect();
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
    while ended < clients {
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
