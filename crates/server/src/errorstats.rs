//! Error replies by their code, for INFO errorstats. Errors are not the hot path: a lock will do.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Codes kept; a client can make up as many as it likes through scripts, so there is a bound.
const KEPT: usize = 128;

/// See the module.
#[derive(Default)]
pub(crate) struct ErrorStats(Mutex<BTreeMap<String, u64>>);

impl ErrorStats {
    /// Counts an error.
    #[cold]
    pub(crate) fn add(&self, code: &str) {
        let mut counts = self.0.lock();
        if let Some(count) = counts.get_mut(code) {
            *count += 1;
        } else if counts.len() < KEPT {
            counts.insert(code.to_string(), 1);
        }
    }

    pub(crate) fn all(&self) -> Vec<(String, u64)> {
        self.0
            .lock()
            .iter()
            .map(|(code, &count)| (code.clone(), count))
            .collect()
    }

    pub(crate) fn reset(&self) {
        self.0.lock().clear();
    }
}
