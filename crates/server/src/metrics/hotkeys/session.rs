//! Sessions of HOTKEYS START, as in Redis 8.6: the keys with the most processor time and the most network
//! bytes between two moments.
//!
//! The samples are the usual ones ([`super::sampler`]). During a session each worker also adds them to two
//! sketches without decay. There is at most one session. Its results stay until the next one begins or
//! HOTKEYS RESET.
//!
//! Lock order: the session, then the samplers of the workers.

use std::collections::HashMap;

use parking_lot::Mutex;
use sys::process::cpu_times;

use super::sketch::{Rank, Sketch, Use};
use crate::metrics::WorkerStats;

/// Bytes kept of a key's name.
const KEY_BYTES: usize = 1024;

/// Options of HOTKEYS START.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) cpu: bool,
    pub(crate) net: bool,
    /// Bound of the keys in each list.
    pub(crate) count: usize,
    /// Milliseconds after which the session ends.
    pub(crate) duration_ms: Option<i64>,
    /// The given ratio. It has no effect: the sampler takes its usual samples.
    pub(crate) sample_ratio: i64,
}

/// The session, running or ended.
#[derive(Default)]
pub(crate) struct Session(Mutex<Option<Running>>);

struct Running {
    asked: Asked,
    began_ms: i64,
    /// Totals of the server at the start of the session or at the last CONFIG RESETSTAT.
    base: Totals,
    /// Totals of the session before the last CONFIG RESETSTAT.
    before: Totals,
    /// End of the session (Unix, ms) and its totals.
    ended: Option<(i64, Totals)>,
}

/// Totals of the whole server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Run time of commands, microseconds.
    pub(crate) commands_us: u64,
    /// Bytes received and sent.
    pub(crate) net_bytes: u64,
    /// Processor time, milliseconds.
    pub(crate) user_ms: u64,
    pub(crate) system_ms: u64,
}

