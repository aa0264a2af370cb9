//! Libraries in the log: a record of [`DbId::APART`] for each, its key is the name and its value the text.

use std::num::NonZeroU64;
use std::sync::Arc;

use ferrite_log::{Address, Appender, Batch, DbId, Tag};

use super::replaced::Replaced;
use crate::script::{Libraries, Library, Recorded};

/// The tag of a record of a library: a string.
pub(crate) const LIBRARY_TAG: Tag = Tag::new(Tag::STRING, 0);

/// A library that was added, replaced or removed.
pub(super) struct ChangedLibrary {
    pub(super) name: String,
    /// The record of its earlier text.
    pub(super) before: Option<Recorded>,
}

/// Logs libraries that were changed outside of a turn, each with the record of its earlier text.
pub(crate) fn log_libraries(
    appender: &mut Appender,
    libraries: &Libraries,
    changed: Vec<(String, Option<Recorded>)>,
) {
    let changed = changed.into_iter();
    let changed = changed.map(|(name, before)| ChangedLibrary { name, before });
    let mut batch = appender.batch();
    let mut gathered = LibraryBatch::gather(&mut batch, libraries, changed.collect());
    batch.finish(|appender, _, address| gathered.settle(appender, libraries, address));
}

/// The libraries of a batch, in order of their records, with their states.
pub(super) struct LibraryBatch(std::vec::IntoIter<(ChangedLibrary, Option<Arc<Library>>)>);

impl LibraryBatch {
    /// Adds the states of changed libraries to a batch.
    pub(super) fn gather(
        batch: &mut Batch<'_>,
        libraries: &Libraries,
        changed: Vec<ChangedLibrary>,
    ) -> LibraryBatch {
        let mut gathered = Vec::with_capacity(changed.len());
        for change in changed {
            let name = change.name.as_bytes();
            let state = libraries.recorded(name).map(|(library, _)| library);
            match &state {
                Some(library) => batch.set(DbId::APART, name, LIBRARY_TAG, None, &library.text),
                None => batch.delete(DbId::APART, name),
            }
            gathered.push((change, state));
        }
        LibraryBatch(gathered.into_iter())
    }

    /// Notes the next record of the batch that has been written.
    pub(super) fn settle(
        &mut self,
        appender: &mut Appender,
        libraries: &Libraries,
        address: Option<Address>,
    ) {
        let next = self.0.next();
        let (change, state) = next.expect("one record was gathered for each");
        if let Some(old) = change.before.and_then(replaced) {
            old.mark_dead(change.name.len(), appender.liveness());
        }
        if let (Some(library), Some(address)) = (state, address) {
            libraries.set_place(&library, place(address));
        }
    }
}

/// A record of a library, for the log.
pub(crate) fn replaced(record: Recorded) -> Option<Replaced> {
    let address = Address::from_bits(record.at.get())?;
    Some(Replaced::at(address, record.bytes))
}

/// An address as libraries keep it.
pub(crate) fn place(address: Address) -> NonZeroU64 {
    NonZeroU64::new(address.to_bits()).expect("addresses are never 0")
}
