//! How many keys a walk has looked at, in the words of redis-cli.

use std::io::Write;

use super::walk::Walk;
use crate::failure::Result;

/// See the module.
pub(super) struct Sampled {
    pub(super) keys: u64,
}

impl Sampled {
    /// Says which keys are looked for.
    pub(super) fn begin(out: &mut dyn Write, which: &str) -> Result<Sampled> {
        write!(
            out,
            "\n# Scanning the entire keyspace to find {which} keys as well as\n\
             # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
             # per 100 SCAN commands (not usually needed).\n\n"
        )?;
        Ok(Sampled { keys: 0 })
    }

    /// Counts one, and says so once in a million.
    pub(super) fn add(&mut self, out: &mut dyn Write, percent: f64) -> Result {
        self.keys += 1;
        if self.keys.is_multiple_of(1_000_000) {
            writeln!(out, "[{percent:05.2}%] Sampled {} keys so far", self.keys)?;
        }
        Ok(())
    }

    /// Begins the summary.
    pub(super) fn end(&self, out: &mut dyn Write, walk: &Walk<'_>) -> Result {
        write!(out, "\n-------- summary -------\n\n")?;
        if walk.is_interrupted {
            write!(out, "[{:05.2}%] ", walk.percent())?;
        }
        writeln!(out, "Sampled {} keys in the keyspace!", self.keys)?;
        Ok(())
    }
}