impl Totals {
    fn of<'w>(workers: impl Iterator<Item = &'w WorkerStats> + Clone) -> Totals {
        let times = cpu_times();
        let net_bytes = |stats: &WorkerStats| stats.input_bytes.get() + stats.output_bytes.get();
        Totals {
            commands_us: sys::clock::ticks_to_ns(workers.clone().map(WorkerStats::ticks).sum())
                / 1000,
            net_bytes: workers.map(net_bytes).sum(),
            user_ms: u64::try_from(times.user.as_millis()).unwrap_or(u64::MAX),
            system_ms: u64::try_from(times.system.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// `before` plus the difference to `base`.
    fn since(self, base: Totals, before: Totals) -> Totals {
        let field = |now: u64, base: u64, before: u64| now.saturating_sub(base) + before;
        Totals {
            commands_us: field(self.commands_us, base.commands_us, before.commands_us),
            net_bytes: field(self.net_bytes, base.net_bytes, before.net_bytes),
            user_ms: field(self.user_ms, base.user_ms, before.user_ms),
            system_ms: field(self.system_ms, base.system_ms, before.system_ms),
        }
    }
}

/// Results of a session, for HOTKEYS GET.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) asked: Asked,
    pub(crate) is_active: bool,
    pub(crate) began_ms: i64,
    pub(crate) duration_ms: i64,
    pub(crate) totals: Totals,
    /// Keys with their microseconds, in descending order.
    pub(crate) by_cpu: Vec<(Vec<u8>, u64)>,
    /// Bytes of requests and replies with keys.
    pub(crate) key_bytes: u64,
    /// Keys with their bytes, in descending order.
    pub(crate) by_net: Vec<(Vec<u8>, u64)>,
}

/// Error: a session is in progress.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Active;

impl Session {
    /// Begins a session and drops the results of the last one.
    ///
    /// # Errors
    ///
    /// A session is in progress.
    pub(crate) fn start<'w>(
        &self,
        workers: impl Iterator<Item = &'w WorkerStats> + Clone,
        asked: Asked,
        now_ms: i64,
    ) -> Result<(), Active> {
        let mut session = self.0.lock();
        if is_active(&session) {
            return Err(Active);
        }
        let ends_ms = asked.duration_ms.map(|duration| now_ms + duration);
        for stats in workers.clone() {
            stats.hot_keys.start_tally(ends_ms);
        }
        *session = Some(Running {
            asked,
            began_ms: now_ms,
            base: Totals::of(workers),
            before: Totals::default(),
            ended: None,
        });
        Ok(())
    }

    /// Whether a session is in progress.
    pub(crate) fn is_active(&self) -> bool {
        is_active(&self.0.lock())
    }

    /// Ends the session. Returns whether one was in progress.
    pub(crate) fn stop<'w>(
        &self,
        workers: impl Iterator<Item = &'w WorkerStats> + Clone,
        now_ms: i64,
    ) -> bool {
        match &mut *self.0.lock() {
            Some(running) if running.ended.is_none() => {
                running.end(workers, now_ms);
                true
            }
            _ => false,
        }
    }

    /// Ends the session at its end. The control thread calls this ten times a second.
    pub(crate) fn stop_if_due<'w>(
        &self,
        workers: impl Iterator<Item = &'w WorkerStats> + Clone,
        now_ms: i64,
    ) {
        if let Some(running) = &mut *self.0.lock()
            && running.ended.is_none()
            && let Some(duration_ms) = running.asked.duration_ms
            && now_ms >= running.began_ms + duration_ms
        {
            running.end(workers, running.began_ms + duration_ms);
        }
    }

    /// Drops the results of the last session.
    ///
    /// # Errors
    ///
    /// A session is in progress.
    pub(crate) fn reset<'w>(
        &self,
        workers: impl Iterator<Item = &'w WorkerStats> + Clone,
    ) -> Result<(), Active> {
        let mut session = self.0.lock();
        if is_active(&session) {
            return Err(Active);
        }
        *session = None;
        for stats in workers {
            stats.hot_keys.drop_tally();
        }
        Ok(())
    }

    /// Adds the totals so far to the session, before CONFIG RESETSTAT sets them to zero.
    pub(crate) fn note_reset_of_stats<'w>(
        &self,
        workers: impl Iterator<Item = &'w WorkerStats> + Clone,
    ) {
        if let Some(running) = &mut *self.0.lock() {
            let now = Totals::of(workers);
            running.before = now.since(running.base, running.before);
            // CONFIG RESETSTAT does not reset processor time.
            running.base = Totals {
                commands_us: 0,
                net_bytes: 0,
                ..now
            };
        }
    }

    /// Results of the session, if there is one.
    pub(crate) fn report<'w>(
        &self,
        workers: impl Iterator<Item = &'w WorkerStats> + Clone,
        now_ms: i64,
    ) -> Option<Report> {
        let session = self.0.lock();
        let running = session.as_ref()?;
        let (until_ms, totals) = running.ended.unwrap_or_else(|| {
            let totals = Totals::of(workers.clone()).since(running.base, running.before);
            (now_ms, totals)
        });
        let (mut by_cpu, mut by_net) = (HashMap::new(), HashMap::new());
        let mut key_bytes = 0;
        for stats in workers {
            stats.hot_keys.with_tally(|tally| {
                tally
                    .cpu
                    .weights(|key, weight| add(&mut by_cpu, key, weight));
                tally
                    .net
                    .weights(|key, weight| add(&mut by_net, key, weight));
                key_bytes += tally.net_bytes;
            });
        }
        Some(Report {
            asked: running.asked,
            is_active: running.ended.is_none(),
            began_ms: running.began_ms,
            duration_ms: (until_ms - running.began_ms).max(0),
            totals,
            by_cpu: most(by_cpu, running.asked.count),
            key_bytes,
            by_net: most(by_net, running.asked.count),
        })
    }
}

fn is_active(session: &Option<Running>) -> bool {
    session
        .as_ref()
        .is_some_and(|running| running.ended.is_none())
}

impl Running {
    fn end<'w>(&mut self, workers: impl Iterator<Item = &'w WorkerStats> + Clone, at_ms: i64) {
        for stats in workers.clone() {
            stats.hot_keys.stop_tally();
        }
        let totals = Totals::of(workers).since(self.base, self.before);
        self.ended = Some((at_ms, totals));
    }
}

/// Adds up keys of all databases, because the reply has no database.
fn add(keys: &mut HashMap<Vec<u8>, f64>, key: &[u8], weight: f64) {
    match keys.get_mut(key) {
        Some(known) => *known += weight,
        None => {
            keys.insert(key.to_vec(), weight);
        }
    }
}

