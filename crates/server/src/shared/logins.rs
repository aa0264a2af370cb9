//! Guesses at the password: after some wrong ones every further attempt from the same address waits for its
//! turn, longer each time.
//!
//! An attempt takes its turn *before* its password is looked at, and turns of one address come one after the
//! other: more connections give no more guesses, and a right password is not told from a wrong one by the
//! time it takes. Whoever would have to wait too long is refused at once, without a look at the password. A
//! right password ends it.
//!
//! What does not live here: how a connection waits ([`crate::observe::waits`]), and what it answers
//! (`command/connection/handshake`).
//!
//! Invariant: the table has [`LOGIN_ADDRESSES`] rows at most. Where another is needed, the one goes that was
//! quiet for longest, of a few.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::limits::{
    FREE_LOGINS, LOGIN_ADDRESSES, LOGIN_DELAY_MAX_MS, LOGIN_DELAY_MS, LOGIN_FORGET_MS,
    LOGIN_WAIT_MAX_MS,
};

/// Rows that are compared where one has to go.
const SAMPLE: usize = 16;

/// Where attempts come from: who may choose between many addresses of a network counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    V4([u8; 4]),
    /// The first half of an address: the rest of it belongs to one host, which may take any.
    V6([u8; 8]),
    /// Any unix socket.
    Unix,
}

impl Origin {
    /// That of an address; none is a unix socket.
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

/// When an attempt may be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Now,
    /// Then (Unix, ms).
    At(i64),
    /// Not at all: there are too many before it.
    Never,
}

/// An address from which wrong passwords came.
#[derive(Clone, Copy, Debug)]
struct Row {
    failures: u32,
    /// When the next attempt has its turn (Unix, ms).
    next_ms: i64,
    /// When the last wrong one came.
    last_ms: i64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Logins {
    rows: Mutex<HashMap<Origin, Row>>,
    /// Wrong passwords, attempts that had to wait, and those that were refused unseen.
    pub(crate) failed: AtomicU64,
    pub(crate) delayed: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// How long the next attempt waits after so many failures.
fn delay_ms(failures: u32) -> i64 {
    let beyond = failures.saturating_sub(FREE_LOGINS);
    match beyond {
        0 => 0,
        _ => (LOGIN_DELAY_MS << (beyond - 1).min(16)).min(LOGIN_DELAY_MAX_MS),
    }
}

impl Logins {
    /// Takes a turn for an attempt that comes now.
    pub(crate) fn take_turn(&self, origin: Origin, now_ms: i64) -> Turn {
        let mut rows = self.rows.lock();
        let Some(row) = rows.get_mut(&origin) else {
            return Turn::Now;
        };
        if now_ms - row.last_ms > LOGIN_FORGET_MS {
            rows.remove(&origin);
            return Turn::Now;
        }
        // A clock that was set back is no reason to wait for it.
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

    /// Takes a turn for an attempt that cannot wait. Whether there is one now.
    pub(crate) fn has_turn_now(&self, origin: Origin, now_ms: i64) -> bool {
        let next_ms = self.rows.lock().get(&origin).map(|row| row.next_ms);
        if next_ms.is_some_and(|next_ms| next_ms > now_ms) {
            self.refused.fetch_add(1, Relaxed);
            return false;
        }
        self.take_turn(origin, now_ms) == Turn::Now
    }

    /// The password was wrong. Returns whether attempts from there have to wait from here on.
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

    /// The password was right.
    pub(crate) fn note_success(&self, origin: Origin) {
        self.rows.lock().remove(&origin);
    }

    /// Addresses that are remembered.
    pub(crate) fn addresses(&self) -> usize {
        self.rows.lock().len()
    }

    /// Sets the counters back to nothing.
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
        // The first that is too much is looked at, and makes the next wait.
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
        // Others are not held up, and this one is forgotten.
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
        // A clock that goes back by a day lets nobody wait for a day.
        assert_eq!(logins.take_turn(origin, -86_400_000), Turn::Now);
        // Who cannot wait takes no turn from those who do.
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
