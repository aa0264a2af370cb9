//! The script that keeps all others from the data, for SCRIPT KILL, SHUTDOWN and the answer BUSY.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::limits::SCRIPT_PAUSE;

/// State of a script.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum State {
    None,
    /// It runs and has changed no data.
    Clean,
    /// It has changed data, so it runs to its end.
    Written,
    /// It is to stop.
    Killed,
}

/// Why no script was killed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unkilled {
    /// None runs.
    None,
    /// A function runs, and not a script; or the other way round.
    Other,
    /// It has changed data.
    HasWritten,
}

/// A function that runs, and its request.
#[derive(Clone)]
pub(crate) struct RunningFunction {
    pub(crate) name: String,
    pub(crate) words: Vec<Vec<u8>>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct RunningScript {
    state: AtomicU8,
    /// It is a function of a library.
    is_function: AtomicBool,
    /// The function, once it lasts.
    function: Mutex<Option<RunningFunction>>,
    /// When it began (monotonic ms).
    since_ms: AtomicI64,
    /// Scripts that hold shards, have changed data, and last.
    lasting: AtomicUsize,
    /// Workers that are kept outside of their turns by scripts of others.
    outside: AtomicUsize,
    /// The process ends at once, beside any script.
    abandoned: AtomicBool,
}

fn now_ms() -> i64 {
    (sys::clock::monotonic_ns() / 1_000_000).cast_signed()
}

impl RunningScript {
    fn swap(&self, from: State, to: State) -> bool {
        let swapped = self
            .state
            .compare_exchange(from as u8, to as u8, SeqCst, SeqCst);
        swapped.is_ok()
    }

    fn is(&self, state: State) -> bool {
        self.state.load(SeqCst) == state as u8
    }

    /// A script begins, or a function. No other one runs.
    pub(crate) fn begin(&self, is_function: bool) {
        self.is_function.store(is_function, SeqCst);
        self.since_ms.store(now_ms(), SeqCst);
        self.state.store(State::Clean as u8, SeqCst);
    }

    /// It has ended.
    pub(crate) fn end(&self) {
        self.state.store(State::None as u8, SeqCst);
        if self.is_function() {
            *self.function.lock() = None;
        }
    }

    /// Whether it is a function.
    pub(crate) fn is_function(&self) -> bool {
        self.is_function.load(SeqCst)
    }

    /// Shows a function that lasts.
    pub(crate) fn show(&self, function: RunningFunction) {
        *self.function.lock() = Some(function);
    }

    /// The function that runs, if it lasts.
    pub(crate) fn function(&self) -> Option<RunningFunction> {
        self.function.lock().clone()
    }

    /// Whether one runs.
    pub(crate) fn any(&self) -> bool {
        !self.is(State::None) || self.lasting.load(SeqCst) > 0
    }

    /// Notes that a script that holds shards and has changed data lasts, or that it has ended.
    pub(crate) fn note_lasting(&self, lasts: bool) {
        match lasts {
            true => self.lasting.fetch_add(1, SeqCst),
            false => self.lasting.fetch_sub(1, SeqCst),
        };
    }

    /// Whether it is to stop.
    pub(crate) fn is_killed(&self) -> bool {
        self.is(State::Killed)
    }

    /// Notes that it is about to change data. Returns whether it may: not once it was killed.
    pub(crate) fn note_write(&self) -> bool {
        self.swap(State::Clean, State::Written) || !self.is_killed()
    }

    /// Kills it.
    ///
    /// # Errors
    /// None runs, or one of the other kind, or it has changed data.
    pub(crate) fn kill(&self, is_function: bool) -> Result<(), Unkilled> {
        if !self.is(State::None) && self.is_function() != is_function {
            return Err(Unkilled::Other);
        }
        match self.swap(State::Clean, State::Killed) || self.is_killed() {
            true => Ok(()),
            false if self.any() => Err(Unkilled::HasWritten),
            false => Err(Unkilled::None),
        }
    }

    /// Milliseconds for which it has run and kept all others outside; 0 if none does.
    pub(crate) fn ms(&self) -> i64 {
        match !self.is(State::None) {
            true => now_ms() - self.since_ms.load(SeqCst),
            false => 0,
        }
    }

    /// Notes that a worker is kept outside, or is inside again.
    pub(crate) fn note_outside(&self, is_outside: bool) {
        match is_outside {
            true => self.outside.fetch_add(1, SeqCst),
            false => self.outside.fetch_sub(1, SeqCst),
        };
    }

    /// Waits until the workers that the last script has kept outside have begun a turn, for [`SCRIPT_PAUSE`]
    /// at most.
    pub(crate) fn let_others_in(&self) {
        let began = Instant::now();
        while self.outside.load(SeqCst) > 0 && began.elapsed() < SCRIPT_PAUSE {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Asks for the end of the process, beside any script.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, SeqCst);
    }

    /// Whether that was asked for.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_killed_before_its_first_write_alone() {
        let running = RunningScript::default();
        assert_eq!(running.kill(false), Err(Unkilled::None));
        running.begin(false);
        assert!(running.any() && !running.is_killed());
        assert!(running.note_write() && running.note_write());
        assert_eq!(running.kill(false), Err(Unkilled::HasWritten));
        running.end();
        running.begin(false);
        assert_eq!(running.kill(false), Ok(()));
        assert_eq!(running.kill(false), Ok(()));
        assert!(running.is_killed() && !running.note_write());
        running.end();
        assert!(!running.any() && running.ms() == 0);
        running.begin(true);
        assert_eq!(running.kill(false), Err(Unkilled::Other));
        assert_eq!(running.kill(true), Ok(()));
        running.end();
    }
}
