//! Measures publishing to many listeners: messages per second, and what one delivered message costs the server.
//!
//! ```text
//! cargo run --release --example fanout -- PROGRAM [--listeners 1000] [--window 16] [--bytes 16] [--seconds 5]
//!     [--publishers 1] [--server-cpu 0] [--own-cpu 1] [--options "--threads 1"]
//! ```
//!
//! PROGRAM is `ferrite-server` or `redis-server`; it is started on a free port and ended afterwards. So many connections
//! listen to one channel. Publishers have at most `window` messages under way that not everybody has received, so nobody is
//! ever behind by more, and what counts is the whole way. The cost is the CPU time of the server's process (user and
//! system) divided by messages times listeners.
//!
//! One thread does all of this side; where it can't keep up with the server, the messages per second say more about it than
//! about the server, and the cost is what to look at.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sys::poller::{Backend, Interest, Poller};

struct Options {
    program: String,
    flags: HashMap<String, String>,
}

impl Options {
    fn read() -> Options {
        let mut words = std::env::args().skip(1);
        let program = words
            .next()
            .expect("the first argument is the server's program");
        let mut flags = HashMap::new();
        while let (Some(flag), Some(value)) = (words.next(), words.next()) {
            flags.insert(flag.trim_start_matches('-').to_owned(), value);
        }
        Options { program, flags }
    }

    fn number(&self, name: &str, default: usize) -> usize {
        self.flags.get(name).map_or(default, |text| {
            text.parse()
                .unwrap_or_else(|_| panic!("--{name} takes a number"))
        })
    }

    fn text(&self, name: &str) -> &str {
        self.flags.get(name).map_or("", String::as_str)
    }
}

/// A server that ends with this program.
struct Server {
    child: Child,
    addr: SocketAddr,
}

