//! Backup: sealed segments never change, so a copy of the log is a second name for each of its files.
//!
//! ```text
//!  DEST/log/FIRST.log ...   the segments, linked (copied, where a link cannot be made)
//!  DEST/blobs/XX/ID         the large values, linked
//!  DEST/MANIFEST            says that all of it is there (`manifest`)
//! ```
//!
//! A server that starts with DEST as its directory has exactly the state of the backup's position. What is
//! later in the log is in no linked file, because the segment ended there.

use std::path::Path;
use std::sync::Arc;

use sys::file::File;

use crate::address::Lsn;
use crate::core::Core;
use crate::directory::copy_range;
use crate::engine::Engine;
use crate::error::{Damage, Error, Result, absolute};
use crate::lock::lock;
use crate::manifest;
use crate::paths::Paths;
use crate::record::BlobRef;
use crate::segments::Segment;
use crate::sums::damage_of;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Everything below this position is in it, and nothing else.
    pub end: Lsn,
    /// Segments.
    pub segments: usize,
    /// Bytes of the segments.
    pub bytes: u64,
    /// Values in files of their own.
    pub blobs: usize,
}

/// See [`Log::backup`](crate::Log::backup).
pub(crate) fn backup(engine: &Engine, destination: &Path) -> Result<Backup> {
    // Nothing is taken away while it is copied.
    let deletion = lock(&engine.deletion);
    let end = seal(engine)?;
    let map = engine.segments.map();
    let segments: Vec<&Arc<Segment>> = map
        .segments
        .iter()
        .filter(|segment| segment.end() <= end && segment.is_sealed())
        .filter(|segment| segment.is_named_at(end))
        .collect();
    let paths = Paths::new(destination);
    match engine.files.list(&paths.log) {
        Ok(names) if !names.is_empty() => {
            return Err(Error::Taken(absolute(&paths.root)));
        }
        _ => {}
    }
    for path in [&paths.root, &paths.log, &paths.blobs] {
        engine
            .files
            .create_directory(path)
            .map_err(|error| Error::io("cannot make", path, error))?;
    }
    let mut listed = Vec::with_capacity(segments.len());
    for segment in &segments {
        let to = paths.segment(segment.first);
        link(
            engine,
            &segment.path,
            &*segment.file,
            segment.header_bytes + segment.bytes(),
            &to,
        )?;
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        listed.push((name.into_owned(), segment.bytes()));
    }
    let blobs = link_blobs(engine, &paths, end)?;
    // The backup has files of its own by now.
    drop(deletion);
    verify_blobs(engine, &paths, &blobs)?;
    engine
        .files
        .sync_dir(&paths.log)
        .map_err(|error| Error::io("cannot sync", &paths.log, error))?;
    let text = manifest::text(end, listed.into_iter());
    manifest::write(&*engine.files, &paths, &text)?;
    Ok(Backup {
        end,
        segments: segments.len(),
        bytes: segments.iter().map(|segment| segment.bytes()).sum(),
        blobs: blobs.len(),
    })
}

/// Ends the running segment with what has been committed, and makes it durable. Where it ends.
fn seal(engine: &Engine) -> Result<Lsn> {
    let tail = engine.tail();
    let ends_before = || {
        engine
            .segments
            .map()
            .last()
            .map_or(Lsn::FIRST, |last| last.first)
    };
    if let Some(writer) = lock(&engine.writer).as_mut() {
        writer.seal_at = Some(tail);
    }
    // A full disk has no space for the next segment, and nobody knows when it will.
    engine.wait_for_room(|| !engine.is_healthy() || ends_before() >= tail);
    if let Some(refusal) = engine.refusal().filter(|_| ends_before() < tail) {
        return Err(Error::Refused(refusal));
    }
    // The segment that runs now may have begun later than the tail that was asked for.
    let end = ends_before();
    engine.force(end).map_err(Error::Refused)?;
    Ok(end)
}

fn link(core: &Core, from: &Path, file: &dyn File, size: u64, to: &Path) -> Result<()> {
    match core.files.link(from, to) {
        Ok(()) => Ok(()),
        // Another file system, or one without links.
        Err(_) => copy_range(&*core.files, file, 0..size, to)
            .map_err(|error| Error::io("cannot write", to, error)),
    }
}

/// Links all blobs into a backup that ends at `end`. Which these are, and whether it needs them.
fn link_blobs(core: &Core, to: &Paths, end: Lsn) -> Result<Vec<(BlobRef, bool)>> {
    let all = core.blobs.all_there_are(end);
    let blobs: Vec<(BlobRef, bool)> = all.into_values().collect();
    for (blob, _) in &blobs {
        let (from, directory) = (core.paths.blob(blob.id), to.blob_directory(blob.id));
        core.files
            .create_directory(&directory)
            .map_err(|error| Error::io("cannot make", &directory, error))?;
        let file = core.files.open(&from);
        let file = file.map_err(|error| Error::io("cannot open", &from, error))?;
        let size = file.size();
        let size = size.map_err(|error| Error::io("cannot read", &from, error))?;
        link(core, &from, &*file, size, &to.blob(blob.id))?;
        core.files
            .sync_dir(&directory)
            .map_err(|error| Error::io("cannot sync", &directory, error))?;
    }
    core.files
        .sync_dir(&to.blobs)
        .map_err(|error| Error::io("cannot sync", &to.blobs, error))?;
    Ok(blobs)
}

/// Reads the blobs that a backup needs and checks them. What is wrong is said of the log's own file.
fn verify_blobs(core: &Core, backup: &Paths, blobs: &[(BlobRef, bool)]) -> Result<()> {
    for (blob, _) in blobs.iter().filter(|(_, is_needed)| *is_needed) {
        let damage = damage_of(&*core.files, &backup.blob(blob.id), *blob)?;
        if let Some(damage) = damage {
            let file = core.paths.blob(blob.id);
            return Err(Error::Damage(Damage { file, ..damage }));
        }
    }
    Ok(())
}
