//! A log that has been opened and does not take writes yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sys::file::{Files, Lock};

use super::aside::Aside;
use super::parts::Cut;
use super::replay::{Progress, ReplayOptions, Replayer, Source};
use super::{chain, takeover};
use crate::address::{DbId, Lsn};
use crate::bindings::Bindings;
use crate::blob::{self, Blobs};
use crate::core::{Beginning, Core};
use crate::directory::lock_directory;
use crate::engine::{Ends, Engine};
use crate::error::{Error, Result};
use crate::fetch::ValueReader;
use crate::lacking;
use crate::liveness::Liveness;
use crate::log::Log;
use crate::manifest;
use crate::options::Options;
use crate::paths::Paths;
use crate::record::Tag;
use crate::segment::{Name, is_zero};
use crate::segments::{Segment, Segments};
use crate::space;

/// A log that has been opened and does not take writes yet.
#[derive(Debug)]
pub struct Recovery {
    files: Arc<dyn Files>,
    paths: Paths,
    options: Options,
    lock: Box<dyn Lock>,
    segments: Arc<Segments>,
    blobs: Arc<Blobs>,
    bindings: Bindings,
    name: Option<Name>,
    end: Lsn,
    /// Everything below was synced by an earlier run.
    durable: Lsn,
    is_backup: bool,
    cut: Option<Cut>,
    leftovers: Vec<PathBuf>,
    pub(super) is_replayed: bool,
}

impl Log {
    /// Opens the log in `directory`, which is made if it is missing, and finds out what it consists of.
    ///
    /// # Errors
    /// Another process has it, it is damaged, or the disk refuses.
    pub fn open(files: Arc<dyn Files>, directory: &Path, options: Options) -> Result<Recovery> {
        Recovery::open(files, directory, options)
    }
}

impl Recovery {
    fn open(files: Arc<dyn Files>, directory: &Path, options: Options) -> Result<Recovery> {
        options.check()?;
        let paths = Paths::new(directory);
        for path in [&paths.root, &paths.log, &paths.blobs] {
            files
                .create_directory(path)
                .map_err(|error| Error::io("cannot make", path, error))?;
        }
        let lock = lock_directory(&*files, &paths)?;
        let chain = chain::find(&*files, &paths)?;
        let chain = takeover::take_over(&*files, &paths, chain)?;
        if options.epoch < chain.epoch {
            return Err(Error::Options("the log was written by a later epoch"));
        }
        let segments = Arc::new(Segments::default());
        for (candidate, extent) in chain.segments {
            let segment = Segment::new(
                extent.first,
                candidate.path,
                candidate.file,
                candidate.header_bytes,
            );
            segment.set_bytes(extent.bytes);
            segment.seal();
            segments.push(Arc::new(segment), chain.end.0);
        }
        Ok(Recovery {
            files,
            paths,
            options,
            lock,
            segments,
            blobs: Arc::default(),
            bindings: chain.bindings,
            name: chain.name,
            end: chain.end,
            // Where it was made; whoever has copied a backup since may not have made that durable.
            durable: if chain.is_backup {
                Lsn(0)
            } else {
                chain.durable
            },
            is_backup: chain.is_backup,
            cut: chain.cut,
            leftovers: chain.leftovers,
            is_replayed: false,
        })
    }

    /// What the database numbers mean.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Bytes of records in the log.
    pub fn log_bytes(&self) -> u64 {
        let map = self.segments.map();
        map.segments.iter().map(|segment| segment.bytes()).sum()
    }

    /// Files that the log consists of.
    pub fn segments(&self) -> usize {
        self.segments.map().segments.len()
    }

    /// Where the log ends: the position of the next record.
    pub fn end(&self) -> Lsn {
        self.end
    }

    /// What is behind the end of the log and will be put aside: a line for the operator.
    pub fn cut(&self) -> Option<String> {
        let cut = self.cut.as_ref()?;
        Some(cut.line(self.end, &self.paths))
    }

