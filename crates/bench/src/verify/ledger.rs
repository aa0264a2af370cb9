//! What was sent, what was acknowledged and when; and the judgement of what was found.
//!
//! Invariants, of each group:
//! 1. Versions are sent in order, on one connection at a time, so they are executed and acknowledged in
//!    order: what is acknowledged never goes back.
//! 2. What a server may have after a crash is the acknowledged version, or a later one that was sent
//!    since the last reading: its acknowledgement got lost with the connection.
//! 3. What was found is what counts from then on, so that each loss is reported once.

use super::history::History;
use crate::load::sizes::Sizes;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

/// Acknowledgements older than this are not told apart: they must not be lost in any class.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The most acknowledgements that are remembered of a group.
const MAX_REMEMBERED: usize = 256;

/// The notes on one group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Notes {
    /// The newest version that was sent.
    sent: u64,
    /// The newest that was acknowledged, or found.
    acknowledged: u64,
    /// The first that was sent since the last reading.
    first: u64,
    /// Versions and when they were acknowledged, in milliseconds of the calendar.
    recent: VecDeque<(u64, i64)>,
}

/// The notes on all groups.
#[derive(Debug)]
pub(super) struct Ledger {
    groups: Vec<Notes>,
    /// When the server was lost, in milliseconds of the calendar; while it is there, now.
    lost_at_ms: Option<i64>,
}

/// What was found of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// All keys in one version.
    Version(u64),
    /// None of the keys.
    Nothing,
}

/// What that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As acknowledged, or newer.
    Good,
    /// Acknowledged writes are gone: how many, and how long before the loss of the server the oldest
    /// of them was acknowledged; `None` if that is too long ago to be remembered.
    Lost { writes: u64, age: Option<Duration> },
    /// A version that was never sent, or was undone by a crash.
    Impossible,
}

/// A ledger in a file.
#[derive(Serialize, Deserialize)]
struct Saved {
    format: u32,
    run: u64,
    group_keys: u64,
    /// Sizes with weights; a range is written as its ends.
    sizes: SavedSizes,
    lost_at_ms: Option<i64>,
    groups: Vec<Notes>,
}

#[derive(Serialize, Deserialize)]
enum SavedSizes {
    Fixed(u64),
    Range(u64, u64),
    List(Vec<(u64, u64)>),
}

impl Ledger {
    /// A ledger without any notes.
    pub(super) fn new(groups: u64) -> Ledger {
        let notes = Notes {
            first: 1,
            ..Notes::default()
        };
        Ledger {
            groups: vec![notes; groups as usize],
            lost_at_ms: None,
        }
    }

    /// The next version of a group, which is being sent.
    pub(super) fn send(&mut self, group: u64) -> u64 {
        let notes = &mut self.groups[group as usize];
        notes.sent += 1;
        notes.sent
    }

    /// A version was acknowledged.
    pub(super) fn acknowledge(&mut self, group: u64, version: u64, now_ms: i64) {
        let notes = &mut self.groups[group as usize];
        notes.acknowledged = notes.acknowledged.max(version);
        notes.recent.push_back((version, now_ms));
        let horizon = now_ms - REMEMBERED.as_millis() as i64;
        while notes.recent.len() > MAX_REMEMBERED
            || notes.recent.front().is_some_and(|(_, at)| *at < horizon)
        {
            notes.recent.pop_front();
        }
    }

    /// The server is gone.
    pub(super) fn note_loss(&mut self, now_ms: i64) {
        self.lost_at_ms = Some(now_ms);
    }

    /// What it means that this was found of a group, which counts from now on.
    pub(super) fn judge(&mut self, history: &History, group: u64, found: Found) -> Verdict {
        let lost_at_ms = self.lost_at_ms.unwrap_or_else(sys::clock::realtime_ms);
        let notes = &mut self.groups[group as usize];
        let is_possible = |version: u64| {
            version == notes.acknowledged
                || (version > notes.acknowledged && version >= notes.first && version <= notes.sent)
        };
        let version = match found {
            Found::Version(version) if version > notes.acknowledged && !is_possible(version) => {
                return Verdict::Impossible;
            }
            Found::Version(version) if history.is_deletion(group, version) => {
                return Verdict::Impossible;
            }
            Found::Version(version) => version,
            Found::Nothing => deletion(history, group, notes, is_possible),
        };
        let verdict = match version >= notes.acknowledged {
            true => Verdict::Good,
            false => Verdict::Lost {
                writes: notes.acknowledged - version,
                age: age(notes, version + 1, lost_at_ms),
            },
        };
        notes.acknowledged = version;
        notes.first = notes.sent + 1;
        notes.recent.clear();
        verdict
    }

