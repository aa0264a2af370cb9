//! Registering descriptors, and waiting for them.

use super::crowd::GATHER_TIME;
use super::names::{Op, Tag};
use super::slots::{Life, Mode, Staged};
use super::state::Uring;
use crate::poller::event::{Event, Interest, MAX_EVENTS};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// How often a wait that is over looks again because an operation had to be replaced.
const MAX_ROUNDS: usize = 8;
/// How often the kernel is asked again to take requests it had no memory for, with
/// [`RETRY_PAUSE`] in between.
const MAX_ATTEMPTS: usize = 1_000;
const RETRY_PAUSE: Duration = Duration::from_millis(1);

impl Uring {
    pub(in crate::poller) fn add(
        &mut self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        self.register(fd, token, interest, Mode::Ahead)
    }

    pub(in crate::poller) fn add_waker(
        &mut self,
        fd: BorrowedFd<'_>,
        token: u64,
    ) -> io::Result<()> {
        self.register(fd, token, Interest::READ, Mode::Waker)
    }

    fn register(
        &mut self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
        mode: Mode,
    ) -> io::Result<()> {
        let Some((index, slot)) = self.slots.add(fd.as_raw_fd()) else {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        };
        (slot.token, slot.interest, slot.mode) = (token, interest, mode);
        self.has_changed(index);
        Ok(())
    }

