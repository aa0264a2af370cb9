//! The end of a start on more data than memory: the log takes records again, so the parts of trees
//! and the values that were spilled are written to it, and the keys get their trees.

use ferrite_log::DbId;
use keyspace::collection::Base;
use keyspace::collection::log::ledger::Ledger as _;

use super::replay::Loader;
use super::state::Persistence;
use super::tree_replay::Claim;
use crate::persistence::durable::Durable;

/// Trees with parts in the spill file, and their keys.
pub(super) struct Large {
    loader: Box<Loader>,
    claims: Vec<Claim>,
}

impl Large {
    pub(super) fn new(loader: Loader, claims: Vec<Claim>) -> Large {
        let loader = Box::new(loader);
        Large { loader, claims }
    }
}

/// Gives the trees to their keys, if there are some. The log was opened, and compaction is held off.
///
/// # Errors
/// The spill file cannot be read.
pub(super) fn fill(server: &Durable, large: Option<Large>) -> Result<(), String> {
    let Some(Large { loader, claims }) = large else {
        return Ok(());
    };
    let own = &server.persistence;
    let bases = loader.fill_large(claims, &mut own.appender()?)?;
    own.settle_trees(bases, &[]);
    Ok(())
}

impl Persistence {
    /// Tells the log what has become of its trees: records on which no leaf rests, and keys that a repair has
    /// taken the tree from.
    pub(super) fn settle_trees(&self, bases: Vec<Base>, gone: &[(DbId, Box<[u8]>)]) {
        self.instances.lost(&mut bases.into_iter());
        if let Some(appender) = self.lost.lock().as_mut() {
            for (db, key) in gone {
                appender.delete(*db, key);
            }
            appender.commit();
        }
    }
}