    /// All groups were read: the server is there again.
    pub(super) fn note_return(&mut self) {
        self.lost_at_ms = None;
    }

    /// Acknowledged writes in all.
    #[cfg(test)]
    fn acknowledged(&self, group: u64) -> u64 {
        self.groups[group as usize].acknowledged
    }

    /// Writes the notes into a file.
    ///
    /// # Errors
    /// The file cannot be written; the text names it.
    pub(super) fn write(&self, history: &History, path: &Path) -> Result<(), String> {
        let (run, _, group_keys, sizes) = history.parts();
        let saved = Saved {
            format: 1,
            run,
            group_keys,
            sizes: match sizes {
                Sizes::Fixed(size) => SavedSizes::Fixed(*size),
                Sizes::Range(low, high) => SavedSizes::Range(*low, *high),
                Sizes::List(list) => SavedSizes::List(list.clone()),
            },
            lost_at_ms: self.lost_at_ms,
            groups: self.groups.clone(),
        };
        let text = serde_json::to_string(&saved).map_err(|error| error.to_string())?;
        std::fs::write(path, text)
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))
    }

    /// Reads the notes of an earlier run, and the history that they are about.
    ///
    /// # Errors
    /// The file cannot be read or holds something else; the text names it.
    pub(super) fn read(path: &Path) -> Result<(History, Ledger), String> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{name} cannot be read: {error}"))?;
        let saved: Saved = serde_json::from_str(&text)
            .map_err(|error| format!("{name} is no file of --verify-file: {error}"))?;
        let sizes = match saved.sizes {
            SavedSizes::Fixed(size) => Sizes::Fixed(size),
            SavedSizes::Range(low, high) => Sizes::Range(low, high),
            SavedSizes::List(list) => Sizes::List(list),
        };
        let groups = saved.groups.len() as u64;
        let history = History::of(saved.run, groups, saved.group_keys, sizes);
        let ledger = Ledger {
            groups: saved.groups,
            lost_at_ms: saved.lost_at_ms,
        };
        Ok((history, ledger))
    }
}

/// Which deletion explains that nothing is there: the newest that is possible, or else the newest
/// before what was acknowledged.
fn deletion(
    history: &History,
    group: u64,
    notes: &Notes,
    is_possible: impl Fn(u64) -> bool,
) -> u64 {
    let mut version = history.deletion_before(group, notes.sent);
    while version > notes.acknowledged && !is_possible(version) {
        version = history.deletion_before(group, version - 1);
    }
    version
}

