//! Collections of RDB files and payloads while they are read: the items so far, and the place they go to.

use ferrite_log::DbId;
use keyspace::collection::Base;
use keyspace::collection::build::{Builder, DuplicateItem};
use keyspace::collection::cell::DECIMAL_MAX;
use keyspace::collection::run::Item;
use keyspace::{Detached, Kind, LargeValue};

use super::in_log::{self, InLog};
use crate::config::Packed;
use crate::persistence::durable::Durable;

/// Bytes of items that are read between two looks at whether to go on, if they are not
/// [`crate::limits::SNAPSHOT_FIELDS`].
pub(super) const READ_PAUSE_BYTES: usize = 1 << 20;

/// Called after some items, again and again.
pub(super) type OnPause<'p, E> = &'p mut dyn FnMut() -> Result<(), E>;

/// Reads the record on which a leaf of an instance rests.
pub(super) type ReadLeaf<'p, E> = &'p mut dyn FnMut(u64, Base) -> Result<LargeValue, E>;

/// A collection that was read.
pub(crate) enum ReadItems {
    /// With all of its items that have not expired.
    Items(Detached),
    /// All of its items have expired.
    Over,
    /// It has no items.
    Empty,
}

/// What the items of a collection are read for.
pub(crate) struct Destination<'k> {
    /// The key, and when it expires (Unix, ms).
    pub(crate) key: &'k [u8],
    pub(crate) expiry: Option<i64>,
    /// Items that have expired at this time (Unix, ms) are left out.
    pub(crate) now: Option<i64>,
    /// What becomes of very many items.
    pub(crate) beyond: Beyond<'k>,
}

/// Makes room for so many bytes.
type MakeRoom<'k> = &'k dyn Fn(usize) -> Result<(), String>;

/// What becomes of a collection with many items.
#[derive(Clone, Copy)]
pub(crate) enum Beyond<'k> {
    /// It is made in memory.
    InMemory,
    /// When memory is short, its leaves are written to the log for this database. Those in memory take more
    /// while they go there.
    InLog(DbId, MakeRoom<'k>),
    /// Its items are dropped now and then, so some that come twice are not found.
    Dropped,
}

/// The items so far.
pub(super) enum Making<'s> {
    InMemory(Builder),
    InLog(Box<InLog<'s>>),
}

impl Making<'_> {
    /// Sets an item of a stream in the place of the one of its name.
    pub(super) fn replace(&mut self, item: &Item<'_>) {
        match self {
            Making::InMemory(builder) => builder.replace(item),
            Making::InLog(large) => large.replace(item),
        }
    }
}

impl Destination<'_> {
    fn is_due(&self, item: &Item<'_>) -> bool {
        let now = self.now.map(|now| now.max(0) as u64);
        now.is_some_and(|now| item.is_due(now))
    }

    fn twice(&self, item: &Item<'_>, kind: Kind) -> String {
        let mut scratch = [0; DECIMAL_MAX];
        let name = item.name.text(&mut scratch).escape_ascii();
        let item = match kind {
            Kind::Set | Kind::SortedSet => "member",
            Kind::Hash => "field",
            Kind::Stream => "item",
            Kind::String | Kind::List => "element",
        };
        self.named(&format!("the {item} \"{name}\" is there twice"))
    }

    pub(super) fn add(&self, making: &mut Making<'_>, item: &Item<'_>) -> Result<(), String> {
        match making {
            Making::InLog(_) if self.is_due(item) => Ok(()),
            Making::InLog(large) => large.push(item).map_err(|problem| self.named(&problem)),
            Making::InMemory(builder) => {
                let added = builder.push(item);
                added.map_err(|DuplicateItem| self.twice(item, builder.kind()))
            }
        }
    }

    /// Goes on when the items, of `read` bytes, may be many.
    pub(super) fn moved<'s>(
        &self,
        server: &'s Durable,
        making: Making<'s>,
        read: usize,
    ) -> Result<Making<'s>, String> {
        let mut builder = match making {
            Making::InMemory(builder) if read >= in_log::least_bytes(server) => builder,
            making => return Ok(making),
        };
        match self.beyond {
            Beyond::InMemory => return Ok(Making::InMemory(builder)),
            Beyond::Dropped => {
                let none = server.keyspace.builder(builder.kind(), self.key);
                return Ok(Making::InMemory(none));
            }
            Beyond::InLog(_, make_room) if in_log::is_needed(server) => {
                make_room(in_log::moving_bytes(server))?;
            }
            Beyond::InLog(..) => return Ok(Making::InMemory(builder)),
        }
        if let Some(now) = self.now {
            builder.remove_due(now.max(0) as u64);
        }
        let large = InLog::new(server, self.key, builder);
        let large = large.map_err(|problem| self.named(&problem))?;
        Ok(Making::InLog(Box::new(large)))
    }

    /// A problem of the collection, with its key.
    pub(super) fn named(&self, problem: &str) -> String {
        format!("key \"{}\": {problem}", self.key.escape_ascii())
    }

    pub(super) fn finish(&self, server: &Durable, making: Making<'_>) -> Result<ReadItems, String> {
        let mut builder = match (making, self.beyond) {
            (Making::InLog(large), Beyond::InLog(db, _)) => {
                let made = large.finish(db, self.expiry);
                let made = made.map_err(|problem| self.named(&problem))?;
                return Ok(made.map_or(ReadItems::Over, ReadItems::Items));
            }
            (Making::InLog(_), _) => return Err(self.named("there is no log")),
            (Making::InMemory(builder), _) => builder,
        };
        if builder.is_empty() {
            return Ok(ReadItems::Empty);
        }
        if let Some(now) = self.now {
            builder.remove_due(now.max(0) as u64);
        }
        if builder.is_empty() {
            return Ok(ReadItems::Over);
        }
        let form = Packed::form_of(&server.settings, &builder);
        Ok(ReadItems::Items(Detached::built(
            builder,
            form,
            self.expiry,
        )))
    }
}