    /// Reads values back: those that a replay has left on the disk. Until its end, the file of a large value
    /// that a record names can be missing, because a later record has replaced it.
    pub fn value_reader(&self) -> ValueReader {
        ValueReader::new(
            self.files.clone(),
            self.paths.clone(),
            self.segments.clone(),
            self.blobs.clone(),
            None,
        )
    }

    /// For notes about records that are dead although no later one says so: leaves of instances that no `Set`
    /// names at the end of a replay.
    pub fn liveness(&self) -> Liveness {
        Liveness::new(self.segments.clone(), self.blobs.clone(), None)
    }

    /// Hands all records to `replayer`. `progress` is called now and then.
    ///
    /// # Errors
    /// A record is damaged, of another version, or cannot be read. What was applied until then is of no use.
    pub fn replay(
        &mut self,
        options: ReplayOptions,
        replayer: &dyn Replayer,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let source = Source {
            files: &*self.files,
            paths: &self.paths,
            name: self.name,
            bindings: &self.bindings,
            segments: &self.segments,
            blobs: &self.blobs,
        };
        source.replay(options, replayer, progress)?;
        self.is_replayed = true;
        Ok(())
    }

    /// Begins to take writes. On a disk that has no space at all the log refuses records at first, and can be
    /// read.
    ///
    /// # Errors
    /// The disk refuses, for another reason.
    ///
    /// # Panics
    /// If the log has records and was not replayed: nobody would know what lives.
    pub fn start(mut self) -> Result<Log> {
        assert!(
            self.is_replayed || self.log_bytes() == 0,
            "a log is replayed before it takes writes"
        );
        if let Some(line) = self.cut() {
            log::warn!("{line}");
        }
        let aside = self.put_aside()?;
        // What was read may not be on the disk yet. Nothing is removed because of it before it is.
        self.sync_old()?;
        self.tidy()?;
        if aside.is_none() {
            self.give_back();
        }
        let settled = blob::settle(&*self.files, &self.paths, &self.blobs, self.end);
        let settled = settled.map_err(|error| match self.is_backup {
            true => manifest::explain(error),
            false => error,
        });
        settled.map_err(|error| self.with_key(error))?;
        if self.is_backup {
            manifest::remove(&*self.files, &self.paths)?;
        }
        let name = match self.name {
            Some(name) => name,
            None => new_name()?,
        };
        let (files, paths) = (&*self.files, &self.paths);
        let (ring, consumer) = takeover::make_ring(files, paths, &self.options, name, self.end)?;
        let producer = ring.producer().expect("a fresh ring has none yet");
        let core = Core::new(Beginning {
            files: self.files,
            paths: self.paths,
            options: self.options,
            name,
            ring,
            bindings: self.bindings,
            start: self.end,
            segments: self.segments,
            blobs: self.blobs,
            lock: self.lock,
        });
        let ends = Ends {
            consumer,
            producer,
            aside,
        };
        Ok(Log::start(Arc::new(Engine::begin(core, ends)?)))
    }

