//! Throttle of password guesses: after some wrong passwords each further attempt from the same address waits
//! for its turn, longer each time.
//!
//! An attempt takes its turn *before* its password is checked, and the turns of one address follow each
//! other. So more connections give no more guesses, and the delay does not reveal a right password. An
//! attempt whose delay would be too long is refused at once, unchecked. A right password ends the throttle of
//! its address.
//!
//! Not here: the wait of a connection ([`crate::observe::waits`]) and its reply
//! (`command/connection/handshake`).
//!
//! Invariant: the table has at most [`LOGIN_ADDRESSES`] rows. A new row replaces the one of a small sample
//! that was quiet for longest.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::limits::{
    FREE_LOGINS, LOGIN_ADDRESSES, LOGIN_DELAY_MAX_MS, LOGIN_DELAY_MS, LOGIN_FORGET_MS,
    LOGIN_WAIT_MAX_MS,
};

/// Size of the sample of which one row is replaced.
const SAMPLE: usize = 16;

/// Origin of attempts. Addresses that one host may choose among are one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    V4([u8; 4]),
    /// The upper half of an address: one host may use any lower half.
    V6([u8; 8]),
    /// All unix sockets.
    Unix,
}

impl Origin {
    /// Origin of an address; `None` is a unix socket.
    pub(crate) fn of(address: Option<IpAddr>) -> Origin {
        match address.map(|address| address.to_canonical()) {
            None => Origin::Unix,
            Some(IpAddr::V4(address)) => Origin::V4(address.octets()),
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                Origin::V6([a, b, c, d, e, f, g, h])
            }
        }
    }
}

/// Time at which an attempt's password may be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Now,
    /// Later, Unix ms.
    At(i64),
    /// Never: too many attempts are ahead of it.
    Never,
}

/// State of one origin that has sent wrong passwords.
#[derive(Clone, Copy, Debug)]
struct Row {
    failures: u32,
    /// Turn of the next attempt, Unix ms.
    next_ms: i64,
    /// Last wrong password, Unix ms.
    last_ms: i64,
}

/// Table of origins with wrong passwords, and its counters.
#[derive(Default)]
pub(crate) struct Logins {
    rows: Mutex<HashMap<Origin, Row>>,
    /// Wrong passwords, delayed attempts, and attempts that were refused unchecked.
    pub(crate) failed: AtomicU64,
    pub(crate) delayed: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// Delay of the next attempt after `failures` wrong passwords, ms.
fn delay_ms(failures: u32) -> i64 {
    let beyond = failures.saturating_sub(FREE_LOGINS);
    match beyond {
        0 => 0,
        _ => (LOGIN_DELAY_MS << (beyond - 1).min(16)).min(LOGIN_DELAY_MAX_MS),
    }
}

impl Logins {
    /// Takes the next turn of an origin. Returns its time.
    pub(crate) fn take_turn(&self, origin: Origin, now_ms: i64) -> Turn {
        let mut rows = self.rows.lock();
        let Some(row) = rows.get_mut(&origin) else {
            return Turn::Now;
        };
        if now_ms - row.last_ms > LOGIN_FORGET_MS {
            rows.remove(&origin);
            return Turn::Now;
        }
        // After the clock was set back, turns start again from now.
        if row.next_ms > now_ms + LOGIN_WAIT_MAX_MS + LOGIN_DELAY_MAX_MS {
            row.next_ms = now_ms;
        }
        let turn_ms = row.next_ms.max(now_ms);
        if turn_ms > now_ms + LOGIN_WAIT_MAX_MS {
            self.refused.fetch_add(1, Relaxed);
            return Turn::Never;
        }
        row.next_ms = turn_ms + delay_ms(row.failures);
        if turn_ms == now_ms {
            return Turn::Now;
        }
        self.delayed.fetch_add(1, Relaxed);
        Turn::At(turn_ms)
    }

    /// Takes a turn for an attempt that can't wait. Returns whether it is now.
    pub(crate) fn has_turn_now(&self, origin: Origin, now_ms: i64) -> bool {
        let next_ms = self.rows.lock().get(&origin).map(|row| row.next_ms);
        if next_ms.is_some_and(|next_ms| next_ms > now_ms) {
            self.refused.fetch_add(1, Relaxed);
            return false;
        }
        self.take_turn(origin, now_ms) == Turn::Now
    }

