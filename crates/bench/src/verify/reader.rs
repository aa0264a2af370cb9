//! Reading everything back, and what was found in sum.

use super::history::{Damage, History};
use super::ledger::{Found, Ledger, Verdict};
use crate::wire::ask::Asker;
use resp::Value;
use std::time::Duration;

/// Requests that are sent before their replies are read.
const BATCH: usize = 256;

/// Examples of each kind of damage that are kept to be shown.
const EXAMPLES: usize = 3;

/// What a reading has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    pub(super) keys: u64,
    pub(super) groups: u64,
    /// Groups of which nothing is there, though something was acknowledged.
    pub(super) missing: u64,
    /// Groups that are in an older version than was acknowledged.
    pub(super) stale: u64,
    /// Groups with a value that nobody has written, or with keys of several versions.
    pub(super) torn: u64,
    /// Groups in a version that cannot be, or with values of somebody else.
    pub(super) impossible: u64,
    /// Acknowledged writes that are gone.
    pub(super) lost_writes: u64,
    /// The age of the oldest of them at the loss of the server, as far as it is known.
    pub(super) oldest: Option<Duration>,
    /// Some are older than is remembered.
    pub(super) older: bool,
    /// What is wrong with the first few.
    pub(super) examples: Vec<String>,
}

impl Findings {
    /// Nothing is wrong but losses of this age.
    pub(super) fn is_within(&self, may_lose: Duration) -> bool {
        let is_whole = self.torn == 0 && self.impossible == 0;
        let is_young = !self.older && self.oldest.is_none_or(|oldest| oldest <= may_lose);
        is_whole && (self.lost_writes == 0 || (is_young && !may_lose.is_zero()))
    }

    fn show(&mut self, text: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(text());
        }
    }

    fn add(&mut self, group: u64, found: Found, verdict: Verdict) {
        match verdict {
            Verdict::Good => {}
            Verdict::Impossible => {
                self.impossible += 1;
                self.show(|| format!("group {group}: {found:?}, which cannot be"));
            }
            Verdict::Lost { writes, age } => {
                match found {
                    Found::Nothing => self.missing += 1,
                    Found::Version(_) => self.stale += 1,
                }
                self.lost_writes += writes;
                self.older |= age.is_none();
                self.oldest = self.oldest.max(age);
                self.show(|| {
                    format!("group {group}: {found:?}, {writes} acknowledged writes later")
                });
            }
        }
    }
}

/// Reads all keys and judges them.
///
/// # Errors
/// The connection is broken or the server refuses to read.
pub(super) fn read_back(
    history: &History,
    asker: &mut Asker,
    ledger: &mut Ledger,
) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let mut group = 0;
    while group < history.groups() {
        let first = group;
        let mut requests = Vec::new();
        let mut count = 0;
        while group < history.groups() && count < BATCH {
            for place in 0..history.keys_of(group) {
                let key = history.key(group, place);
                resp::write_request(&mut requests, &[b"GET", &key]);
                count += 1;
            }
            group += 1;
        }
        let mut values = asker.ask_many(&requests, count)?.into_iter();
        for read in first..group {
            let own = values.by_ref().take(history.keys_of(read) as usize);
            let own: Vec<Value> = own.collect();
            judge(history, ledger, read, &own, &mut findings)?;
        }
    }
    ledger.note_return();
    Ok(findings)
}

fn judge(
    history: &History,
    ledger: &mut Ledger,
    group: u64,
    values: &[Value],
    findings: &mut Findings,
) -> Result<(), String> {
    findings.groups += 1;
    findings.keys += values.len() as u64;
    match agree(history, group, values)? {
        Ok(found) => {
            let verdict = ledger.judge(history, group, found);
            findings.add(group, found, verdict);
        }
        Err((Damage::Torn, text)) => {
            findings.torn += 1;
            findings.show(|| format!("group {group}: {text}"));
        }
        Err((Damage::Foreign, text)) => {
            findings.impossible += 1;
            findings.show(|| format!("group {group}: {text}"));
        }
    }
    Ok(())
}

