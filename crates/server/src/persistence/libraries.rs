//! Libraries at the start, in compaction and in new logs: all but the changes of commands, which
//! [`super::journal`] writes.

use std::collections::HashMap;
use std::sync::Arc;

use ferrite_log::{Address, Appender, Change, Current, DbId, Record, Value, Verdict, judge};
use parking_lot::Mutex;

use super::durable::Durable;
use super::journal::{LIBRARY_TAG, log_libraries, place, replaced};
use super::room_in_log::ensure_bytes;
use crate::limits::LIBRARY_AGAIN_MOST;
use crate::request::Failure;
use crate::script::{Existing, Libraries, Library, Unlearned};

/// Texts of libraries that a replay has found, with the addresses of their records.
#[derive(Default)]
pub(super) struct ReplayedLibraries {
    texts: Mutex<HashMap<Vec<u8>, Found>>,
}

struct Found {
    text: Vec<u8>,
    address: Option<Address>,
}

impl ReplayedLibraries {
    /// Applies a record of a library. `read` reads a value that is not at hand, of so many bytes.
    ///
    /// # Errors
    /// The value can't be read, or the record is of a later version.
    pub(super) fn apply(
        &self,
        record: &Record<'_>,
        read: &dyn Fn(u64) -> Result<Vec<u8>, String>,
    ) -> Result<(), String> {
        match record.change {
            Change::Set { value, .. } => {
                let text = match value {
                    Value::Bytes(bytes) => bytes.to_vec(),
                    Value::Stored(len) => read(len)?,
                    Value::Blob(_) => return Err("a library has a file of its own".into()),
                };
                let address = record.address();
                let found = Found { text, address };
                self.texts.lock().insert(record.key.to_vec(), found);
            }
            Change::Delete => drop(self.texts.lock().remove(record.key)),
            _ => return Err("a record of a library makes no sense".into()),
        }
        Ok(())
    }

    /// Keeps the libraries. One with a text that can't be run any more stays as it is, without functions.
    pub(super) fn settle(self, server: &Durable) {
        let all = &server.persistence.libraries;
        let mut texts: Vec<_> = self.texts.into_inner().into_iter().collect();
        texts.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, found) in texts {
            let library = added(server, &name, found.text.into());
            if let Some(address) = found.address {
                all.set_place(&library, place(address));
            }
        }
    }
}

fn text_of(failure: &Failure) -> String {
    String::from_utf8_lossy(&failure.0).into_owned()
}

/// Adds a library by a text that the server has accepted before.
fn added(server: &Durable, name: &[u8], text: Arc<[u8]>) -> Arc<Library> {
    let all = &server.persistence.libraries;
    let add = |library: &Arc<Library>| {
        let library = vec![Arc::clone(library)];
        all.add(library, Existing::Replaced, &mut |_, _| {})
    };
    let library = learned(server, &text).and_then(|library| {
        let added = add(&library).map_err(|failure| text_of(&failure));
        added.map(|()| library)
    });
    library.unwrap_or_else(|why| {
        let name = String::from_utf8_lossy(name).into_owned();
        log::error!("The functions of library '{name}' can't be called: {why}");
        let library = Arc::new(Library::new(name, text, Vec::new()));
        add(&library).expect("it has no function that another one has");
        library
    })
}

fn learned(server: &Durable, text: &Arc<[u8]>) -> Result<Arc<Library>, String> {
    let is_ending = || server.is_shutting_down();
    let library = Library::learn(text, server.load_bounds(LIBRARY_AGAIN_MOST), &is_ending);
    library.map_err(|why| match why {
        Unlearned::Slow => "its text runs for too long".to_owned(),
        Unlearned::Refused(failure) => text_of(&failure),
    })
}

/// Keeps the libraries of a file that is loaded, and logs them. No worker changes data meanwhile.
///
/// # Errors
/// A text is no library, a function is there twice, or the log takes no records.
pub(super) fn take(
    server: &Durable,
    texts: Vec<Vec<u8>>,
    existing: Existing,
) -> Result<(), String> {
    let all = &server.persistence.libraries;
    let bytes = texts.iter().map(|text| Appender::bytes_of(0, text.len()));
    let bytes = bytes.sum();
    let libraries = texts.into_iter().map(|text| {
        let why = |why| format!("a library of the file can't be loaded: {why}");
        learned(server, &text.into()).map_err(why)
    });
    let libraries = libraries.collect::<Result<Vec<_>, _>>()?;
    let mut changed = Vec::new();
    let mut hears = |name: &str, before| changed.push((name.to_owned(), before));
    all.add(libraries, existing, &mut hears)
        .map_err(|failure| text_of(&failure))?;
    if !server.persistence.is_open() || changed.is_empty() {
        return Ok(());
    }
    let mut appender = server.persistence.appender()?;
    ensure_bytes(server, &mut appender, bytes)?;
    log_libraries(&mut appender, all, changed);
    appender.commit();
    Ok(())
}

/// Logs the libraries that have no record: in a new log.
///
/// # Errors
/// The log takes no records.
pub(super) fn log_missing(server: &Durable, appender: &mut Appender) -> Result<(), String> {
    let all = &server.persistence.libraries;
    ensure_bytes(server, appender, all.sizes().bytes as u64 + 1)?;
    let mut turn = server.keyspace.turns().register();
    turn.enter();
    turn.exclusive(|_| {
        all.record_missing(&mut |library| {
            let (name, text) = (library.name.as_bytes(), &library.text);
            place(appender.set(DbId::APART, name, LIBRARY_TAG, None, text))
        });
    });
    turn.leave();
    appender.commit();
    Ok(())
}

/// The state of a library for the log.
fn current(all: &Libraries, record: &Record<'_>) -> Option<(Arc<Library>, Current)> {
    let (library, recorded) = all.recorded(record.key)?;
    let current = Current {
        address: Address::from_bits(recorded?.at.get())?,
        expiry: None,
    };
    Some((library, current))
}

/// Verdict on a record of a library.
pub(super) fn verdict(all: &Libraries, record: &Record<'_>, is_oldest: bool) -> Verdict {
    let current = current(all, record).map(|(_, current)| current);
    judge(record, current, is_oldest)
}

/// Moves a record of a library, or its deletion, if that is needed. Returns false if the disk has no space.
pub(super) fn relocate(
    all: &Libraries,
    appender: &mut Appender,
    record: &Record<'_>,
    is_oldest: bool,
) -> bool {
    match verdict(all, record, is_oldest) {
        Verdict::Rewrite => {
            let Some((library, recorded)) = all.recorded(record.key) else {
                return true;
            };
            let bytes = Appender::bytes_of(record.key.len(), library.text.len());
            if !appender.may_append(bytes) {
                return false;
            }
            let address = appender.set(record.db, record.key, LIBRARY_TAG, None, &library.text);
            all.set_place(&library, place(address));
            if let Some(old) = recorded.and_then(replaced) {
                old.mark_dead(record.key.len(), appender.liveness());
            }
        }
        Verdict::Tombstone => drop(appender.delete(record.db, record.key)),
        Verdict::Drop | Verdict::Expire => {}
    }
    true
}
