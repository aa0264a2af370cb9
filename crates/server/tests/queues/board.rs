//! What was pushed, acknowledged and received, and the rules that must hold: see the module above.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex};

use super::{CONSUMERS, PRODUCERS, QUEUES};
use crate::support::PATIENCE;

/// The most requests of a connection that have no reply.
pub(super) const DEPTH: usize = 64;

/// How consumers take messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    Pops,
    Moves,
}

/// A message: its producer and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) producer: usize,
    pub(super) number: usize,
}

impl Message {
    pub(super) fn parse(text: &[u8]) -> Option<Message> {
        let (producer, number) = std::str::from_utf8(text).ok()?.split_once(':')?;
        Some(Message {
            producer: producer.parse().ok()?,
            number: number.parse().ok()?,
        })
    }
}

/// Of a message: it was acknowledged.
const ACKNOWLEDGED: u8 = 0x80;
/// The consumer that has received it, and 1.
const CONSUMER: u8 = 0x7f;

/// Messages that were pushed by requests without a reply.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) first: Message,
    pub(super) count: usize,
    /// All by one request.
    pub(super) is_one: bool,
}

/// How far the messages of each producer in each queue have come: the number of the last and 1.
pub(super) type Progress = [[u64; PRODUCERS]; QUEUES];

/// See the module.
pub(super) struct Board {
    pub(super) taking: Taking,
    /// Messages of a producer that are to be acknowledged.
    pub(super) each: usize,
    messages: Vec<Vec<AtomicU8>>,
    progress: [[AtomicU64; PRODUCERS]; QUEUES],
    received: AtomicU64,
    producing: AtomicUsize,
    consuming: Mutex<usize>,
    ended: Condvar,
    unanswered: Mutex<Vec<Unanswered>>,
    /// Pops without a reply.
    cut_pops: AtomicU64,
    again: AtomicU64,
    lives: AtomicU64,
    volatile_lives: AtomicU64,
    /// Where the server is, and how often it was started.
    place: Mutex<(u64, Option<SocketAddr>)>,
    started: Condvar,
    has_failed: AtomicBool,
    find: Mutex<Option<String>>,
}

impl Board {
    pub(super) fn new(taking: Taking, each: u64, kills: u64) -> Board {
        // A connection that ends leaves at most `DEPTH` without a reply, and tries at most twice a life.
        let numbers = each as usize + 2 * DEPTH * (kills as usize + 2);
        let column = || (0..numbers).map(|_| AtomicU8::new(0)).collect();
        Board {
            taking,
            each: each as usize,
            messages: (0..PRODUCERS).map(|_| column()).collect(),
            progress: Default::default(),
            received: AtomicU64::new(0),
            producing: AtomicUsize::new(PRODUCERS),
            consuming: Mutex::new(CONSUMERS),
            ended: Condvar::new(),
            unanswered: Mutex::default(),
            cut_pops: AtomicU64::new(0),
            again: AtomicU64::new(0),
            lives: AtomicU64::new(0),
            volatile_lives: AtomicU64::new(0),
            place: Mutex::default(),
            started: Condvar::new(),
            has_failed: AtomicBool::new(false),
            find: Mutex::default(),
        }
    }

    /// Ends all with what was found first.
    pub(super) fn fail(&self, find: String) {
        self.find.lock().expect("nobody panics").get_or_insert(find);
        self.has_failed.store(true, SeqCst);
        // Those that wait have either seen it, or are told.
        drop(self.place.lock().expect("nobody panics"));
        self.started.notify_all();
        drop(self.consuming.lock().expect("nobody panics"));
        self.ended.notify_all();
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(SeqCst)
    }

    pub(super) fn find(&self) -> Option<String> {
        self.find.lock().expect("nobody panics").clone()
    }

    pub(super) fn note_life(&self, is_volatile: bool) {
        self.volatile_lives
            .fetch_add(u64::from(is_volatile), SeqCst);
    }

    /// Tells all where the server is.
    pub(super) fn publish(&self, addr: SocketAddr) {
        self.lives.fetch_add(1, SeqCst);
        let mut place = self.place.lock().expect("nobody panics");
        *place = (place.0 + 1, Some(addr));
        self.started.notify_all();
    }

    /// Where the server is, once it was started more than `known` times; nothing, if all has ended.
    pub(super) fn place(&self, known: u64) -> Option<(u64, SocketAddr)> {
        let place = self.place.lock().expect("nobody panics");
        let is_old = |place: &mut (u64, _)| place.0 <= known && !self.has_failed();
        let waited = self.started.wait_timeout_while(place, PATIENCE, is_old);
        let (place, timeout) = waited.expect("nobody panics");
        let (lives, addr) = (place.0, place.1);
        drop(place);
        if timeout.timed_out() {
            self.fail("a connection has ended, and the server is not started again".to_owned());
        }
        addr.filter(|_| !self.has_failed())
            .map(|addr| (lives, addr))
    }

    /// Notes that a message was acknowledged.
    pub(super) fn acknowledge(&self, message: Message) {
        self.messages[message.producer][message.number].fetch_or(ACKNOWLEDGED, SeqCst);
    }