/// The version that all keys of a group are in, or what is wrong with them.
fn agree(
    history: &History,
    group: u64,
    values: &[Value],
) -> Result<Result<Found, (Damage, String)>, String> {
    let mut seen: Option<Found> = None;
    for (place, value) in values.iter().enumerate() {
        let found = match value {
            Value::Null => Found::Nothing,
            Value::Bulk(bytes) => match history.read(bytes) {
                Ok(stamp) if stamp.group == group && stamp.place == place as u64 => {
                    Found::Version(stamp.version)
                }
                Ok(stamp) => {
                    return Ok(Err((
                        Damage::Torn,
                        format!("the value of {stamp:?} at {place}"),
                    )));
                }
                Err(damage) => {
                    let text = format!("a damaged value of {} bytes at {place}", bytes.len());
                    return Ok(Err((damage, text)));
                }
            },
            Value::Error(text) => {
                return Err(format!("GET: {}", String::from_utf8_lossy(text)));
            }
            other => return Ok(Err((Damage::Foreign, format!("{other:?} at {place}")))),
        };
        match seen {
            Some(seen) if seen != found => {
                let text = format!("{seen:?} and {found:?} in keys that are written together");
                return Ok(Err((Damage::Torn, text)));
            }
            _ => seen = Some(found),
        }
    }
    Ok(Ok(seen.unwrap_or(Found::Nothing)))
}

/// Deletes what an earlier run may have left.
///
/// # Errors
/// The connection is broken or the server refuses.
pub(super) fn clear(history: &History, asker: &mut Asker) -> Result<(), String> {
    let mut group = 0;
    while group < history.groups() {
        let mut requests = Vec::new();
        let mut count = 0;
        while group < history.groups() && count < BATCH {
            let keys: Vec<_> = (0..history.keys_of(group))
                .map(|place| history.key(group, place))
                .collect();
            let mut words: Vec<&[u8]> = vec![b"DEL"];
            words.extend(keys.iter().map(Vec::as_slice));
            resp::write_request(&mut requests, &words);
            count += 1;
            group += 1;
        }
        for value in asker.ask_many(&requests, count)? {
            if let Value::Error(text) = value {
                return Err(format!("DEL: {}", String::from_utf8_lossy(&text)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::history::Stamp;
    use super::*;
    use crate::load::sizes::Sizes;

    fn history() -> History {
        History::of(3, 8, 3, Sizes::Fixed(60))
    }

    fn bulk(group: u64, place: u64, version: u64) -> Value {
        let stamp = Stamp {
            group,
            place,
            version,
        };
        Value::Bulk(history().value(stamp))
    }

    #[test]
    fn keys_of_a_group_have_to_agree() {
        let agree = |values: &[Value]| super::agree(&history(), 4, values).expect("no error reply");
        let whole = [bulk(4, 0, 5), bulk(4, 1, 5), bulk(4, 2, 5)];
        assert_eq!(agree(&whole), Ok(Found::Version(5)));
        let gone = [Value::Null, Value::Null, Value::Null];
        assert_eq!(agree(&gone), Ok(Found::Nothing));
        for torn in [
            [bulk(4, 0, 5), bulk(4, 1, 4), bulk(4, 2, 5)],
            [bulk(4, 0, 5), Value::Null, bulk(4, 2, 5)],
            [bulk(4, 0, 5), bulk(4, 2, 5), bulk(4, 1, 5)],
            [bulk(4, 0, 5), bulk(0, 1, 5), bulk(4, 2, 5)],
        ] {
            assert!(matches!(agree(&torn), Err((Damage::Torn, _))), "{torn:?}");
        }
        let foreign = [Value::Bulk(b"hello".to_vec())];
        assert!(matches!(agree(&foreign), Err((Damage::Foreign, _))));
        let error = [Value::Error(b"WRONGTYPE".to_vec())];
        assert!(super::agree(&history(), 4, &error).is_err());
    }

    #[test]
    fn losses_are_good_or_bad_by_their_age() {
        let second = Duration::from_secs(1);
        let lost = |age: Option<Duration>| {
            let mut findings = Findings::default();
            let verdict = Verdict::Lost { writes: 2, age };
            findings.add(1, Found::Version(1), verdict);
            findings
        };
        assert!(Findings::default().is_within(Duration::ZERO));
        assert!(lost(Some(second)).is_within(second));
        assert!(!lost(Some(second)).is_within(second / 2));
        assert!(!lost(Some(Duration::ZERO)).is_within(Duration::ZERO));
        assert!(!lost(None).is_within(100 * second));
        let torn = Findings {
            torn: 1,
            ..Findings::default()
        };
        assert!(!torn.is_within(100 * second));
    }
}
