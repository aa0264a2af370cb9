//! Files of redis-server in the data directory, and the directory of this server's log.
//!
//! ```text
//! dump.rdb                          a snapshot, of either server
//! appendonly.aof                    redis-server's log before version 7: one file
//! appendonlydir/                    redis-server's log (`appenddirname`): a manifest and its files;
//!                                   or this server's own, where redis-server has none
//! appendonlydir.ferrite/            this server's own beside one of redis-server
//! ```
//!
//! A log of this server in `appenddirname` stays there, whatever else is there.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use aof::Manifest;

use crate::config::{Foreign, Setting, Settings};

/// Suffix of `appenddirname` for a log beside one of redis-server.
const BESIDE: &str = ".ferrite";

/// An append-only file of redis-server.
#[derive(PartialEq, Eq)]
pub(crate) struct Found {
    /// The manifest, or the single file.
    pub(crate) name: PathBuf,
    /// Files with data, in order.
    pub(crate) files: Vec<PathBuf>,
    /// Size of the files, bytes.
    pub(crate) bytes: u64,
}

impl Found {
    /// The directory of the manifest, or the single file.
    pub(crate) fn whole(&self) -> &Path {
        match self.name.parent() {
            Some(directory) if is_manifest(self.name.as_os_str().as_bytes()) => directory,
            _ => &self.name,
        }
    }
}

/// Directory named by the settings.
fn named_directory(settings: &Settings) -> PathBuf {
    // Without trailing separators.
    let path = Path::new(".").join(&*settings.text(Setting::AppendDirName));
    path.components().collect()
}

/// Directory of this server's log, existing or new.
///
/// # Errors
/// There are two logs.
pub(crate) fn own_directory(settings: &Settings) -> Result<PathBuf, String> {
    let named = named_directory(settings);
    let beside = beside(&named);
    let is_log = |directory: &Path| directory.join("log").is_dir();
    match (is_log(&named), is_log(&beside)) {
        (true, true) => Err(format!(
            "there are two logs, {} and {}: move the one away that shall not count",
            named.display(),
            beside.display()
        )),
        (true, false) => Ok(named),
        (false, true) => Ok(beside),
        (false, false) if file_of_redis_6(settings).exists() || has_redis_files(&named) => {
            Ok(beside)
        }
        (false, false) => Ok(named),
    }
}

fn beside(named: &Path) -> PathBuf {
    let mut name = named.as_os_str().to_owned();
    name.push(BESIDE);
    PathBuf::from(name)
}

/// Whether a directory contains files of redis-server.
pub(crate) fn has_redis_files(directory: &Path) -> bool {
    names(directory).any(|name| {
        let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
        is_manifest(&name) || name.ends_with(b".aof") || has(b".aof.")
    })
}

/// File names in a directory; none if it doesn't exist.
fn names(directory: &Path) -> impl Iterator<Item = Vec<u8>> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().as_bytes().to_vec())
}

/// Whether a file is a manifest, and not a temporary one.
fn is_manifest(name: &[u8]) -> bool {
    name.ends_with(b".manifest") && !name.starts_with(b"temp-")
}

/// `appendfilename`.
fn file_name(settings: &Settings) -> String {
    let row = Foreign::find(b"appendfilename");
    let said = row.and_then(|row| settings.foreign_text(row));
    said.map_or_else(|| "appendonly.aof".into(), |name| name.to_string())
}

/// The append-only file of redis-server before version 7.
fn file_of_redis_6(settings: &Settings) -> PathBuf {
    Path::new(".").join(file_name(settings))
}

/// The append-only file that redis-server would load; `None` if there is none, or an empty one.
///
/// # Errors
/// It is incomplete.
pub(crate) fn find(settings: &Settings) -> Result<Option<Found>, String> {
    let directory = named_directory(settings);
    let path = manifest(&directory, &file_name(settings))?;
    let listed = path.as_deref().map(read_manifest).transpose()?;
    let single = file_of_redis_6(settings);
    let (name, files) = match (path, listed) {
        (_, listed) if single.is_file() && counts(&single, &directory, listed.as_ref()) => {
            (single.clone(), vec![single])
        }
        (Some(path), Some(manifest)) => {
            let own = |listed: &aof::Listed| directory.join(OsStr::from_bytes(&listed.name));
            (path, manifest.files().map(own).collect())
        }
        _ if has_redis_files(&directory) => {
            return Err(format!(
                "{} has files of redis-server, but no manifest that says which of them count. Put the \
                 manifest there, or move the files away to start without their data",
                directory.display()
            ));
        }
        _ => return Ok(None),
    };
    let mut bytes = 0;
    for file in &files {
        let metadata = file.metadata().map_err(|error| {
            format!(
                "{} cannot be taken over: {}: {error}",
                name.display(),
                file.display()
            )
        })?;
        bytes += metadata.len();
    }
    Ok((bytes > 0).then_some(Found { name, files, bytes }))
}

/// Whether the single file is used, as redis-server 7 decides: it was not moved into the directory.
fn counts(single: &Path, directory: &Path, manifest: Option<&Manifest>) -> bool {
    let Some(manifest) = manifest else {
        return true;
    };
    let is_it = |base: &aof::Listed| {
        let name = OsStr::from_bytes(&base.name);
        single.file_name() == Some(name) && !directory.join(name).exists()
    };
    manifest.increments.is_empty() && manifest.base.as_ref().is_none_or(is_it)
}

/// The manifest in a directory: the one of this name, or the only one.
fn manifest(directory: &Path, file_name: &str) -> Result<Option<PathBuf>, String> {
    let usual = directory.join(format!("{file_name}.manifest"));
    if usual.is_file() {
        return Ok(Some(usual));
    }
    let mut all = names(directory).filter(|name| is_manifest(name));
    match (all.next(), all.next()) {
        (Some(_), Some(_)) => Err(format!(
            "{} has manifests of several append-only files: 'appendfilename' says which counts",
            directory.display()
        )),
        (only, _) => Ok(only.map(|name| directory.join(OsStr::from_bytes(&name)))),
    }
}

fn read_manifest(path: &Path) -> Result<Manifest, String> {
    let wrong = |problem: String| format!("{} cannot be taken over: {problem}", path.display());
    let text = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    Manifest::parse(&text).map_err(|error| wrong(error.to_string()))
}