    pub(super) fn leave_unanswered(&self, pushed: Unanswered) {
        let mut unanswered = self.unanswered.lock().expect("nobody panics");
        unanswered.push(pushed);
    }

    pub(super) fn has_produced(&self) {
        self.producing.fetch_sub(1, SeqCst);
    }

    pub(super) fn is_produced(&self) -> bool {
        self.producing.load(SeqCst) == 0
    }

    pub(super) fn has_consumed(&self) {
        *self.consuming.lock().expect("nobody panics") -= 1;
        self.ended.notify_all();
    }

    /// Waits until consumers have nothing more to receive.
    pub(super) fn wait_for_the_end(&self) {
        let consuming = self.consuming.lock().expect("nobody panics");
        let ended = self
            .ended
            .wait_while(consuming, |left| *left > 0 && !self.has_failed());
        drop(ended.expect("nobody panics"));
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(SeqCst)
    }

    pub(super) fn note_cut_pops(&self, count: usize) {
        self.cut_pops.fetch_add(count as u64, SeqCst);
    }

    /// How far all have come.
    pub(super) fn progress(&self) -> Progress {
        std::array::from_fn(|queue| {
            std::array::from_fn(|producer| self.progress[queue][producer].load(SeqCst))
        })
    }

    /// Notes that a consumer has received a message from a queue; `is_again`, if it may have received it
    /// before.
    ///
    /// # Errors
    /// It was received before.
    pub(super) fn receive(
        &self,
        consumer: usize,
        queue: usize,
        message: Message,
        is_again: bool,
    ) -> Result<(), String> {
        let cells = self.messages.get(message.producer);
        let Some(cell) = cells.and_then(|cells| cells.get(message.number)) else {
            return Err(format!("{message:?} was never pushed"));
        };
        let own = consumer as u8 + 1;
        let before = cell.fetch_or(own, SeqCst) & CONSUMER;
        if before != 0 && !(is_again && before == own) {
            return Err(format!(
                "{message:?} was received by consumer {consumer}, and before by {}",
                before - 1
            ));
        }
        match before {
            0 => self.received.fetch_add(1, SeqCst),
            _ => self.again.fetch_add(1, SeqCst),
        };
        self.progress[queue][message.producer].fetch_max(message.number as u64 + 1, SeqCst);
        Ok(())
    }

    fn is_received(&self, producer: usize, number: usize) -> bool {
        self.messages[producer][number].load(SeqCst) & CONSUMER != 0
    }

    /// Acknowledged messages that were not received.
    fn missing(&self) -> Vec<Message> {
        let mut missing = Vec::new();
        for (producer, cells) in self.messages.iter().enumerate() {
            for (number, cell) in cells.iter().enumerate() {
                if cell.load(SeqCst) == ACKNOWLEDGED {
                    missing.push(Message { producer, number });
                }
            }
        }
        missing
    }

    /// Messages of unanswered pushes that are missing before one that is there.
    fn gaps(&self) -> Vec<Message> {
        let mut gaps = Vec::new();
        for pushed in self.unanswered.lock().expect("nobody panics").iter() {
            let Message { producer, number } = pushed.first;
            let is_there = |at: &usize| self.is_received(producer, number + at);
            let last = (0..pushed.count).rev().find(is_there);
            let all = match (last, pushed.is_one) {
                (None, _) => 0,
                (Some(_), true) => pushed.count,
                (Some(last), false) => last,
            };
            let absent = (0..all).filter(|at| !is_there(at));
            gaps.extend(absent.map(|at| Message {
                producer,
                number: number + at,
            }));
        }
        gaps
    }

    /// Whether all rules have held.
    ///
    /// # Errors
    /// One has not.
    pub(super) fn verdict(&self) -> Result<(), String> {
        if let Some(find) = self.find() {
            return Err(find);
        }
        let (missing, gaps) = (self.missing(), self.gaps());
        let lost = (missing.len() + gaps.len()) as u64;
        let cut = self.cut_pops.load(SeqCst);
        if lost > cut {
            let first = missing.iter().chain(&gaps).take(3).collect::<Vec<_>>();
            return Err(format!(
                "{} acknowledged messages are missing, {} unanswered ones before others; {cut} pops have no \
                 reply; {first:?}",
                missing.len(),
                gaps.len(),
            ));
        }
        Ok(())
    }

    pub(super) fn summary(&self) -> String {
        let (mut unanswered, mut kept) = (0, 0);
        for pushed in self.unanswered.lock().expect("nobody panics").iter() {
            let Message { producer, number } = pushed.first;
            let numbers = number..number + pushed.count;
            kept += numbers.filter(|&at| self.is_received(producer, at)).count();
            unanswered += pushed.count;
        }
        format!(
            "{} messages received, {} of them from {} pushes without a reply, {} again; {} missing and {} \
             gaps for {} pops without a reply; {} lives, {} of them ended by a loss of power",
            self.received(),
            kept,
            unanswered,
            self.again.load(SeqCst),
            self.missing().len(),
            self.gaps().len(),
            self.cut_pops.load(SeqCst),
            self.lives.load(SeqCst),
            self.volatile_lives.load(SeqCst),
        )
    }
}
