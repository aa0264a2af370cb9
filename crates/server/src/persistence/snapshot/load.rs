//! Loading an RDB file into the keyspace.
//!
//! One thread reads and checks the file, others insert its keys into the keyspace, a buffer of many keys at a
//! time: an insertion misses the cache, which takes longer than reading. A file of a few buffers is loaded by
//! one thread.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use ferrite_log::{DbId, Hold};
use keyspace::{
    Database, Detached, Guard, INLINE_VALUE_MAX, Key, Large, LargeValue, New, Record, RecordValue,
    Records, Turn,
};
use parking_lot::Mutex;
use rdb::{Entry, Item, Typed, TypedReader};

use super::items::{KINDS, read_items};
use super::making::{Beyond, Destination, ReadItems};
use crate::config::Setting;
use crate::limits::{
    LOAD_BUFFER_BYTES, LOAD_BUFFERS_PER_THREAD, LOAD_LOOK, LOAD_LOOK_BYTES, LOAD_THREADS,
    LOAD_WINDOW,
};
use crate::persistence::durable::Durable;
use crate::persistence::libraries;
use crate::persistence::relief::Relief;
use crate::script::Existing;

/// Treatment of a key that is present already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// An error: the file has the key twice, or the keyspace is not as empty as it should be.
    Refused,
    /// The value of the file replaces it.
    Replaced,
}

/// Keys of one database.
struct Buffer {
    database: usize,
    records: Records,
    /// Collections that are trees, and their keys.
    trees: Vec<(Box<[u8]>, Detached)>,
    /// Bytes of large values and trees, which are outside of the records.
    large_bytes: usize,
}

/// State shared by the threads of a load.
struct Load<'s> {
    server: &'s Durable,
    /// Time for the check of expiry, Unix ms.
    now: i64,
    duplicates: Duplicates,
    /// The way with libraries that are present already.
    existing: Existing,
    /// Whether expired keys are loaded too.
    keeps_expired: bool,
    /// Whether the file is only checked: large collections are not made.
    only_checks: bool,
    /// Makes room when memory is short.
    relief: Option<Relief<'s>>,
    /// Buffers that were read and whose keys are not in the keyspace yet.
    underway: AtomicUsize,
    /// Keeps leaves in the log whose key is not there yet.
    _hold: Option<Hold>,
    /// Error of a thread that inserts.
    problem: Mutex<Option<String>>,
    has_problem: AtomicBool,
}

/// Loads a file; the caller refuses commands meanwhile. With `relief` values leave memory when it is short.
/// `existing`: the way with libraries that are there.
/// Keys that were loaded before an error stay.
///
/// # Errors
/// A text for the operator: the place of the damage and its kind, or the unsupported content.
pub(crate) fn load(
    server: &Durable,
    path: &Path,
    duplicates: Duplicates,
    existing: Existing,
    relief: Option<Relief<'_>>,
) -> Result<(), String> {
    let (mut load, file, total_bytes) = Load::begin(server, path, duplicates, relief)?;
    load.existing = existing;
    let read_bytes = load.run(file, total_bytes)?;
    if read_bytes < total_bytes {
        log::warn!("what follows the end of the snapshot at byte {read_bytes} was ignored");
    }
    Ok(())
}

/// [`load`] for the RDB file in front of the commands of an append-only file. Expired keys are loaded too,
/// because a command may change their expiry. Returns the offset of the first command.
///
/// # Errors
/// As [`load`].
pub(crate) fn load_base(
    server: &Durable,
    path: &Path,
    relief: Option<Relief<'_>>,
) -> Result<u64, String> {
    let (mut load, file, total_bytes) = Load::begin(server, path, Duplicates::Refused, relief)?;
    load.keeps_expired = true;
    load.run(file, total_bytes)
}

/// Reads a file to its end without loading it.
///
/// # Errors
/// As [`load`].
pub(super) fn check(server: &Durable, path: &Path) -> Result<(), String> {
    let (mut load, file, _) = Load::begin(server, path, Duplicates::Refused, None)?;
    load.only_checks = true;
    load.parse(file, |_| load.check())
}