    /// Counts a wrong password. Returns whether it is the one after which attempts have to wait.
    pub(crate) fn note_failure(&self, origin: Origin, now_ms: i64) -> bool {
        self.failed.fetch_add(1, Relaxed);
        let mut rows = self.rows.lock();
        if rows.len() >= LOGIN_ADDRESSES && !rows.contains_key(&origin) {
            let some = rows.iter().take(SAMPLE);
            let quietest = some.min_by_key(|(_, row)| row.last_ms);
            if let Some(origin) = quietest.map(|(origin, _)| *origin) {
                rows.remove(&origin);
            }
        }
        let row = rows.entry(origin).or_insert(Row {
            failures: 0,
            next_ms: 0,
            last_ms: 0,
        });
        row.failures = row.failures.saturating_add(1);
        row.last_ms = now_ms;
        row.next_ms = row.next_ms.max(now_ms + delay_ms(row.failures));
        row.failures == FREE_LOGINS + 1
    }

    /// Ends the throttle after a right password.
    pub(crate) fn note_success(&self, origin: Origin) {
        self.rows.lock().remove(&origin);
    }

    /// Number of rows.
    pub(crate) fn addresses(&self) -> usize {
        self.rows.lock().len()
    }

    /// Sets the counters to zero.
    pub(crate) fn reset_counters(&self) {
        for counter in [&self.failed, &self.delayed, &self.refused] {
            counter.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Origin {
        Origin::of(Some(text.parse().expect("an address")))
    }

    #[test]
    fn origins_are_what_one_host_has() {
        assert_eq!(address("10.0.0.1"), address("::ffff:10.0.0.1"));
        assert_ne!(address("10.0.0.1"), address("10.0.0.2"));
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:1"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(Origin::of(None), Origin::Unix);
    }

    #[test]
    fn turns_come_one_after_the_other_and_ever_later() {
        let (logins, origin) = (Logins::default(), address("10.0.0.1"));
        for _ in 0..FREE_LOGINS {
            assert_eq!(logins.take_turn(origin, 1000), Turn::Now);
            logins.note_failure(origin, 1000);
        }
        // The first attempt beyond the free ones is checked, and makes the next wait.
        assert_eq!(logins.take_turn(origin, 1000), Turn::Now);
        logins.note_failure(origin, 1000);
        let mut now_ms = 1000;
        let mut waits = Vec::new();
        for _ in 0..10 {
            let Turn::At(turn_ms) = logins.take_turn(origin, now_ms) else {
                panic!("it has to wait");
            };
            waits.push(turn_ms - now_ms);
            now_ms = turn_ms;
            logins.note_failure(origin, now_ms);
        }
        assert_eq!(waits[..4], [1, 2, 4, 8].map(|times| times * LOGIN_DELAY_MS));
        assert!(waits.is_sorted() && waits[9] == LOGIN_DELAY_MAX_MS);
        // Other origins are not delayed, and this one is forgotten.
        assert_eq!(logins.take_turn(address("10.0.0.2"), now_ms), Turn::Now);
        let later = now_ms + LOGIN_FORGET_MS + 1;
        assert_eq!(logins.take_turn(origin, later), Turn::Now);
        assert_eq!(logins.addresses(), 0);
    }

    #[test]
    fn many_connections_have_no_more_turns_than_one() {
        let (logins, origin) = (Logins::default(), Origin::Unix);
        for _ in 0..100 {
            logins.note_failure(origin, 0);
        }
        let turns: Vec<Turn> = (0..20_000).map(|_| logins.take_turn(origin, 0)).collect();
        let waiting = turns.iter().filter(|turn| matches!(turn, Turn::At(_)));
        let most = LOGIN_WAIT_MAX_MS / LOGIN_DELAY_MAX_MS;
        assert_eq!(waiting.count() as i64, most);
        assert_eq!(logins.delayed.load(Relaxed) as i64, most);
        assert_eq!(logins.refused.load(Relaxed), 20_000 - most as u64);
        // A clock that goes back by a day delays no attempt by a day.
        assert_eq!(logins.take_turn(origin, -86_400_000), Turn::Now);
        // An attempt that can't wait takes no turn from those that can.
        assert!(!logins.has_turn_now(origin, -86_400_000));
        logins.note_success(origin);
        assert!(logins.has_turn_now(origin, 0));
        assert_eq!(logins.addresses(), 0);
    }

    #[test]
    fn the_table_has_a_bound() {
        let logins = Logins::default();
        for number in 0..LOGIN_ADDRESSES as u32 + 1000 {
            logins.note_failure(Origin::V4(number.to_be_bytes()), i64::from(number));
        }
        assert_eq!(logins.addresses(), LOGIN_ADDRESSES);
    }
}
