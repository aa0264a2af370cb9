//! Error replies by code, for INFO errorstats. Errors are not on the hot path, so a lock is enough.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Codes kept, and bytes kept of a code. Scripts can make up any number of codes of any length.
const KEPT: usize = 128;
const KEPT_BYTES: usize = 64;

/// Counts of error replies by code.
#[derive(Default)]
pub(crate) struct ErrorStats(Mutex<BTreeMap<String, u64>>);

impl ErrorStats {
    /// Counts an error.
    #[cold]
    pub(crate) fn add(&self, code: &str) {
        let mut ends = (0..=code.len().min(KEPT_BYTES)).rev();
        let end = ends.find(|&end| code.is_char_boundary(end));
        let code = &code[..end.unwrap_or_default()];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_the_number_nor_the_length_of_codes_is_without_bound() {
        let stats = ErrorStats::default();
        for number in 0..1000 {
            stats.add(&format!("{number:04}{}", "X".repeat(100_000)));
            stats.add("ERR");
        }
        let all = stats.all();
        assert_eq!(all.len(), KEPT);
        assert!(all.iter().all(|(code, _)| code.len() <= KEPT_BYTES));
        assert!(all.contains(&("ERR".into(), 1000)));
    }
}
