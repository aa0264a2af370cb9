//! Content of a snapshot's file, and writing it while no worker runs. [`super::beside`] writes it while
//! workers run.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ferrite_log::{BlobStream, Hold};
use keyspace::collection::run::Damage;
use keyspace::{AnyItems, Exclusive, Kind, Record, RecordValue, Records, Sizes, Turn};
use rdb::{Attributes, Options, Writer};

use super::cold::{self, Found};
use super::file::{Draft, DraftFile};
use super::items::ItemsWriter;
use super::state::Outcome;
use crate::config::{REDIS_VERSION, Setting};
use crate::limits::SNAPSHOT_READ_BYTES;
use crate::persistence::durable::Durable;
use crate::request::Failure;
use crate::script::Library;

/// Longest sleep between two checks for cancellation.
const NAP: Duration = Duration::from_millis(10);

/// Reason for an early end of writing.
pub(super) enum Stop {
    Failed(io::Error),
    /// The snapshot was cancelled.
    Cancelled,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<Damage> for Stop {
    fn from(damage: Damage) -> Stop {
        Stop::Failed(damage.into())
    }
}

impl From<Stop> for io::Error {
    fn from(stop: Stop) -> io::Error {
        match stop {
            Stop::Failed(error) => error,
            Stop::Cancelled => io::Error::other("it was broken off"),
        }
    }
}

impl From<Result<(), Stop>> for Outcome {
    fn from(result: Result<(), Stop>) -> Outcome {
        match result {
            Ok(()) => Outcome::Saved,
            Err(Stop::Cancelled) => Outcome::Cancelled,
            Err(Stop::Failed(error)) => Outcome::Failed(error.to_string()),
        }
    }
}

/// Value to be written.
pub(super) enum SavedValue<'v> {
    Bytes(&'v [u8]),
    Items(AnyItems<'v>),
    /// Length in bytes, and a stream that is read a piece at a time.
    File(u64, BlobStream),
}

/// Called between parts of what may take long.
pub(super) type Between<'p> = &'p mut dyn FnMut() -> Result<(), Stop>;

/// Writer of one snapshot.
pub(super) struct Save<'s> {
    server: &'s Durable,
    writer: Writer<DraftFile>,
    items: ItemsWriter,
    /// Keeps the records of the log in place. Without it no worker runs.
    hold: Option<&'s Hold>,
    /// Database of the last key.
    database: Option<usize>,
    /// Numbers of keys of the databases that are not written yet.
    sizes: Vec<(usize, Sizes)>,
    /// For tests: delay of each key, microseconds.
    delay_us: u64,
}

/// Writes the keyspace to the configured file while all workers are excluded.
///
/// # Errors
/// Errors of the system calls. The old file is still there then.
pub(crate) fn save_alone(server: &Durable, alone: &Exclusive<'_>, now: i64) -> io::Result<()> {
    let databases: Vec<_> = server.keyspace.all(alone).collect();
    let sizes = databases.iter();
    let sizes = sizes.map(|(number, database)| (*number, Sizes::of(database)));
    let used_memory = databases
        .iter()
        .map(|(_, database)| database.memory() as u64)
        .sum();
    let (mut draft, file) = Draft::create(&server.settings)?;
    let libraries = server.persistence.libraries.all();
    let mut save = Save::begin(
        (server, None),
        file,
        used_memory,
        sizes.collect(),
        &libraries,
    )?;
    // All clients wait for the end.
    save.delay_us = 0;
    let go_on = &mut || Ok(());
    for (number, database) in &databases {
        let mut result = Ok(());
        // Entries with values that are only in the log are collected, to read several values at a time.
        let (mut aside, mut bytes) = (Records::default(), 0);
        database.for_each(now, |entry| {
            if result.is_err() {
                return;
            }
            let (key, expiry) = (entry.key(), entry.expiry());
            let Some(cold) = entry.cold() else {
                let value = match entry.all_items() {
                    Some(items) => SavedValue::Items(items),
                    None => SavedValue::Bytes(entry.value().bytes()),
                };
                result = save.key(*number, key, value, expiry, go_on);
                return;
            };
            let value = RecordValue::Cold(cold);
            aside.push_typed(key, (entry.value_type(), value), expiry);
            bytes += cold.len + key.len() as u64;
            if bytes >= SNAPSHOT_READ_BYTES {
                result = save.records(*number, &std::mem::take(&mut aside), go_on);
                bytes = 0;
            }
        });
        result?;
        save.records(*number, &aside, go_on)?;
    }
    save.finish()?;
    draft.keep()?;
    draft.sync_directory()
}

/// After FLUSHALL: cancels the snapshot that is being written. With save points it writes an empty one, so
/// that a restart does not restore the dropped data.
pub(crate) fn after_flush_all(server: &Durable, turn: &mut Turn<'_>) {
    server.snapshots.cancel();
    if server.save_points().is_empty() {
        return;
    }
    let saved = turn.exclusive(|alone| {
        server.snapshots.cancel();
        save_alone(server, alone, sys::clock::realtime_ms())?;
        server.snapshots.note_saved_alone(server);
        Ok::<(), io::Error>(())
    });
    if let Err(error) = saved {
        log::error!("Saving the emptied databases failed: {error}");
    }
}

/// Value of a key whose value was read.
fn in_memory<'r>(record: &'r Record<'_>) -> SavedValue<'r> {
    if let RecordValue::Tree(moment) = &record.value {
        return SavedValue::Items(moment.all_items());
    }
    let bytes = record.value.bytes();
    let bytes = bytes.expect("what is in the log alone was read before");
    match record.of.kind {
        Kind::String => SavedValue::Bytes(bytes),
        kind => SavedValue::Items(AnyItems::of_run(kind, bytes)),
    }
}

/// Checks that the snapshot is not cancelled.
pub(super) fn check(server: &Durable) -> Result<(), Stop> {
    match server.snapshots.is_cancelled() {
        true => Err(Stop::Cancelled),
        false => Ok(()),
    }
}

/// Error for an unreadable value.
pub(super) fn unreadable(failure: Failure) -> io::Error {
    io::Error::other(String::from_utf8_lossy(&failure.0).into_owned())
}

impl<'s> Save<'s> {
    /// Server of the data.
    pub(super) fn server(&self) -> &'s Durable {
        self.server
    }