/// Part of a file.
enum Part<'p> {
    Database(usize),
    Entry(Entry<'p>),
    /// A collection.
    Items(&'p [u8], Detached),
    Fact(&'p [u8], &'p [u8]),
    /// The text of a library.
    Library(&'p [u8]),
    /// The end of the file.
    End,
}

impl<'s> Load<'s> {
    fn begin(
        server: &'s Durable,
        path: &Path,
        duplicates: Duplicates,
        relief: Option<Relief<'s>>,
    ) -> Result<(Load<'s>, File, u64), String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let total_bytes = file.metadata().map_err(|error| error.to_string())?.len();
        let load = Load {
            server,
            now: sys::clock::realtime_ms(),
            duplicates,
            existing: Existing::Refused,
            keeps_expired: false,
            only_checks: false,
            _hold: relief.as_ref().and_then(|_| server.persistence.hold()),
            relief,
            underway: AtomicUsize::new(0),
            problem: Mutex::new(None),
            has_problem: AtomicBool::new(false),
        };
        let loading = server.snapshots.loading();
        loading.begin(load.now / 1000, total_bytes);
        Ok((load, file, total_bytes))
    }

    /// Loads the whole file. Returns its length in bytes.
    fn run(&self, file: File, total_bytes: u64) -> Result<u64, String> {
        let started = Instant::now();
        let loading = self.server.snapshots.loading();
        if total_bytes as usize <= LOAD_BUFFERS_PER_THREAD * LOAD_BUFFER_BYTES {
            let mut turn = self.server.keyspace.turns().register();
            self.read(file, |buffer| self.fill(&mut turn, buffer))?;
        } else {
            self.in_parallel(file)?;
        }
        log::info!(
            "Done loading RDB, keys loaded: {}, keys expired: {}.",
            loading.keys.load(Relaxed),
            loading.expired.load(Relaxed)
        );
        let took_s = started.elapsed().as_secs_f64();
        log::info!("DB loaded from disk: {took_s:.3} seconds");
        Ok(loading.loaded_bytes.load(Relaxed))
    }

    /// Reads on this thread and inserts on others.
    fn in_parallel(&self, file: File) -> Result<(), String> {
        let threads = self.server.workers.len().min(LOAD_THREADS);
        let (sender, receiver) = sync_channel(threads * LOAD_BUFFERS_PER_THREAD);
        let receiver = Mutex::new(receiver);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| self.fill_all(&receiver));
            }
            let read = self.read(file, |buffer| {
                self.underway.fetch_add(1, Relaxed);
                let sent = sender.send(buffer);
                sent.map_err(|_| "nobody fills the keyspace".to_owned())
            });
            // Ends the threads.
            drop(sender);
            read
        })?;
        self.check()
    }

    /// Inserts all received keys. After an error it keeps receiving, so that the sender never blocks.
    fn fill_all(&self, receiver: &Mutex<Receiver<Buffer>>) {
        let mut turn = self.server.keyspace.turns().register();
        loop {
            let received = receiver.lock().recv();
            let Ok(buffer) = received else { return };
            if !self.has_problem.load(Relaxed)
                && let Err(problem) = self.fill(&mut turn, buffer)
            {
                self.problem.lock().get_or_insert(problem);
                self.has_problem.store(true, Relaxed);
            }
            self.underway.fetch_sub(1, Relaxed);
        }
    }

    /// Checks that no thread has failed and that the load is not cancelled.
    fn check(&self) -> Result<(), String> {
        if self.has_problem.load(Relaxed)
            && let Some(problem) = self.problem.lock().clone()
        {
            return Err(problem);
        }
        if self.server.is_shutting_down() {
            return Err("the server ends".into());
        }
        Ok(())
    }

    /// Waits while keys are underway and memory is short, if `more` bytes are taken. Keys cannot leave memory
    /// before they are in the keyspace, and a large collection is a buffer of its own.
    fn wait_for_fillers(&self, more: usize) -> Result<(), String> {
        let is_short = |relief: &Relief<'_>| relief.is_short(more);
        while self.underway.load(Relaxed) > 0 && self.relief.as_ref().is_some_and(is_short) {
            self.check()?;
            std::thread::sleep(LOAD_LOOK);
        }
        Ok(())
    }

    /// Makes room for so many bytes of the thread that reads.
    fn make_room(&self, more: usize) -> Result<(), String> {
        let Some(relief) = &self.relief else {
            return Ok(());
        };
        self.wait_for_fillers(more)?;
        relief.relieve(&mut self.server.keyspace.turns().register(), more)
    }

    /// Reads the file and passes on its keys, a buffer at a time.
    fn read(
        &self,
        file: File,
        mut give: impl FnMut(Buffer) -> Result<(), String>,
    ) -> Result<(), String> {
        let delay_us = self.server.settings.int(Setting::KeyLoadDelay);
        let delay = Duration::from_micros(delay_us.unsigned_abs());
        let loading = self.server.snapshots.loading();
        let mut buffer = Buffer::of(0);
        let mut libraries = Vec::new();
        self.parse(file, |part| {
            let next = match &part {
                Part::Database(number) => *number,
                _ => buffer.database,
            };
            let is_full = buffer.records.bytes() + buffer.large_bytes >= LOAD_BUFFER_BYTES;
            if is_full || next != buffer.database || matches!(part, Part::End) {
                self.check()?;
                give(std::mem::replace(&mut buffer, Buffer::of(next)))?;
            }
            let expiry = match &part {
                Part::Entry(entry) => entry.attributes.expiry_ms,
                Part::Items(_, items) => items.expiry(),
                Part::Fact(name, value) => {
                    self.note_fact(name, value);
                    return Ok(());
                }
                Part::Library(text) => {
                    libraries.push(text.to_vec());
                    return Ok(());
                }
                Part::Database(_) | Part::End => return Ok(()),
            };
            self.wait(delay)?;
            if self.is_expired(expiry) {
                loading.expired.fetch_add(1, Relaxed);
                return Ok(());
            }
            match part {
                Part::Entry(entry) => buffer.push(entry),
                Part::Items(key, items) => buffer.push_items(key, items),
                _ => {}
            }
            Ok(())
        })?;
        libraries::take(self.server, libraries, self.existing)
    }

    /// Reads the file and gives out its parts. A collection without items is none, as for Redis.
    fn parse(
        &self,
        file: File,
        mut give: impl FnMut(Part<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let wrong = |error: rdb::Error| error.to_string();
        let (loading, server) = (self.server.snapshots.loading(), self.server);
        let checksum = server.settings.flag(Setting::RdbChecksum);
        let mut reader = TypedReader::new(file, checksum).map_err(wrong)?;
        reader.only(KINDS);
        let (mut name, mut database) = (Vec::new(), 0);
        loop {
            self.wait_for_fillers(0)?;
            match reader.next().map_err(wrong)? {
                None => break,
                Some(Typed::Item(item)) => match item {
                    Item::Database(number) => {
                        database = self.database(number)?;
                        give(Part::Database(database))?;
                    }
                    Item::Entry(entry) => give(Part::Entry(entry))?,
                    Item::Fact { name, value } => give(Part::Fact(name, value))?,
                    Item::Library(text) => give(Part::Library(text))?,
                    Item::Sizes { .. } | Item::Unsupported(_) => {}
                },
                Some(Typed::Begin {
                    key,
                    kind,
                    attributes,
                    ..
                }) => {
                    name.clear();
                    name.extend_from_slice(key);
                    let mut looked = loading.loaded_bytes.load(Relaxed);
                    let mut pause = |offset| {
                        loading.loaded_bytes.store(offset, Relaxed);
                        if offset - looked >= LOAD_LOOK_BYTES {
                            looked = offset;
                            self.make_room(0)?;
                        }
                        self.check()
                    };
                    let destination = Destination {
                        key: &name,
                        expiry: attributes.expiry_ms,
                        now: (!self.keeps_expired).then_some(self.now),
                        beyond: match &self.relief {
                            _ if self.only_checks => Beyond::Dropped,
                            Some(_) => {
                                Beyond::InLog(self.log_id(database), &|more| self.make_room(more))
                            }
                            None => Beyond::InMemory,
                        },
                    };
                    let from = (&mut reader, kind);
                    let read = read_items(server, from, &destination, &mut pause);
                    match read? {
                        ReadItems::Items(items) => give(Part::Items(&name, items))?,
                        ReadItems::Over => drop(loading.expired.fetch_add(1, Relaxed)),
                        ReadItems::Empty => {}
                    }
                }
                Some(Typed::Element(_) | Typed::End) => {
                    unreachable!("a collection is read to its end")
                }
            }
            loading.loaded_bytes.store(reader.offset(), Relaxed);
        }
        loading.loaded_bytes.store(reader.offset(), Relaxed);
        give(Part::End)
    }

    /// Index of a database of the file.
    fn database(&self, number: u64) -> Result<usize, String> {
        let databases = self.server.keyspace.databases();
        usize::try_from(number)
            .ok()
            .filter(|&number| number < databases)
            .ok_or_else(|| {
                format!("it has keys in database {number}, but 'databases' is {databases}")
            })
    }

    /// The number of a database in the log.
    fn log_id(&self, database: usize) -> DbId {
        DbId(self.server.persistence.ids[database].load(Relaxed))
    }

    fn is_expired(&self, expiry: Option<i64>) -> bool {
        !self.keeps_expired && expiry.is_some_and(|expiry| expiry < self.now)
    }

    /// For tests: waits, unless the load is cancelled.
    fn wait(&self, time: Duration) -> Result<(), String> {
        if time.is_zero() {
            return Ok(());
        }
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            self.check()?;
            std::thread::sleep(left.min(Duration::from_millis(10)));
        }
        Ok(())
    }

    /// Logs a property that the file states about itself.
    fn note_fact(&self, name: &[u8], value: &[u8]) {
        let text = String::from_utf8_lossy(value);
        let number = resp::parse_i64(value);
        match (name, number) {
            (b"redis-ver", _) => log::info!("Loading RDB produced by version {text}"),
            (b"valkey-ver", _) => log::info!("Loading RDB produced by Valkey {text}"),
            (b"ctime", Some(ctime)) => {
                let age_s = (self.now / 1000).saturating_sub(ctime).max(0);
                log::info!("RDB age {age_s} seconds");
            }
            (b"used-mem", Some(bytes)) => {
                let loading = self.server.snapshots.loading();
                loading.used_memory.store(bytes.unsigned_abs(), Relaxed);
                let megabytes = bytes as f64 / (1024.0 * 1024.0);
                log::info!("RDB memory usage when created {megabytes:.2} Mb");
            }
            _ => log::debug!("RDB fact {}: {text}", String::from_utf8_lossy(name)),
        }
    }

    /// Inserts the keys of a buffer, some at a time, after prefetching their buckets.
    fn fill(&self, turn: &mut Turn<'_>, buffer: Buffer) -> Result<(), String> {
        let keys = buffer.records.len() + buffer.trees.len();
        turn.enter();
        let result = self.fill_inside(turn, buffer);
        turn.leave();
        let loading = self.server.snapshots.loading();
        loading.keys.fetch_add(keys as u64, Relaxed);
        result?;
        match &self.relief {
            Some(relief) => relief.relieve(turn, 0),
            None => Ok(()),
        }
    }

    fn fill_inside(&self, turn: &Turn<'_>, buffer: Buffer) -> Result<(), String> {
        let number = buffer.database;
        let database = self.server.keyspace.database(turn, number);
        let mut records = buffer.records.iter();
        let mut window = Vec::with_capacity(LOAD_WINDOW);
        loop {
            window.extend(records.by_ref().take(LOAD_WINDOW).map(|record| {
                let hash = self.server.keyspace.hash(record.key);
                database.prefetch_bucket(hash);
                (record, hash)
            }));
            if window.is_empty() {
                break;
            }
            for (record, hash) in window.drain(..) {
                let bytes = record.key;
                self.add(database, number, Key { bytes, hash }, new(&record))?;
            }
        }
        for (bytes, mut tree) in buffer.trees {
            let key = database.key(&bytes);
            self.add(database, number, key, New::detached(&mut tree))?;
        }
        Ok(())
    }

    fn add(
        &self,
        database: &Database,
        number: usize,
        key: Key<'_>,
        new: New<'_>,
    ) -> Result<(), String> {
        let mut guard = database.lock(key.hash, self.now);
        if self.duplicates == Duplicates::Refused && guard.contains(key) {
            let name = key.bytes.escape_ascii();
            return Err(format!(
                "key \"{name}\" of database {number} is there twice"
            ));
        }
        // The log's record of a replaced key is dead. The new value is logged later, with all others.
        if self.server.persistence.is_open() {
            self.remove(&mut guard, number, key);
        }
        guard.write(key, new, |_, _| None);
        Ok(())
    }

    fn remove(&self, guard: &mut Guard<'_>, number: usize, key: Key<'_>) {
        let Some(entry) = guard.find(key) else {
            return;
        };
        if let Some(old) = entry.overwritten() {
            let persistence = &self.server.persistence;
            persistence.lost(old, key.bytes, Some(number));
        }
        entry.remove();
    }
}

