//! Trees at the start: their records are put together, and each tree goes to the key that names it.
//!
//! The records of an instance and the record of its key come in any order, as compaction appends them anew.
//! So the key gets a tree without items, and the pieces wait here until the last record has been applied.
//! Instances that no key names then are dropped: their key was removed, or the crash was between the leaves
//! and the record of the key.

use std::collections::HashMap;

use ferrite_log::{Change, DbId, Lsn, Record, Tag};
use keyspace::collection::Base;
use keyspace::collection::any::{Collection, Pieces};
use keyspace::collection::log::leaf::LeafRecord;
use keyspace::collection::run::Damage;
use keyspace::{Keyspace, Kind};
use parking_lot::Mutex;

use super::instances::leaf_share;

/// Parts of the table, each with a lock.
const PARTS: usize = 64;

/// What the records of an instance have said so far.
enum Found {
    Pieces(Pieces),
    /// A repair has cut records of it out.
    Gone,
}

/// Key that names an instance. The key may have got another value later.
pub(super) struct Claim {
    pub(super) instance: u64,
    pub(super) tag: Tag,
    pub(super) id: DbId,
    pub(super) db: usize,
    pub(super) hash: u64,
    pub(super) name: Box<[u8]>,
}

/// A tree, when all records are applied.
pub(super) enum Rebuilt {
    Tree(Box<Collection>),
    /// A repair has cut its records out. Its key goes, too.
    Gone,
    /// Records of it are missing.
    Lacking,
}

/// See the module.
pub(super) struct TreeReplay {
    found: [Mutex<HashMap<u64, Found>>; PARTS],
    claims: Mutex<Vec<Claim>>,
    lost: Mutex<Vec<Base>>,
}

impl Default for TreeReplay {
    fn default() -> TreeReplay {
        TreeReplay {
            found: std::array::from_fn(|_| Mutex::default()),
            claims: Mutex::default(),
            lost: Mutex::default(),
        }
    }
}

impl TreeReplay {
    fn part(&self, instance: u64) -> &Mutex<HashMap<u64, Found>> {
        &self.found[instance as usize % PARTS]
    }

    /// Notes that a record of a key names an instance.
    pub(super) fn claim(&self, claim: Claim) {
        self.claims.lock().push(claim);
    }

    /// Applies a record of an instance, whose contents are `bytes`.
    ///
    /// # Errors
    /// The contents make no sense.
    pub(super) fn apply(
        &self,
        keyspace: &Keyspace,
        record: &Record<'_>,
        instance: u64,
        bytes: &[u8],
    ) -> Result<(), Damage> {
        let mut part = self.part(instance).lock();
        match record.change {
            Change::Leaf { tag, .. } => {
                let leaf = LeafRecord::read(bytes)?;
                let found = part.entry(instance).or_insert_with(|| {
                    let kind = Kind::from_bits(tag.kind).expect("the log knows the kind");
                    Found::Pieces(keyspace.pieces(kind, leaf.seed))
                });
                let Found::Pieces(pieces) = found else {
                    return Ok(());
                };
                let base = Base {
                    at: record.lsn.get(),
                    share: leaf_share(bytes.len()),
                };
                let mut lost = Vec::new();
                let applied = pieces.leaf(&leaf, base, &mut lost);
                if !lost.is_empty() {
                    self.lost.lock().append(&mut lost);
                }
                applied
            }
            Change::Edit { .. } if bytes.is_empty() => {
                part.insert(instance, Found::Gone);
                Ok(())
            }
            Change::Edit { .. } => match part.get_mut(&instance) {
                // The leaves that have its result follow, or nobody names the instance.
                None | Some(Found::Gone) => Ok(()),
                Some(Found::Pieces(pieces)) => pieces.edit(bytes),
            },
            _ => unreachable!("a record of an instance is a leaf or an edit"),
        }
    }

    /// Takes the keys that name instances, in no order.
    pub(super) fn claims(&self) -> Vec<Claim> {
        std::mem::take(&mut *self.claims.lock())
    }

    /// Takes the tree of an instance. All records have been applied.
    pub(super) fn take(&self, instance: u64, seed: u64) -> Rebuilt {
        let found = self.part(instance).lock().remove(&instance);
        match found {
            None | Some(Found::Gone) => Rebuilt::Gone,
            Some(Found::Pieces(pieces)) if pieces.seed() != seed => Rebuilt::Lacking,
            Some(Found::Pieces(pieces)) => {
                let whole = pieces.finish(&mut self.lost.lock());
                whole.map_or(Rebuilt::Lacking, |tree| Rebuilt::Tree(Box::new(tree)))
            }
        }
    }

    /// Drops the instances that no key has taken. Returns the records on which nothing rests.
    pub(super) fn finish(self) -> Vec<Base> {
        let mut lost = self.lost.into_inner();
        for part in self.found {
            for found in part.into_inner().into_values() {
                if let Found::Pieces(pieces) = found {
                    pieces.discard(&mut lost);
                }
            }
        }
        lost
    }
}

/// The message about a record that makes no sense.
pub(super) fn message(lsn: Lsn, damage: Damage) -> String {
    format!(
        "cannot load the log: the record at {lsn} has no changes of a collection ({damage:?}); \
         ferrite-server --repair-log deletes what cannot be read"
    )
}
