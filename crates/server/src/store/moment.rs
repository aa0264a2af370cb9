//! A large collection as it was at one moment, and how its cold leaves are read then.

use std::sync::Arc;

use ferrite_log::Hold;
use keyspace::ItemsRef;
use keyspace::Thawed;
use keyspace::collection::any::{Held, Moment};

/// A large collection at a moment.
pub(crate) struct HeldMoment {
    pub(crate) moment: Moment,
    /// Keeps the records of its cold leaves in place; `None` if it has none.
    pub(crate) hold: Option<Arc<Hold>>,
}

impl HeldMoment {
    /// The items; those of cold leaves as they were read.
    pub(crate) fn items<'e, K: Held>(&'e self, thawed: &'e Thawed) -> ItemsRef<'e, K> {
        self.moment.items_with(thawed)
    }
}