    pub(in crate::poller) fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let index = self.slots.find(fd.as_raw_fd()).ok_or_else(not_registered)?;
        let slot = &mut self.slots[index];
        (slot.token, slot.interest) = (token, interest);
        self.has_changed(index);
        Ok(())
    }

    pub(in crate::poller) fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let index = self.slots.find(fd.as_raw_fd()).ok_or_else(not_registered)?;
        // The descriptor may be closed as soon as this returns.
        self.send_staged(index);
        self.slots[index].flush();
        self.slots.forget(fd.as_raw_fd());
        let slot = &mut self.slots[index];
        self.buffers.clear(&mut slot.queue);
        if !slot.residue.is_empty() {
            self.linger(index, fd);
        }
        self.has_changed(index);
        Ok(())
    }

    /// Keeps the socket of a removed descriptor open until its last bytes are gone. They are lost if
    /// there are no descriptors left, or too many such sockets.
    fn linger(&mut self, index: u32, fd: BorrowedFd<'_>) {
        let key = self.slots.key(index);
        let slot = &mut self.slots[index];
        if let Ok(duplicate) = fd.try_clone_to_owned()
            && self.lingering.add(key, Instant::now())
        {
            slot.life = Life::Lingering;
            slot.fd = duplicate.as_raw_fd();
            slot.duplicate = Some(duplicate);
        } else {
            slot.residue = Vec::new();
        }
    }

    /// Appends to `events`. A signal is an error here (`Interrupted`), which the caller forgives.
    ///
    /// One system call, unless answers come that are nobody's event.
    pub(in crate::poller) fn wait(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Option<Duration>,
        gathers: bool,
    ) -> io::Result<()> {
        if self.is_dead {
            return Err(io::Error::other("io_uring has failed before"));
        }
        self.ring.start()?;
        let until = Until::new(timeout);
        // The first time round, nothing of the timeout has passed.
        let mut left = timeout;
        for round in 0_usize.. {
            let limit = match self.has_event() || self.reads.has_finished() {
                true => Some(Duration::ZERO),
                false => self.shortened(left),
            };
            let may_gather = gathers && round == 0 && limit != Some(Duration::ZERO);
            match self.crowd.wanted() {
                wanted @ 2.. if may_gather && !self.reads.are_under_way() => {
                    let limit = limit.map_or(GATHER_TIME, |limit| limit.min(GATHER_TIME));
                    self.enter(Some(limit), wanted)?;
                }
                _ => self.enter(limit, 1)?,
            }
            if !self.lingering.is_empty() {
                self.expire_lingering(Instant::now());
            }
            self.report(events);
            if !events.is_empty() || self.reads.has_finished() {
                break;
            }
            left = until.left();
            if left == Some(Duration::ZERO) && (self.dirty.is_empty() || round >= MAX_ROUNDS) {
                break;
            }
        }
        Ok(())
    }

    /// A limit that doesn't go beyond the next thing to do.
    fn shortened(&self, limit: Option<Duration>) -> Option<Duration> {
        let Some(end) = self.lingering.next_end() else {
            return limit;
        };
        let until_end = end.saturating_duration_since(Instant::now());
        Some(limit.map_or(until_end, |limit| limit.min(until_end)))
    }

    /// Whether the next report will find something. Unlists those at the front that have nothing.
    fn has_event(&mut self) -> bool {
        while let Some(&index) = self.listed.front() {
            let slot = &mut self.slots[index];
            if slot.event().is_some() {
                return true;
            }
            slot.is_listed = false;
            self.listed.pop_front();
        }
        false
    }

    /// Looks at every listed slot once, or until the events are enough.
    fn report(&mut self, events: &mut Vec<Event>) {
        self.crowd.begin();
        for _ in 0..self.listed.len() {
            if events.len() == MAX_EVENTS {
                break;
            }
            let Some(index) = self.listed.pop_front() else {
                break;
            };
            let slot = &mut self.slots[index];
            slot.is_listed = false;
            let Some(event) = slot.event() else { continue };
            events.push(event);
            self.crowd.note(&mut slot.window);
            // Readiness is level-triggered: what is left after this turn is reported again.
            slot.is_listed = true;
            self.listed.push_back(index);
            if slot.is_ready && event.readable {
                // The kernel has to be asked again whether it still is.
                slot.is_ready = false;
                self.has_dirtied(index);
            }
        }
    }

    /// Hands all requests to the kernel, waits for so many answers, at most as long as the limit says, and
    /// takes in those that there are.
    fn enter(&mut self, mut limit: Option<Duration>, answers: u32) -> io::Result<()> {
        let mut result = self.queue_requests();
        self.buffers.publish();
        for attempt in 0..MAX_ATTEMPTS {
            #[cfg(test)]
            {
                self.enters += 1;
            }
            if result.is_ok() {
                result = self.ring.enter(limit, answers);
            }
            self.take_answers();
            let is_interrupted =
                matches!(&result, Err(error) if error.kind() == io::ErrorKind::Interrupted);
            if result.is_err() && !is_interrupted {
                break;
            }
            if self.ring.is_settled() {
                self.settle_sends();
                return result;
            }
            if attempt > 0 {
                std::thread::sleep(RETRY_PAUSE);
            }
            result = Ok(());
            limit = Some(Duration::ZERO);
        }
        self.is_dead = true;
        Err(result
            .err()
            .unwrap_or_else(|| io::Error::other("the kernel takes no requests")))
    }

    /// Makes requests of what was sent and of the operations that are wanted or not wanted any
    /// more.
    fn queue_requests(&mut self) -> io::Result<()> {
        for &index in self.outbox.senders() {
            let slot = &self.slots[index];
            let (key, bytes) = (self.slots.key(index), self.outbox.bytes(slot.staged));
            // SAFETY: the bytes are written over after they were settled, which is after the enter.
            unsafe { self.ring.send(key, slot.fd, bytes)? };
        }
        while let Some(index) = self.dirty.pop() {
            self.slots[index].is_dirty = false;
            self.adjust_operations(index)?;
        }
        Ok(())
    }

    fn adjust_operations(&mut self, index: u32) -> io::Result<()> {
        let key = self.slots.key(index);
        let slot = &mut self.slots[index];
        let wanted = slot.wanted();
        if wanted != slot.armed {
            for op in Op::ARMED {
                let tag = Tag::new(op, key);
                let (is_wanted, is_armed) = (wanted.contains(op), slot.armed.contains(op));
                if is_wanted && !is_armed {
                    self.ring.arm(tag, slot.fd, slot.watched_events())?;
                    slot.armed.insert(op);
                } else if is_armed && !is_wanted && !slot.cancelling.contains(op) {
                    self.ring.cancel(tag)?;
                    slot.cancelling.insert(op);
                }
            }
        }
        self.slots.release_if_over(index);
        Ok(())
    }

    /// All that was copied has been read by the kernel; what it had no room for has become residue.
    fn settle_sends(&mut self) {
        let senders = self.outbox.reset();
        for &index in &senders {
            self.slots[index].staged = Staged::default();
        }
        self.outbox.put_back(senders);
    }

    /// Gives up on removed connections that have had their time.
    pub(super) fn expire_lingering(&mut self, now: Instant) {
        while let Some(key) = self.lingering.pop_ended(now) {
            self.end_lingering(key.index);
        }
    }
}

impl Drop for Uring {
    /// What was taken leaves now, as far as there is room for it.
    fn drop(&mut self) {
        for index in self.outbox.senders().to_vec() {
            self.send_staged(index);
        }
        for slot in self.slots.iter_mut() {
            slot.flush();
        }
    }
}

/// How long a wait goes on. The clock is read only if that is neither for ever nor not at all.
#[derive(Clone, Copy)]
enum Until {
    Now,
    Then(Instant),
    Never,
}

impl Until {
    fn new(timeout: Option<Duration>) -> Until {
        match timeout {
            Some(Duration::ZERO) => Until::Now,
            // What is beyond the end of the clock never comes.
            Some(timeout) => Instant::now()
                .checked_add(timeout)
                .map_or(Until::Never, Until::Then),
            None => Until::Never,
        }
    }

    /// The time that is left; `None` if there is no limit.
    fn left(self) -> Option<Duration> {
        match self {
            Until::Now => Some(Duration::ZERO),
            Until::Then(end) => Some(end.saturating_duration_since(Instant::now())),
            Until::Never => None,
        }
    }
}

fn not_registered() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOENT)
}