    pub(super) fn begin(
        (server, hold): (&'s Durable, Option<&'s Hold>),
        file: DraftFile,
        used_memory: u64,
        sizes: Vec<(usize, Sizes)>,
        libraries: &[Arc<Library>],
    ) -> io::Result<Save<'s>> {
        let options = Options {
            compression: server.settings.flag(Setting::RdbCompression),
            checksum: server.settings.flag(Setting::RdbChecksum),
            timed: sizes.iter().any(|(_, sizes)| sizes.expiring > 0),
        };
        let mut writer = Writer::new(file, options)?;
        writer.fact("redis-ver", REDIS_VERSION)?;
        writer.fact("redis-bits", &usize::BITS.to_string())?;
        writer.fact("ctime", &(sys::clock::realtime_ms() / 1000).to_string())?;
        writer.fact("used-mem", &used_memory.to_string())?;
        writer.fact("aof-base", "0")?;
        for library in libraries {
            writer.library(&library.text)?;
        }
        Ok(Save {
            server,
            writer,
            items: ItemsWriter::default(),
            hold,
            database: None,
            sizes,
            delay_us: server.settings.int(Setting::RdbKeySaveDelay).unsigned_abs(),
        })
    }

    /// Writes keys of a database, unless the snapshot is cancelled. Values that are only in the log are read
    /// from it.
    pub(super) fn records(
        &mut self,
        database: usize,
        records: &Records,
        pause: Between<'_>,
    ) -> Result<(), Stop> {
        if !cold::is_in(records) {
            return self.values(database, records, pause);
        }
        let (server, hold) = (self.server, self.hold);
        cold::read(server, records, hold, |found| match found {
            Found::Values(values) => self.values(database, &values, pause),
            Found::File {
                key,
                expiry,
                len,
                stream,
            } => self.key(database, key, SavedValue::File(len, stream), expiry, pause),
        })
    }

    fn values(
        &mut self,
        database: usize,
        records: &Records,
        pause: Between<'_>,
    ) -> Result<(), Stop> {
        for record in records.iter() {
            let value = in_memory(&record);
            self.key(database, record.key, value, record.expiry, pause)?;
        }
        Ok(())
    }

    /// Writes a key, unless the snapshot is cancelled.
    fn key(
        &mut self,
        database: usize,
        key: &[u8],
        value: SavedValue<'_>,
        expiry: Option<i64>,
        pause: Between<'_>,
    ) -> Result<(), Stop> {
        self.put(database, key, value, expiry, pause)?;
        if self.delay_us > 0 {
            self.wait()?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        database: usize,
        key: &[u8],
        value: SavedValue<'_>,
        expiry: Option<i64>,
        pause: Between<'_>,
    ) -> Result<(), Stop> {
        if self.database != Some(database) {
            self.writer.database(database as u64)?;
            let known = self
                .sizes
                .iter()
                .position(|(number, _)| *number == database);
            if let Some(at) = known {
                let (_, sizes) = self.sizes.swap_remove(at);
                self.writer
                    .sizes(sizes.keys as u64, sizes.volatile as u64)?;
            }
            self.database = Some(database);
        }
        let attributes = Attributes {
            expiry_ms: expiry,
            ..Attributes::default()
        };
        let writer = &mut self.writer;
        match value {
            SavedValue::Bytes(bytes) => writer.key(key, bytes, attributes)?,
            SavedValue::Items(items) => {
                let (persistence, hold) = (&self.server.persistence, self.hold);
                let read = &mut |instance, base| {
                    let leaf = persistence.leaf_now(instance, base, hold);
                    leaf.map_err(|failure| Stop::from(unreadable(failure)))
                };
                self.items
                    .write(writer, key, items, attributes, (read, pause))?;
            }
            SavedValue::File(len, mut stream) => {
                writer.key_from(key, len, &mut stream, attributes)?;
            }
        }
        Ok(())
    }

    fn wait(&self) -> Result<(), Stop> {
        let mut left = Duration::from_micros(self.delay_us);
        while !left.is_zero() {
            check(self.server)?;
            let nap = left.min(NAP);
            std::thread::sleep(nap);
            left -= nap;
        }
        Ok(())
    }

    /// Writes the end of the file and waits until it is on disk.
    pub(super) fn finish(self) -> io::Result<()> {
        self.writer.finish()?.sync()
    }
}
