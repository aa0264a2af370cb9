//! What the kernel's answers mean for the slots they are about.
//!
//! An answer changes the state of a slot and nothing else: what is to be reported or asked for
//! follows from that state, in the wait that takes the answers in.

use super::names::{Op, Tag};
use super::queues::Answer;
use super::slots::{Life, Mode};
use super::state::Uring;

/// Buffers that one descriptor may have in its queue before it is received from on demand. The
/// kernel is up to two rounds of 32 further by the time it hears of it.
pub(super) const MAX_AHEAD: u16 = 8;

impl Uring {
    pub(super) fn take_answers(&mut self) {
        while let Some(answer) = self.ring.next() {
            if answer.tag.is_cancel {
                self.take_refused_cancel(&answer);
                continue;
            }
            match answer.tag.op {
                Op::Receive => self.take_received(&answer),
                Op::Send => self.take_failed_send(&answer),
                Op::Read => self.reads.finish(&answer),
                Op::Watch | Op::Room | Op::Ready => self.take_polled(&answer),
            }
        }
    }

    /// There was nothing to cancel: either the operation has just ended, or it is at work and has
    /// to be told again.
    fn take_refused_cancel(&mut self, answer: &Answer) {
        let Tag { op, key, .. } = answer.tag;
        if let Some(slot) = self.slots.get_mut(key)
            && slot.armed.contains(op)
        {
            slot.cancelling.remove(op);
            self.has_dirtied(key.index);
        }
    }

    #[inline]
    fn take_received(&mut self, answer: &Answer) {
        let key = answer.tag.key;
        let Some(slot) = self.slots.get_mut(key) else {
            assert!(answer.buffer.is_none(), "a slot outlives its operations");
            return;
        };
        if let Some(buffer) = answer.buffer {
            if answer.result > 0 && slot.life == Life::Registered {
                let size = answer.result as usize;
                self.buffers.append(&mut slot.queue, buffer, size);
            } else {
                self.buffers.give_back(buffer);
            }
        }
        if !answer.is_last && slot.queue.count() <= MAX_AHEAD {
            if !slot.is_listed {
                slot.is_listed = true;
                self.listed.push_back(key.index);
            }
            return;
        }
        if answer.is_last {
            slot.armed.remove(Op::Receive);
            slot.cancelling.remove(Op::Receive);
            self.take_end_of_receive(answer);
        } else if slot.mode == Mode::Ahead {
            slot.mode = Mode::OnDemand;
        }
        self.has_changed(key.index);
    }

    /// A receive goes on until somebody ends it; why did this one end?
    fn take_end_of_receive(&mut self, answer: &Answer) {
        let slot = &mut self.slots[answer.tag.key.index];
        match -answer.result {
            // Told to, or there was no room for answers: it is armed again if it is wanted.
            ..0 | libc::ECANCELED | libc::EINTR | libc::EAGAIN => {}
            0 => slot.is_ended = true,
            libc::ENOBUFS => {
                if !self.buffers.has_spare() && !self.buffers.grow() {
                    slot.mode = Mode::OnDemand;
                }
            }
            // A listener, or no socket at all.
            libc::ENOTSOCK | libc::ENOTCONN | libc::EINVAL | libc::EOPNOTSUPP => {
                slot.mode = Mode::OnDemand;
                slot.is_no_stream = true;
            }
            errno => {
                slot.recv_error = errno;
                (slot.is_ended, slot.is_broken) = (true, true);
            }
        }
    }

    /// Only sends that did not go all the way are answered.
    fn take_failed_send(&mut self, answer: &Answer) {
        let key = answer.tag.key;
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let sent = match answer.result {
            count @ 0.. => count as usize,
            error if [libc::EAGAIN, libc::EINTR].contains(&-error) => 0,
            error => {
                slot.break_off(-error);
                return self.has_changed(key.index);
            }
        };
        slot.residue = self.outbox.bytes(slot.staged)[sent..].to_vec();
        slot.is_full = true;
        self.has_changed(key.index);
    }

    fn take_polled(&mut self, answer: &Answer) {
        const GONE: libc::c_short = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
        let Tag { op, key, .. } = answer.tag;
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if answer.is_last {
            slot.armed.remove(op);
            slot.cancelling.remove(op);
        }
        let is_waker = slot.mode == Mode::Waker;
        // A failure, but for that of being cancelled, is an event of every kind.
        let events = match answer.result {
            mask @ 0.. => mask as libc::c_short,
            error if -error == libc::ECANCELED => 0,
            _ => GONE,
        };
        match op {
            Op::Watch if is_waker => slot.is_ready |= events & libc::POLLIN != 0,
            Op::Watch => {
                slot.is_ended |= events & libc::POLLRDHUP != 0;
                slot.is_broken |= events & GONE != 0;
            }
            Op::Ready => slot.is_ready |= events != 0,
            _ if events & (libc::POLLOUT | GONE) != 0 => self.take_room(key.index),
            _ => {}
        }
        self.has_changed(key.index);
    }

    /// There is room again: first for what is left from before.
    fn take_room(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        if slot.life == Life::Removed {
            return;
        }
        slot.is_full = false;
        slot.flush();
        if slot.life == Life::Lingering && slot.residue.is_empty() {
            self.end_lingering(index);
        }
    }
}
