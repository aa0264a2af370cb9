//! `--pipe`: standard input holds requests, which go to the server as they are, while replies are counted.
//!
//! Two threads: one sends, this one reads, so that neither side waits for the other's buffers. Behind the
//! last request goes an ECHO of a word that nobody else can have chosen: when its reply comes, all others
//! have come.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use resp::{Value, write_request};
use sys::clock::monotonic_ns;
use sys::socket::Stream;

use crate::connection::Connection;
use crate::failure::{Failure, Result, reason};
use crate::flags::Options;
use crate::limits::PIPE_CHUNK;
use crate::session::Session;

const MAGIC_LEN: usize = 20;

/// How often to look whether the server has been silent for too long.
const LOOK: Duration = Duration::from_secs(1);

pub(super) fn run(mut session: Session, options: &Options) -> Result {
    if session.nodes()?.is_some() {
        return Err(Failure::other(
            "--pipe sends what it reads as it is, to one server: in a cluster use `ferrite-cli -c < LINES`, \
             or --pipe without -c for each node with its own keys",
        ));
    }
    let mut connection = session.into_connection()?;
    let stream = connection.writer();
    let stream = stream.map_err(|error| Failure::Other(reason(&error)))?;
    let bar = progress_bar();
    let mut magic = [0; MAGIC_LEN];
    sys::random::fill(&mut magic).map_err(|error| Failure::Other(reason(&error)))?;
    let is_sent = Arc::new(AtomicBool::new(false));
    let sender = Sender {
        stream,
        bar: bar.clone(),
        magic,
        is_sent: Arc::clone(&is_sent),
    };
    // It is not joined: while it waits for input that never comes, the program may have to end.
    thread::spawn(move || sender.run());
    let tally = receive(
        &mut connection,
        &bar,
        &magic,
        &is_sent,
        options.pipe_timeout,
    )?;
    bar.finish_and_clear();
    writeln!(
        io::stdout(),
        "errors: {}, replies: {}",
        tally.errors,
        tally.replies
    )?;
    if tally.errors > 0 {
        return Err(Failure::Told);
    }
    Ok(())
}

#[derive(Default)]
struct Tally {
    errors: u64,
    replies: u64,
}

/// Counts replies until the last one.
fn receive(
    connection: &mut Connection,
    bar: &ProgressBar,
    magic: &[u8],
    is_sent: &AtomicBool,
    timeout: Duration,
) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut heard_ns = monotonic_ns();
    loop {
        let reply = connection.read_within(LOOK).map_err(|_| {
            bar.finish_and_clear();
            Failure::other("Error reading replies from server")
        })?;
        match reply {
            None => {
                let silence = Duration::from_nanos(monotonic_ns() - heard_ns);
                if is_sent.load(Ordering::Acquire) && !timeout.is_zero() && silence > timeout {
                    let seconds = timeout.as_secs_f64();
                    bar.suspend(|| eprintln!("No replies for {seconds} seconds: exiting."));
                    tally.errors += 1;
                    return Ok(tally);
                }
                continue;
            }
            Some(Value::Push(_)) => continue,
            Some(Value::Bulk(bytes)) if bytes == magic => {
                bar.suspend(|| writeln!(io::stdout(), "Last reply received from server."))?;
                return Ok(tally);
            }
            Some(Value::Error(text)) => {
                tally.errors += 1;
                tally.replies += 1;
                bar.suspend(|| eprintln!("{}", String::from_utf8_lossy(&text)));
            }
            Some(_) => tally.replies += 1,
        }
        if tally.replies.is_multiple_of(1024) {
            bar.set_message(format!("{} replies", tally.replies));
        }
        heard_ns = monotonic_ns();
    }
}

/// The thread that sends.
struct Sender {
    stream: Stream,
    bar: ProgressBar,
    magic: [u8; MAGIC_LEN],
    is_sent: Arc<AtomicBool>,
}

impl Sender {
    fn run(self) {
        if let Err((what, error)) = self.send_all() {
            self.bar.finish_and_clear();
            eprintln!("{what}: {}", reason(&error));
            // Nobody waits for this thread, and without it no reply will be the last.
            std::process::exit(1);
        }
    }

    fn send_all(&self) -> std::result::Result<(), (&'static str, io::Error)> {
        let mut input = io::stdin().lock();
        let mut chunk = vec![0; PIPE_CHUNK];
        loop {
            let count = match input.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(("Error reading from stdin", error)),
            };
            self.send(&chunk[..count])?;
            self.bar.inc(count as u64);
        }
        // A line break first: if the input ends within a line, the ECHO is still read as a request of its
        // own.
        let mut last = b"\r\n".to_vec();
        write_request(&mut last, &[b"ECHO", &self.magic]);
        self.bar
            .suspend(|| println!("All data transferred. Waiting for the last reply..."));
        self.send(&last)?;
        self.is_sent.store(true, Ordering::Release);
        Ok(())
    }

    fn send(&self, bytes: &[u8]) -> std::result::Result<(), (&'static str, io::Error)> {
        let sent = (&self.stream).write_all(bytes);
        sent.map_err(|error| ("Error writing to the server", error))
    }
}

/// A bar for a person who watches, as long as standard input is where that can be known.
fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match input_len() {
        Some(len) => (
            ProgressBar::new(len),
            "{bytes}/{total_bytes} [{wide_bar}] {binary_bytes_per_sec}, {msg}, {eta} left",
        ),
        None => (
            ProgressBar::no_length(),
            "{spinner} {bytes}, {binary_bytes_per_sec}, {msg}",
        ),
    };
    let style = ProgressStyle::with_template(template).expect("the template is one");
    bar.set_style(style.progress_chars("=> "));
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar.set_message("0 replies");
    bar
}

/// How long standard input is, if it is a file.
fn input_len() -> Option<u64> {
    let input = io::stdin().as_fd().try_clone_to_owned().ok()?;
    let facts = File::from(input).metadata().ok()?;
    facts.is_file().then_some(facts.len())
}
