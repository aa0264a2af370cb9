//! Measures how exactly keys expire: the time from a key's deadline to its `expired` event, while very many other keys have
//! an expiry too, and what those cost.
//!
//! ```text
//! cargo run --release --example expiry -- PROGRAM [--keys 1000000] [--ttl 3600] [--spread 60] [--probes 5000] [--options "--threads 2"]
//! ```
//!
//! PROGRAM is `ferrite-server` or `redis-server`; it is started on a free port and ended afterwards. First `keys` keys get an
//! expiry `ttl` to `ttl + spread` seconds away. Then, one every millisecond, `probes` keys are set that expire after 50 to
//! 1000 ms; a connection listens to `__keyevent@0__:expired` and takes the time of each event. Printed are percentiles of how
//! late the events came (deadline and arrival by this machine's clock), the CPU that the server takes while nothing is asked of it, how
//! many keys DBSIZE still counts 100 ms after the last deadline, and how long the longest of all commands took.
//!
//! With a small `ttl` the other keys expire during the measurement: their events are counted in (`--probes 0` for them alone).

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("it is after 1970").as_micros() as i64
}

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
        let mut command = Command::new(&options.program);
        command.args(["--port", &addr.port().to_string(), "--save", ""]);
        command.args([
            "--notify-keyspace-events",
            "Ex",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        let more = options.flags.get("options").map_or("", String::as_str);
        command.args(more.split_whitespace());
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

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr).expect("the server accepts");
        stream.set_nodelay(true).expect("a TCP socket");
        stream
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

fn request(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    out
}

/// Sends requests whose replies are `+OK`, many at once.
fn load(server: &Server, options: &Options) {
    let (keys, ttl, spread) = (
        options.number("keys", 1_000_000),
        options.number("ttl", 3600),
        options.number("spread", 60),
    );
    let mut stream = server.connect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut replies = vec![0; 5 * 1000];
    for first in (0..keys).step_by(1000) {
        let mut batch = Vec::new();
        let count = 1000.min(keys - first);
        for number in first..first + count {
            let wait_ms = (ttl * 1000 + random.usize(..spread.max(1) * 1000)) as i64;
            let deadline = now_us() / 1000 + wait_ms;
            let key = format!("other:{number}:{deadline}");
            batch.extend(request(&["SET", &key, "v", "PXAT", &deadline.to_string()]));
        }
        stream.write_all(&batch).expect("the server reads");
        stream
            .read_exact(&mut replies[..5 * count])
            .expect("the server answers");
    }
}

/// Listens for events until `until` says when to stop. Returns how late (us) each was, probes and others apart.
fn listen(mut stream: TcpStream, done: std::sync::mpsc::Receiver<()>) -> (Vec<i64>, Vec<i64>) {
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .expect("a timeout above zero");
    let (mut probes, mut others, mut held) = (Vec::new(), Vec::new(), Vec::new());
    let mut chunk = vec![0; 1 << 20];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                let arrived = now_us();
                held.extend_from_slice(&chunk[..count]);
                let mut at = 0;
                // The payload is the key, and its last part the deadline in milliseconds.
                while let Some(end) = held[at..].iter().position(|&byte| byte == b'\n') {
                    let line = &held[at..at + end];
                    at += end + 1;
                    let is_probe = line.starts_with(b"probe:");
                    if is_probe || line.starts_with(b"other:") {
                        let text = std::str::from_utf8(line).expect("keys are text").trim_end();
                        let deadline = text.rsplit_once(':').expect("a deadline").1;
                        let deadline: i64 = deadline.parse().expect("a number");
                        let late = arrived - deadline * 1000;
                        if is_probe { &mut probes } else { &mut others }.push(late);
                    }
                }
                held.drain(..at);
            }
            Err(_) if done.try_recv().is_ok() => break,
            Err(_) => {}
        }
    }
    (probes, others)
}

fn print_late(name: &str, mut late: Vec<i64>) {
    if late.is_empty() {
        return;
    }
    late.sort_unstable();
    let at = |part: f64| late[((late.len() - 1) as f64 * part) as usize] as f64 / 1000.0;
    println!(
        "  {name}: {} events, late by p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms, most {:.1} ms",
        late.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

fn main() {
    let options = Options::read();
    let server = Server::start(&options);
    let loading = Instant::now();
    load(&server, &options);
    let loading = loading.elapsed().as_secs_f64();
    let (cpu, since) = (server.cpu(), Instant::now());
    std::thread::sleep(Duration::from_secs(options.number("idle", 5) as u64));
    let idle = (server.cpu() - cpu) / since.elapsed().as_secs_f64();

    let mut listener = server.connect();
    listener
        .write_all(&request(&["SUBSCRIBE", "__keyevent@0__:expired"]))
        .expect("the server reads");
    let (end, done) = std::sync::mpsc::channel();
    let listening = std::thread::spawn(move || listen(listener, done));
    let mut stream = server.connect();
    let mut random = fastrand::Rng::with_seed(2);
    let mut reply = [0; 64];
    let (mut last, mut longest) = (0, 0.0f64);
    let count = options.number("probes", 5000);
    for number in 0..count {
        let deadline = now_us() / 1000 + random.i64(50..1000);
        let key = format!("probe:{number}:{deadline}");
        let began = Instant::now();
        stream
            .write_all(&request(&["SET", &key, "v", "PXAT", &deadline.to_string()]))
            .expect("the server reads");
        stream.read_exact(&mut reply[..5]).expect("an answer");
        longest = longest.max(began.elapsed().as_secs_f64() * 1e3);
        last = last.max(deadline);
        std::thread::sleep(Duration::from_millis(1));
    }
    if count == 0 {
        let wait = options.number("ttl", 3600) + options.number("spread", 60);
        std::thread::sleep(Duration::from_secs(wait as u64));
    }
    while now_us() / 1000 < last + 100 {
        std::thread::sleep(Duration::from_millis(1));
    }
    stream
        .write_all(&request(&["DBSIZE"]))
        .expect("the server reads");
    let length = stream.read(&mut reply).expect("an answer");
    let size = String::from_utf8_lossy(&reply[1..length]).trim().to_owned();
    std::thread::sleep(Duration::from_secs(1));
    end.send(()).expect("the listener waits for it");
    let (probes, others) = listening.join().expect("the listener ends");
    println!(
        "{}: {} other keys (set in {loading:.1} s), {:.2} % CPU idle, DBSIZE {size} after the last deadline, longest SET {longest:.1} ms",
        options.program.rsplit('/').next().unwrap_or_default(),
        options.number("keys", 1_000_000),
        idle * 100.0,
    );
    print_late("probes", probes);
    print_late("others", others);
}
