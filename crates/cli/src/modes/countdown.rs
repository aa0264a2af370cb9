//! How many lines a mode prints.

use crate::flags::Options;

/// Counts lines down to the end that was asked for, if one was.
pub(crate) struct Countdown {
    left: Option<u64>,
}

impl Countdown {
    pub(crate) fn new(options: &Options) -> Countdown {
        let left = options.repeat.and_then(|count| u64::try_from(count).ok());
        Countdown { left }
    }

    /// Counts one; whether it was the last.
    pub(crate) fn is_last(&mut self) -> bool {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
        self.left == Some(0)
    }
}