/// The heaviest keys, in descending order. The least weight is one.
fn most(keys: HashMap<Vec<u8>, f64>, count: usize) -> Vec<(Vec<u8>, u64)> {
    let mut keys: Vec<(Vec<u8>, u64)> = keys
        .into_iter()
        .map(|(key, weight)| (key, (weight.round() as u64).max(1)))
        .collect();
    keys.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    keys.truncate(count);
    keys
}

/// Samples of one worker for a session.
pub(super) struct Tally {
    is_on: bool,
    ends_ms: Option<i64>,
    cpu: Sketch,
    net: Sketch,
    /// Bytes of all requests and replies with keys.
    net_bytes: u64,
}

impl Tally {
    pub(super) fn new(ends_ms: Option<i64>) -> Tally {
        // The time is constant, so no weight decays.
        let sketch = |rank| Sketch::with_key_bytes(rank, 0, KEY_BYTES);
        Tally {
            is_on: true,
            ends_ms,
            cpu: sketch(Rank::Time),
            net: sketch(Rank::Bytes),
            net_bytes: 0,
        }
    }

    /// Adds a sample while the session runs.
    pub(super) fn add(&mut self, used: &Use<'_>, now_ms: i64) {
        if !self.is_on || self.ends_ms.is_some_and(|ends_ms| now_ms >= ends_ms) {
            return;
        }
        self.cpu.add(used, 0);
        self.net.add(used, 0);
        self.net_bytes += used.bytes as u64;
    }

    pub(super) fn stop(&mut self) {
        self.is_on = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyspace::Key;

    fn used(key: &str, us: f64, bytes: f64) -> Use<'_> {
        Use {
            db: 0,
            key: Key {
                bytes: key.as_bytes(),
                hash: key
                    .bytes()
                    .fold(7_u64, |hash, byte| hash.wrapping_mul(31) + u64::from(byte)),
            },
            command: 1,
            operations: 1.0,
            bytes,
            us,
        }
    }

    fn weights(sketch: &Sketch) -> Vec<(String, f64)> {
        let mut all = Vec::new();
        sketch.weights(|key, weight| all.push((String::from_utf8_lossy(key).into_owned(), weight)));
        all.sort_by(|one, other| other.1.total_cmp(&one.1));
        all
    }

    #[test]
    fn a_tally_adds_until_it_is_stopped_or_its_time_is_over() {
        let mut tally = Tally::new(Some(1000));
        tally.add(&used("a", 3.0, 100.0), 0);
        tally.add(&used("b", 5.0, 10.0), 999);
        tally.add(&used("b", 5.0, 10.0), 1000);
        assert_eq!(weights(&tally.cpu), [("b".into(), 5.0), ("a".into(), 3.0)]);
        assert_eq!(
            weights(&tally.net),
            [("a".into(), 100.0), ("b".into(), 10.0)]
        );
        assert_eq!(tally.net_bytes, 110);
        tally.stop();
        tally.add(&used("a", 3.0, 100.0), 0);
        assert_eq!(tally.net_bytes, 110);
    }

    #[test]
    fn nothing_fades_and_long_names_are_whole() {
        let mut tally = Tally::new(None);
        let long = "x".repeat(KEY_BYTES + 5);
        for now_ms in [0, 100_000_000] {
            tally.add(&used(&long, 2.0, 1.0), now_ms);
        }
        assert_eq!(weights(&tally.cpu), [("x".repeat(KEY_BYTES), 4.0)]);
    }

    #[test]
    fn the_heaviest_keys_are_told_and_databases_are_one() {
        let mut keys = HashMap::new();
        for (key, weight) in [("a", 1.4), ("b", 0.2), ("c", 7.0), ("a", 1.4)] {
            add(&mut keys, key.as_bytes(), weight);
        }
        let told = most(keys, 2);
        assert_eq!(told, [(b"c".to_vec(), 7), (b"a".to_vec(), 3)]);
        assert_eq!(most(HashMap::from([(b"b".to_vec(), 0.2)]), 2)[0].1, 1);
    }

    #[test]
    fn totals_go_on_behind_a_reset_of_the_statistics() {
        let totals = |commands_us, net_bytes| Totals {
            commands_us,
            net_bytes,
            ..Totals::default()
        };
        let before = totals(50, 500).since(totals(10, 100), Totals::default());
        assert_eq!(
            totals(3, 4).since(Totals::default(), before),
            totals(43, 404)
        );
    }
}