    /// Notes instances that lack records. A repair ends them, so that the start after it deletes their keys.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn note_lacking(&self, instances: &[(DbId, u64, Tag)]) -> Result<()> {
        self.name.map_or(Ok(()), |name| {
            lacking::write(&*self.files, &self.paths, name, instances)
        })
    }

    /// Says of a large value whose file is not as it should be which key it is of.
    fn with_key(&self, error: Error) -> Error {
        let Error::Damage(mut damage) = error else {
            return error;
        };
        let id = damage.file.file_name().and_then(|name| name.to_str());
        let id = id.and_then(|name| u64::from_str_radix(name, 16).ok());
        let reader = self.value_reader();
        let lsn = id.and_then(|id| self.blobs.first_naming(id));
        if let Some((db, key)) = lsn.and_then(|lsn| reader.key_at(lsn)) {
            let number = self.bindings.number_of(db);
            let key = key.escape_ascii();
            damage.reason +=
                &format!("; it is the value of the key \"{key}\" in database {number}");
        }
        Error::Damage(damage)
    }

    /// Moves what is behind the end out of the way. Returns it if the disk has no space for that yet.
    fn put_aside(&mut self) -> Result<Option<Aside>> {
        let Some(cut) = self.cut.take() else {
            return Ok(None);
        };
        let aside = Aside { cut, end: self.end };
        match aside.put(&*self.files, &self.paths, &self.segments) {
            Ok(()) => Ok(None),
            Err(error) if space::is_lack(&error) => Ok(Some(aside)),
            Err(error) => Err(error),
        }
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        self.files
            .sync_dir(path)
            .map_err(|error| Error::io("cannot sync", path, error))
    }

    /// Removes what is no part of the log: retired segments, space that was taken and not used, hints of
    /// segments that are gone.
    fn tidy(&mut self) -> Result<()> {
        let map = self.segments.map();
        // One in which nothing was written makes room for the new one, which has the same name.
        if let Some(last) = map.last().filter(|last| last.bytes() == 0) {
            self.segments.remove(last.first);
        }
        let names = self
            .files
            .list(&self.paths.log)
            .map_err(|error| Error::io("cannot list", &self.paths.log, error))?;
        let map = self.segments.map();
        let has = |first| map.segments.iter().any(|segment| segment.first == first);
        let is_stale = |name: &String| {
            let hint = name
                .strip_suffix(".hint")
                .map(|first| format!("{first}.log"));
            let stale_hint =
                hint.is_some_and(|name| !crate::segment::first_of(&name).is_some_and(has));
            let path = self.paths.log.join(name);
            let is_space = path == self.paths.temporary("next") && self.is_left(&path);
            name.ends_with(".tmp") && !is_space || stale_hint
        };
        let stale = names.iter().filter(|name| is_stale(name));
        let stale: Vec<_> = stale.map(|name| self.paths.log.join(name)).collect();
        for path in self.leftovers.drain(..).chain(stale) {
            match self.files.unlink(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io("cannot remove", &path, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives back the space that the last run has taken and not used, if there is little other.
    fn give_back(&self) {
        let wanted = self.options.reserve_bytes + self.options.segment_bytes;
        let free = self.files.free_bytes(&self.paths.log);
        if free.is_ok_and(|free| free < wanted.saturating_add(self.options.ring_bytes as u64)) {
            for segment in &self.segments.map().segments {
                // If it fails, the file is only longer than it has to be.
                let _ = segment.trim();
            }
        }
    }

    /// Whether the space that the last run has left for this one is as it was taken: a segment that was begun
    /// in it has a header.
    fn is_left(&self, path: &Path) -> bool {
        let is_zero = || {
            let file = self.files.open(path)?;
            let (size, mut piece) = (file.size()?, vec![0; 1 << 16]);
            let mut at = 0;
            while at < size {
                let bytes = &mut piece[..(size - at).min(1 << 16) as usize];
                file.read_exact_at(bytes, at)?;
                if !is_zero(bytes) {
                    return Ok(false);
                }
                at += bytes.len() as u64;
            }
            std::io::Result::Ok(size > 0)
        };
        is_zero().unwrap_or(false)
    }

    /// What an earlier run left unsynced was read, and will be built upon: the files of large values first,
    /// as ever.
    fn sync_old(&self) -> Result<()> {
        for blob in self.blobs.named_from(self.durable) {
            let (path, directory) = (self.paths.blob(blob.id), self.paths.blob_directory(blob.id));
            match self.files.open(&path) {
                Ok(file) => file
                    .sync_data()
                    .map_err(|error| Error::io("cannot sync", &path, error))?,
                // That it is missing is told where all of them are looked at.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("cannot open", &path, error)),
            }
            self.sync_directory(&directory)?;
        }
        for segment in &self.segments.map().segments {
            if segment.end() > self.durable {
                segment
                    .file
                    .sync_data()
                    .map_err(|error| Error::io("cannot sync", &segment.path, error))?;
            }
        }
        self.sync_directory(&self.paths.log)?;
        self.sync_directory(&self.paths.root)
    }
}

/// The identity of a new log.
fn new_name() -> Result<Name> {
    let mut name = [0; 16];
    sys::random::fill(&mut name)
        .map_err(|error| Error::io("cannot read", Path::new("the system's randomness"), error))?;
    Ok(name)
}