/// What a key gets.
fn new<'r>(record: &'r Record<'_>) -> New<'r> {
    let new = match &record.value {
        RecordValue::Inline(bytes) => New::bytes(bytes),
        RecordValue::Large(large) => New::large(large),
        RecordValue::Cold(_) | RecordValue::Tree(_) => unreachable!("a file has all values"),
    };
    new.of(record.of).expiry(record.expiry)
}

impl Buffer {
    fn of(database: usize) -> Buffer {
        Buffer {
            database,
            records: Records::default(),
            trees: Vec::new(),
            large_bytes: 0,
        }
    }

    fn push(&mut self, entry: Entry<'_>) {
        let value = if entry.value.len() <= INLINE_VALUE_MAX {
            RecordValue::Inline(entry.value)
        } else {
            self.large_bytes += entry.value.len();
            RecordValue::Large(LargeValue::new(Large::from(std::mem::take(entry.value))))
        };
        self.records
            .push(entry.key, value, entry.attributes.expiry_ms);
    }

    fn push_items(&mut self, key: &[u8], items: Detached) {
        if let Some(run) = items.inline() {
            let value = (items.value_type(), RecordValue::Inline(run));
            self.records.push_typed(key, value, items.expiry());
        } else {
            self.large_bytes += items.bytes();
            self.trees.push((key.into(), items));
        }
    }
}
