//! CLIENT PAUSE.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// End of the pause (Unix ms) and its kind in one word, so that both change together. The lowest bit is the
/// kind.
#[derive(Default)]
pub(crate) struct Pause(AtomicI64);

/// Commands that CLIENT PAUSE delays, by ascending strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PauseKind {
    /// Commands that may write.
    Write = 0,
    /// Every command.
    All = 1,
}

impl Pause {
    /// End (Unix ms) and kind of the pause at `now`, if there is one.
    #[inline]
    pub(crate) fn until(&self, now: i64) -> Option<(i64, PauseKind)> {
        Pause::unpack(self.0.load(Relaxed), now)
    }

    #[inline]
    fn unpack(word: i64, now: i64) -> Option<(i64, PauseKind)> {
        let (until, kind) = (
            word >> 1,
            if word & 1 == 0 {
                PauseKind::Write
            } else {
                PauseKind::All
            },
        );
        (until > now).then_some((until, kind))
    }

    /// Begins or extends a pause: the later end and the stricter kind win.
    pub(crate) fn extend(&self, now: i64, until_ms: i64, kind: PauseKind) {
        let extended = |word| {
            let asked = (until_ms, kind);
            let (until, kind) = Pause::unpack(word, now)
                .map_or(asked, |held| (held.0.max(until_ms), held.1.max(kind)));
            // An end beyond the range of the word is never reached anyway.
            Some(until.min(i64::MAX >> 1) << 1 | kind as i64)
        };
        let _ = self.0.fetch_update(Relaxed, Relaxed, extended);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        self.0.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_extended_while_it_holds_and_replaced_when_it_is_over() {
        use PauseKind::{All, Write};
        let pause = Pause::default();
        assert_eq!(pause.until(0), None);
        pause.extend(1000, 2000, Write);
        assert_eq!(
            (pause.until(1999), pause.until(2000)),
            (Some((2000, Write)), None)
        );
        pause.extend(1500, 1600, All);
        assert_eq!(pause.until(1500), Some((2000, All)));
        pause.extend(1500, 3000, Write);
        assert_eq!(pause.until(1500), Some((3000, All)));
        pause.extend(3000, 4000, Write);
        assert_eq!(pause.until(3000), Some((4000, Write)));
        pause.end();
        assert_eq!(pause.until(3000), None);
        pause.extend(5000, 5000, All);
        assert_eq!(pause.until(5000), None);
        pause.extend(5000, i64::MAX, All);
        assert_eq!(pause.until(5000), Some((i64::MAX >> 1, All)));
    }
}
