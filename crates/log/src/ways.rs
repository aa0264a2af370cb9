//! Which way bytes go to the disk: through the page cache or past it.
//!
//! Little goes through it: it costs least there. Much goes past it, as long as the disk keeps up. When it
//! does not, the page cache can be much quicker, because it is memory; but filling fresh pages can be dear,
//! takes the processor away from those whose writes these are, and a cache that is full of what has to be
//! written waits for the disk too. So then it is tried now and then, and taken as long as it is several times
//! as quick.

use crate::limits::{BEHIND_SHARE, DIRECT_SHARE, WAY_RETRY};

/// How bytes go to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Through the page cache.
    Cached,
    /// Past it: whole blocks.
    Direct,
}

impl Way {
    fn other(self) -> Way {
        match self {
            Way::Cached => Way::Direct,
            Way::Direct => Way::Cached,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    /// Nanoseconds per MiB, on an average that forgets; 0 when it was not tried. By [`Way`].
    ns: [u64; 2],
    /// Choices made while behind.
    choices: u32,
}

/// How many times as quick the page cache has to be.
const QUICKER: u64 = 4;

/// Writes of less say little about a way.
const MEASURED_MIN: u64 = 64 << 10;

impl Ways {
    /// The way for `waiting` bytes, of a ring of `ring` bytes.
    pub(crate) fn choose(&mut self, waiting: u64, ring: u64) -> Way {
        if waiting < ring / DIRECT_SHARE {
            return Way::Cached;
        }
        if waiting <= ring / BEHIND_SHARE {
            return Way::Direct;
        }
        let [cached, direct] = self.ns;
        let usual = if cached != 0 && cached * QUICKER < direct {
            Way::Cached
        } else {
            Way::Direct
        };
        self.choices = self.choices.wrapping_add(1);
        if self.choices.is_multiple_of(WAY_RETRY) {
            usual.other()
        } else {
            usual
        }
    }

    /// A write of `bytes` bytes took `ns`.
    pub(crate) fn note(&mut self, way: Way, bytes: u64, ns: u64) {
        if bytes >= MEASURED_MIN {
            let own = &mut self.ns[way as usize];
            let now = (ns << 20) / bytes;
            *own = if *own == 0 {
                now.max(1)
            } else {
                (*own * 7 + now) / 8
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: u64 = 16 << 20;

    #[test]
    fn little_is_cached_and_much_is_not() {
        let mut ways = Ways::default();
        assert_eq!(ways.choose(1, RING), Way::Cached);
        for waiting in [RING / DIRECT_SHARE, RING / BEHIND_SHARE, RING] {
            assert_eq!(ways.choose(waiting, RING), Way::Direct);
        }
    }

    #[test]
    fn whoever_is_behind_takes_the_page_cache_if_it_is_much_quicker() {
        let mut ways = Ways::default();
        let cached = |ways: &mut Ways| {
            let cached = (0..WAY_RETRY * 4).filter(|_| ways.choose(RING, RING) == Way::Cached);
            cached.count() as u32
        };
        // So little that its time says nothing.
        ways.note(Way::Direct, 4096, 1 << 40);
        ways.note(Way::Direct, 1 << 20, 10_000);
        assert_eq!(cached(&mut ways), 4);
        ways.note(Way::Cached, 1 << 20, 1000);
        assert_eq!(cached(&mut ways), WAY_RETRY * 4 - 4);
        for _ in 0..30 {
            ways.note(Way::Cached, 2 << 20, 20_000);
        }
        assert_eq!(cached(&mut ways), 4);
    }
}
