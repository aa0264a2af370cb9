//! Those who listen while a run publishes: connections that hear every channel, and a count of what came to
//! them.
//!
//! One thread serves them all. It is not the load that is measured, so it may fall behind: what came is
//! counted after the run, too, until everything is there or nothing comes any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sys::{Backend, Poller};

use super::plan::Listening;
use crate::limits::SLICE;
use crate::load::data::Data;
use crate::wire::link::{Link, LinkError, LinkEvent};
use crate::wire::target::{Greeting, Target};

/// How long nothing may come before what is missing counts as lost.
const SILENCE: Duration = Duration::from_secs(2);
/// Bytes that one read may bring.
const INPUT_BYTES: usize = 64 << 10;

/// Connections that have subscribed.
pub(crate) struct Audience {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), LinkError>>,
    began: Instant,
}

#[derive(Default)]
struct Shared {
    heard: AtomicU64,
    is_over: AtomicBool,
}

/// What came to an audience.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Heard {
    pub(crate) messages: u64,
    /// As many as should have come.
    pub(crate) expected: u64,
    /// From the beginning to the last of them.
    pub(crate) elapsed: Duration,
}

impl Heard {
    /// Messages per second.
    pub(crate) fn rate(&self) -> f64 {
        self.messages as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

impl Audience {
    /// Connects and subscribes.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub(crate) fn gather(target: &Target, listening: &Listening) -> Result<Audience, String> {
        let shared = Arc::new(Shared::default());
        let (sender, receiver) = channel();
        let thread = std::thread::spawn({
            let (target, listening) = (target.clone(), listening.clone());
            let shared = Arc::clone(&shared);
            move || listen(&target, &listening, &shared, &sender)
        });
        if receiver.recv().is_err() {
            // It has ended before it was complete.
            let reason = match thread.join() {
                Ok(Err(error)) => error.to_string(),
                _ => "its thread has ended".to_owned(),
            };
            return Err(format!("{}: subscribers: {reason}", target.name));
        }
        Ok(Audience {
            shared,
            thread,
            began: Instant::now(),
        })
    }

    /// Waits for what is still on its way, and lets everybody go.
    ///
    /// # Errors
    /// A subscriber has lost its connection.
    pub(crate) fn disperse(self, expected: u64) -> Result<Heard, String> {
        let heard = || self.shared.heard.load(Ordering::Relaxed);
        let (mut last, mut last_at) = (heard(), Instant::now());
        while last < expected && last_at.elapsed() < SILENCE && !self.thread.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
            let now = heard();
            if now > last {
                (last, last_at) = (now, Instant::now());
            }
        }
        self.shared.is_over.store(true, Ordering::Relaxed);
        let elapsed = last_at.duration_since(self.began);
        match self.thread.join() {
            Ok(Ok(())) => Ok(Heard {
                messages: self.shared.heard.load(Ordering::Relaxed),
                expected,
                elapsed,
            }),
            Ok(Err(error)) => Err(format!("a subscriber: {error}")),
            Err(_) => Err("the subscribers' thread has ended".to_owned()),
        }
    }
}

/// The thread: says when everybody has subscribed, then counts until it is over.
fn listen(
    target: &Target,
    listening: &Listening,
    shared: &Shared,
    ready: &Sender<()>,
) -> Result<(), LinkError> {
    // Of RESP2, where a message is a reply like others.
    let greeting = Greeting {
        is_resp3: false,
        has_tracking: false,
        ..target.greeting.clone()
    };
    let (mut bytes, mut replies) = greeting.encode();
    for channel in &listening.channels {
        resp::write_request(&mut bytes, &[b"SUBSCRIBE", channel]);
        replies += 1;
    }
    let mut poller = Poller::new(Backend::Auto)?;
    let mut links = (0..listening.subscribers as u64)
        .map(|token| Link::dial(&mut poller, &target.endpoint, token))
        .collect::<Result<Vec<Link>, _>>()?;
    let data = Data::new(0);
    let mut input = vec![0; INPUT_BYTES];
    let mut events = Vec::new();
    let mut missing = links.len();
    while !shared.is_over.load(Ordering::Relaxed) {
        poller.wait(&mut events, Some(SLICE))?;
        for &event in &events {
            let link = &mut links[event.token as usize];
            let state = link.advance(&mut poller, event, (&bytes, replies), &data, &mut input)?;
            match state {
                LinkEvent::None => {}
                LinkEvent::Opened => {
                    missing -= 1;
                    if missing == 0 {
                        // Whoever waits for it is there, or the run was given up.
                        let _ = ready.send(());
                    }
                }
                LinkEvent::Open => {
                    let mut count = 0;
                    link.receive(&mut poller, &mut input, &mut |_, more, _| {
                        count += u64::from(more);
                    })?;
                    shared.heard.fetch_add(count, Ordering::Relaxed);
                }
            }
        }
    }
    Ok(())
}
