//! How many peers are active, and for how many of them a wait may wait.
//!
//! To be woken for every request costs a processor on both sides several microseconds: a peer that sends has
//! to wake this thread, and it has to go to sleep again. While very many peers send, a wait that goes on
//! until some of them have sent serves all of them sooner. While few do, it would keep all of them waiting
//! for each other. So a wait is for a small part of those that were active of late.

use std::time::Duration;

/// How long such a wait lasts at most.
pub(super) const GATHER_TIME: Duration = Duration::from_micros(50);
/// The last wait had at least so many events.
const LEAST: u32 = 4;
/// Events to wait for: one for so many active peers, and at most so many.
const SHARE: u32 = 6;
const MOST: u32 = 8;
/// Events in which the active are counted.
const WINDOW: u32 = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// The number of the window. Whoever had an event in it carries this number.
    window: u32,
    /// Events of this window, and of how many peers.
    events: u32,
    peers: u32,
    /// Peers of the window before.
    active: u32,
    /// Events of the last wait.
    last: u32,
}

impl Crowd {
    /// A wait begins to report what it has found.
    pub(super) fn begin(&mut self) {
        self.last = 0;
    }

    /// It reports an event of who carries this number.
    #[inline]
    pub(super) fn note(&mut self, window: &mut u32) {
        self.last += 1;
        if self.events == WINDOW {
            self.active = self.peers;
            (self.events, self.peers) = (0, 0);
            self.window = self.window.wrapping_add(1);
        }
        self.events += 1;
        self.peers += u32::from(*window != self.window);
        *window = self.window;
    }

    /// How many events to wait for; 1 is the usual wait.
    pub(super) fn wanted(&self) -> u32 {
        match self.last {
            LEAST.. => (self.active / SHARE).clamp(1, MOST),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is waited for when so many peers take turns, so many of them in each wait.
    fn wanted(peers: usize, each: usize) -> u32 {
        let mut crowd = Crowd::default();
        let mut windows = vec![0; peers];
        for turn in 0..1000 {
            crowd.begin();
            for event in 0..each {
                crowd.note(&mut windows[(turn * each + event) % peers]);
            }
        }
        crowd.wanted()
    }

    #[test]
    fn only_a_crowd_is_waited_for() {
        assert_eq!(wanted(1, 1), 1);
        assert_eq!(wanted(8, 8), 1);
        assert_eq!(wanted(50, 3), 1);
        assert_eq!(wanted(16, 4), 2);
        assert_eq!(wanted(50, 4), 8);
        assert_eq!(wanted(1000, 200), 8);
    }
}