/// How long before the loss a version was acknowledged.
fn age(notes: &Notes, version: u64, lost_at_ms: i64) -> Option<Duration> {
    let (_, at_ms) = notes.recent.iter().find(|(known, _)| *known == version)?;
    Some(Duration::from_millis(
        lost_at_ms.saturating_sub(*at_ms).max(0).unsigned_abs(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        History::of(7, 4, 3, Sizes::Fixed(50))
    }

    /// Group 1 with versions 1 to `sent`, those up to `acknowledged` acknowledged a second apart.
    fn ledger(sent: u64, acknowledged: u64) -> Ledger {
        let mut ledger = Ledger::new(4);
        for version in 1..=sent {
            assert_eq!(ledger.send(1), version);
        }
        for version in 1..=acknowledged {
            ledger.acknowledge(1, version, 1_000 * version as i64);
        }
        ledger.note_loss(1_000 * acknowledged as i64 + 500);
        ledger
    }

    /// A version from `from` on that deletes, or doesn't.
    fn version(from: u64, deletes: bool) -> u64 {
        (from..)
            .find(|&version| history().is_deletion(1, version) == deletes)
            .expect("versions go on for ever")
    }

    #[test]
    fn what_was_acknowledged_or_sent_later_is_good() {
        let (low, high) = (version(5, false), version(9, false));
        for found in [low, high] {
            let mut ledger = ledger(high, low);
            let verdict = ledger.judge(&history(), 1, Found::Version(found));
            assert_eq!(verdict, Verdict::Good);
            assert_eq!(ledger.acknowledged(1), found);
        }
        let mut ledger = Ledger::new(4);
        assert_eq!(ledger.judge(&history(), 2, Found::Nothing), Verdict::Good);
    }

    #[test]
    fn an_older_version_is_a_loss_with_an_age() {
        let found = version(3, false);
        let mut ledger = ledger(30, 30);
        let verdict = ledger.judge(&history(), 1, Found::Version(found));
        let age_ms = 30_500 - 1_000 * (found + 1);
        let expected = Verdict::Lost {
            writes: 30 - found,
            age: Some(Duration::from_millis(age_ms)),
        };
        assert_eq!(verdict, expected);
        // It is reported once.
        let verdict = ledger.judge(&history(), 1, Found::Version(found));
        assert_eq!(verdict, Verdict::Good);
    }

    #[test]
    fn nothing_is_what_a_deletion_leaves() {
        let deletion = version(1, true);
        let mut good = ledger(deletion, deletion - 1);
        assert_eq!(good.judge(&history(), 1, Found::Nothing), Verdict::Good);
        assert_eq!(good.acknowledged(1), deletion);
        // The next version wrote again, and that was acknowledged.
        let after = version(deletion + 1, false);
        let mut lost = ledger(after, after);
        let verdict = lost.judge(&history(), 1, Found::Nothing);
        assert!(
            matches!(verdict, Verdict::Lost { writes, .. } if writes == after - deletion),
            "{verdict:?}"
        );
    }

    #[test]
    fn what_was_never_sent_or_was_undone_is_impossible() {
        let low = version(5, false);
        let mut ledger = ledger(low + 40, low);
        let beyond = version(low + 41, false);
        let verdict = ledger.judge(&history(), 1, Found::Version(beyond));
        assert_eq!(verdict, Verdict::Impossible);
        let deletion = version(low, true);
        let verdict = ledger.judge(&history(), 1, Found::Version(deletion));
        assert_eq!(verdict, Verdict::Impossible);
        // Found once, the rest of what was under way is dead.
        assert_eq!(
            ledger.judge(&history(), 1, Found::Version(low)),
            Verdict::Good
        );
        let undone = version(low + 1, false);
        let verdict = ledger.judge(&history(), 1, Found::Version(undone));
        assert_eq!(verdict, Verdict::Impossible);
        let next = ledger.send(1);
        assert_eq!(next, low + 41);
    }

    #[test]
    fn only_recent_acknowledgements_are_remembered() {
        let mut ledger = Ledger::new(4);
        for version in 1..=1_000 {
            ledger.send(1);
            ledger.acknowledge(1, version, 0);
        }
        assert_eq!(ledger.groups[1].recent.len(), MAX_REMEMBERED);
        ledger.send(1);
        ledger.acknowledge(1, 1_001, 1_000_000);
        assert_eq!(ledger.groups[1].recent, [(1_001, 1_000_000)]);
        ledger.note_loss(1_000_000);
        let verdict = ledger.judge(&history(), 1, Found::Version(version(1, false)));
        assert!(
            matches!(verdict, Verdict::Lost { age: None, .. }),
            "{verdict:?}"
        );
    }

    #[test]
    fn notes_survive_in_a_file() {
        let path = std::env::temp_dir().join(format!("ferrite-ledger-{}", std::process::id()));
        let before = ledger(9, 5);
        before
            .write(&history(), &path)
            .expect("the directory is writable");
        let (history, after) = Ledger::read(&path).expect("it was written");
        assert_eq!(after.groups, before.groups);
        assert_eq!(after.lost_at_ms, before.lost_at_ms);
        assert_eq!(history.parts(), super::tests::history().parts());
        std::fs::write(&path, "{}").expect("the directory is writable");
        assert!(Ledger::read(&path).is_err_and(|error| error.contains("--verify-file")));
        std::fs::remove_file(&path).expect("it is ours");
    }
}