impl Server {
    fn start(options: &Options) -> Server {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = free.local_addr().expect("a bound socket");
        drop(free);
        let mut command = Command::new("taskset");
        command.args(["-c", &options.number("server-cpu", 0).to_string()]);
        command.args([&options.program, "--port", &addr.port().to_string()]);
        command.args(["--save", "", "--client-output-buffer-limit", "pubsub 0 0 0"]);
        command.args(options.text("options").split_whitespace());
        let child = command.stdout(Stdio::null()).spawn();
        let server = Server {
            child: child.expect("the server starts"),
            addr,
        };
        for _ in 0..500 {
            if TcpStream::connect(addr).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the server does not accept connections");
    }

    /// CPU seconds it has taken.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))
            .expect("the server runs");
        let fields = stat.rsplit_once(')').expect("a name in brackets").1;
        let ticks = fields.split_whitespace().skip(11).take(2);
        ticks
            .map(|field| field.parse::<f64>().expect("ticks"))
            .sum::<f64>()
            / 100.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(format!("${}\r\n", word.len()).into_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// One side's state of the measurement.
struct Bench {
    poller: Poller,
    listeners: Vec<TcpStream>,
    /// Bytes each listener has received.
    received: Vec<u64>,
    publishers: Vec<TcpStream>,
    /// Length of one message on the wire.
    frame: u64,
    publish: Vec<u8>,
    published: u64,
    buffer: Vec<u8>,
}

const PUBLISHERS: u64 = 1 << 32;

impl Bench {
    fn connect(addr: SocketAddr, options: &Options) -> Bench {
        let payload = vec![b'x'; options.number("bytes", 16)];
        let mut poller = Poller::new(Backend::Epoll).expect("a poller");
        let mut listeners = Vec::new();
        for number in 0..options.number("listeners", 1000) {
            let mut stream = TcpStream::connect(addr).expect("the server accepts");
            stream
                .write_all(&request(&[b"SUBSCRIBE", b"c"]))
                .expect("the server reads");
            let mut confirmation = *b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
            stream
                .read_exact(&mut confirmation)
                .expect("a confirmation");
            stream.set_nonblocking(true).expect("a socket");
            poller
                .add(stream.as_fd(), number as u64, Interest::READ)
                .expect("room");
            listeners.push(stream);
        }
        let publishers: Vec<TcpStream> = (0..options.number("publishers", 1) as u64)
            .map(|number| {
                let stream = TcpStream::connect(addr).expect("the server accepts");
                stream.set_nodelay(true).expect("a TCP socket");
                stream.set_nonblocking(true).expect("a socket");
                poller
                    .add(stream.as_fd(), PUBLISHERS + number, Interest::READ)
                    .expect("room");
                stream
            })
            .collect();
        Bench {
            poller,
            received: vec![0; listeners.len()],
            listeners,
            publishers,
            frame: request(&[b"message", b"c", &payload]).len() as u64,
            publish: request(&[b"PUBLISH", b"c", &payload]),
            published: 0,
            buffer: vec![0; 1 << 20],
        }
    }

    /// Goes on until it is time. Returns how many messages all have received.
    fn run(&mut self, window: u64, until: Instant) -> u64 {
        let mut events = Vec::with_capacity(256);
        let (mut complete, mut turn) = (0, 0);
        let begun = self.published;
        // Listeners that have received what is complete so far and one more.
        let mut ahead = 0;
        while Instant::now() < until {
            let room = window - (self.published - begun - complete);
            if room > 0 {
                let publisher = turn % self.publishers.len();
                turn += 1;
                let batch = self.publish.repeat(room as usize);
                let mut socket = &self.publishers[publisher];
                socket
                    .write_all(&batch)
                    .expect("requests fit into the socket");
                self.published += room;
            }
            self.poller
                .wait(&mut events, Some(Duration::from_millis(100)))
                .expect("a poller waits");
            for event in &events {
                if event.token >= PUBLISHERS {
                    let at = (event.token - PUBLISHERS) as usize;
                    let _ = (&self.publishers[at]).read(&mut self.buffer);
                    continue;
                }
                let at = event.token as usize;
                let Ok(count) = (&self.listeners[at]).read(&mut self.buffer) else {
                    continue;
                };
                let goal = (begun + complete + 1) * self.frame;
                let was_ahead = self.received[at] >= goal;
                self.received[at] += count as u64;
                ahead += usize::from(!was_ahead && self.received[at] >= goal);
            }
            if ahead == self.listeners.len() {
                let least = self.received.iter().min().expect("there are listeners");
                complete = least / self.frame - begun;
                let goal = (begun + complete + 1) * self.frame;
                ahead = self.received.iter().filter(|&&bytes| bytes >= goal).count();
            }
        }
        complete
    }

    /// Waits for what is still under way.
    fn drain(&mut self) {
        let quiet = Instant::now() + Duration::from_millis(500);
        let mut events = Vec::with_capacity(256);
        while Instant::now() < quiet {
            let wait = Some(Duration::from_millis(100));
            self.poller.wait(&mut events, wait).expect("a poller waits");
            for event in &events {
                if event.token >= PUBLISHERS {
                    let at = (event.token - PUBLISHERS) as usize;
                    let _ = (&self.publishers[at]).read(&mut self.buffer);
                } else {
                    let at = event.token as usize;
                    if let Ok(count) = (&self.listeners[at]).read(&mut self.buffer) {
                        self.received[at] += count as u64;
                    }
                }
            }
        }
        let all = self.published * self.frame;
        assert!(
            self.received.iter().all(|&bytes| bytes == all),
            "a message is missing"
        );
    }
}

fn main() {
    let options = Options::read();
    let own_cpu = options.number("own-cpu", 1).to_string();
    let own_pid = std::process::id().to_string();
    let pinned = Command::new("taskset")
        .args(["-cp", &own_cpu, &own_pid])
        .stdout(Stdio::null())
        .status();
    assert!(
        pinned.is_ok_and(|status| status.success()),
        "taskset pins this program"
    );
    let server = Server::start(&options);
    let mut bench = Bench::connect(server.addr, &options);
    let window = options.number("window", 16) as u64;
    bench.run(window, Instant::now() + Duration::from_millis(500));
    bench.drain();
    let seconds = options.number("seconds", 5) as u64;
    let (cpu, since) = (server.cpu(), Instant::now());
    let messages = bench.run(window, since + Duration::from_secs(seconds));
    let (cpu, took) = (server.cpu() - cpu, since.elapsed().as_secs_f64());
    bench.drain();
    let deliveries = (messages * bench.listeners.len() as u64) as f64;
    println!(
        "{:<16} listeners {:>5} window {:>4} bytes {:>6}: {:>9.0} messages/s {:>10.0} deliveries/s, server {:>6.3} us CPU a delivery, {:>5.2} cores",
        options.program.rsplit('/').next().unwrap_or_default(),
        bench.listeners.len(),
        window,
        options.number("bytes", 16),
        messages as f64 / took,
        deliveries / took,
        cpu * 1e6 / deliveries,
        cpu / took,
    );
}
