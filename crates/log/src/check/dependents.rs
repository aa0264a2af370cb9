//! Records behind a hole that depend on records in front of it, or in it.
//!
//! They are found before the hole is mended, and become `Void` records. So each key has a value that it had
//! once, or none:
//!
//! - An edit or a patch of a key counts if the last `Set` of the key is in the same run ([`Barriers`]).
//! - Leaves and edits of an instance count up to the end of the last run in which it is known as a whole: all
//!   of its leaves were written in that run, and the `Set` that names it ([`Instances`]).
//! - A `Set` that names an instance counts if that is known in this run, or later for the same key.
//! - Every other `Set`, `Delete` and `Expire` counts: it says all there is to say.
//!
//! Keys whose last changes are taken out are named, and keys that are gone for want of a value.
//!
//! Keys are looked at that such records are about, in as many rounds as bounded memory takes.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::barriers::{Barriers, Part, bindings};
use super::cover::LeafRange;
use super::instances::{Instances, named_by};
use super::names::name_of;
use crate::address::{DbId, Lsn};
use crate::bindings::Bindings;
use crate::error::Result;
use crate::record::{Change, Entry, Record};

/// Bits of the filter that says of which keys there may be such records.
const FILTER_BITS: u64 = 1 << 26;
/// Bytes of keys that are looked at in one round.
const ROUND_BYTES: u64 = 64 << 20;
/// Bytes that a key takes beside its name.
const KEY_BYTES: u64 = 100;

/// A record that does not count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    pub(super) lsn: Lsn,
    pub(super) shift: i64,
    pub(super) bytes: u64,
    pub(super) is_inner: bool,
}

/// What takes records out and tells of keys.
pub(super) trait Sink {
    /// Takes these records of a segment out.
    ///
    /// # Errors
    /// The disk refuses.
    fn take_out(&mut self, part: &Part, lost: &[Lost]) -> Result<()>;

    /// Tells what becomes of a key.
    ///
    /// # Errors
    /// The disk refuses.
    fn tell(&mut self, line: String) -> Result<()>;
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The run of the last record that says all of it.
    run: usize,
    is_there: bool,
    instance: Option<u64>,
    /// Changes are lost.
    is_stale: bool,
}

struct Dependents<'d> {
    parts: &'d [Part],
    barriers: &'d Barriers,
    bindings: Bindings,
    instances: Instances,
    filter: Vec<u64>,
    hasher: BuildHasherDefault<DefaultHasher>,
}

/// Takes records out that depend on what is in a hole.
pub(super) fn settle(
    parts: &[Part],
    barriers: &Barriers,
    range_of: LeafRange,
    sink: &mut dyn Sink,
) -> Result<()> {
    if barriers.is_empty() {
        return Ok(());
    }
    let mut dependents = Dependents {
        parts,
        barriers,
        bindings: bindings(parts)?,
        instances: Instances::new(range_of),
        filter: vec![0; (FILTER_BITS / 64) as usize],
        hasher: BuildHasherDefault::default(),
    };
    let bytes = dependents.survey()?;
    let rounds = bytes.div_ceil(ROUND_BYTES).max(1);
    for round in 0..rounds {
        dependents.settle_round(round, rounds, sink)?;
    }
    Ok(())
}

impl Dependents<'_> {
    fn hash(&self, record: &Record<'_>) -> u64 {
        self.hasher.hash_one((record.db, record.key))
    }

    /// Shows the records of keys and instances that count, with their runs.
    fn each(
        &self,
        part: &Part,
        mut visit: impl FnMut(&Record<'_>, usize, Lost) -> Result<()>,
    ) -> Result<()> {
        part.each(|lsn, shift, found| match found.entry {
            Entry::Key(record) if self.bindings.is_alive(record.db, lsn) => {
                let lost = Lost {
                    lsn,
                    shift,
                    bytes: found.bytes as u64,
                    is_inner: found.is_inner,
                };
                visit(&record, self.barriers.run_of(lsn), lost)
            }
            _ => Ok(()),
        })
    }

    /// Finds out about instances, and of which keys there are records that may depend on others. Returns the
    /// bytes that these keys take.
    fn survey(&mut self) -> Result<u64> {
        let mut bytes = 0;
        let mut instances = std::mem::replace(&mut self.instances, Instances::new(|_| None));
        let mut filter = std::mem::take(&mut self.filter);
        for part in self.parts {
            self.each(part, |record, run, _| {
                instances.note(record, run);
                let depends = match record.change {
                    Change::Edit { .. } | Change::Patch { .. } | Change::Expire(_) => run > 0,
                    Change::Set { tag, .. } => tag.is_tree,
                    Change::Delete | Change::Leaf { .. } => false,
                };
                if depends && !record.is_of_instance() {
                    let bit = self.hash(record) % FILTER_BITS;
                    let (word, bit) = (&mut filter[(bit / 64) as usize], 1 << (bit % 64));
                    if *word & bit == 0 {
                        bytes += KEY_BYTES + record.key.len() as u64;
                    }
                    *word |= bit;
                }
                Ok(())
            })?;
        }
        instances.settle();
        (self.instances, self.filter) = (instances, filter);
        Ok(bytes)
    }

    /// Whether a key is looked at in a round.
    fn is_in(&self, record: &Record<'_>, round: u64, rounds: u64) -> bool {
        let hash = self.hash(record);
        let bit = hash % FILTER_BITS;
        self.filter[(bit / 64) as usize] >> (bit % 64) & 1 == 1
            && hash / FILTER_BITS % rounds == round
    }

    fn settle_round(&self, round: u64, rounds: u64, sink: &mut dyn Sink) -> Result<()> {
        let mut keys: HashMap<(DbId, Box<[u8]>), Known> = HashMap::new();
        for part in self.parts {
            let mut taken = Vec::new();
            self.each(part, |record, run, lost| {
                let is_lost = if record.is_of_instance() {
                    round == 0 && self.instances.is_lost(record, run)
                } else {
                    self.is_in(record, round, rounds)
                        && self.is_lost(
                            keys.entry((record.db, record.key.into())).or_default(),
                            record,
                            run,
                        )
                };
                if is_lost {
                    taken.push(lost);
                }
                Ok(())
            })?;
            if !taken.is_empty() {
                sink.take_out(part, &taken)?;
            }
        }
        let sorted: BTreeMap<_, _> = keys.into_iter().collect();
        for ((db, key), known) in sorted {
            if let Some(line) = self.line(db, &key, known) {
                sink.tell(line)?;
            }
        }
        Ok(())
    }

    /// What becomes of a key, if changes of it are lost.
    fn line(&self, db: DbId, key: &[u8], known: Known) -> Option<String> {
        let has_lost = |number| self.instances.has_lost(db, number);
        let is_gone = |number| self.instances.is_gone(db, number);
        let name = || name_of(&self.bindings, db, key);
        if known.is_there && known.instance.is_some_and(is_gone)
            || !known.is_there && known.is_stale
        {
            return Some(format!(
                "{} is gone: nothing is left that was its value",
                name()
            ));
        }
        let is_stale = known.is_stale || known.instance.is_some_and(has_lost);
        (known.is_there && is_stale).then(|| format!("{} has an older value", name()))
    }

    /// Learns from a record of a key. Whether the record does not count.
    fn is_lost(&self, known: &mut Known, record: &Record<'_>, run: usize) -> bool {
        match record.change {
            Change::Set { .. } => {
                let number = named_by(&record.change);
                let is_lost = match number
                    .map(|number| self.instances.known(record.db, number, record.key))
                {
                    None => false,
                    // The same again, as of the end of that run.
                    Some(Some(in_run)) => run > in_run && known.instance != number,
                    Some(None) => true,
                };
                if is_lost {
                    known.is_stale = true;
                } else if number.is_none() || known.instance != number {
                    *known = Known {
                        run,
                        is_there: true,
                        instance: number,
                        is_stale: false,
                    };
                }
                is_lost
            }
            Change::Delete => {
                *known = Known {
                    run,
                    ..Known::default()
                };
                false
            }
            Change::Expire(_) => {
                known.is_stale |= run > 0 && !known.is_there;
                false
            }
            Change::Edit { .. } | Change::Patch { .. } => {
                let is_lost = run > 0 && (known.run != run || !known.is_there);
                known.is_stale |= is_lost;
                is_lost
            }
            Change::Leaf { .. } => false,
        }
    }
}
