//! The manifest: which files belong to an append-only file, and in which order they are read.
//!
//! Invariants of a [`Manifest`]:
//! 1. No name has a `/`: every file is beside the manifest.
//! 2. The numbers of the increments rise.

use std::fmt;

use crate::words;

/// Bytes of a line at most, its end included, as in redis-server.
const LINE_BYTES: usize = 1024;

/// See the module. Files that are history are left out: what they hold is in the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// What everything begins with, if there is something.
    pub base: Option<Listed>,
    /// What came since, the oldest first.
    pub increments: Vec<Listed>,
}

/// A file that a manifest lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name, beside the manifest.
    pub name: Vec<u8>,
    /// Its number.
    pub seq: u64,
}

/// Why a manifest cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for ManifestError {}

/// What a file is for.
enum Kind {
    Base,
    Increment,
    History,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// It is none, or not a whole one.
    pub fn parse(text: &[u8]) -> Result<Manifest, ManifestError> {
        let mut manifest = Manifest::default();
        let mut lines = 0;
        for (at, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let wrong = |reason| ManifestError {
                line: at + 1,
                reason,
            };
            lines = at + 1;
            if line.starts_with(b"#") {
                continue;
            }
            if line.len() > LINE_BYTES || !line.ends_with(b"\n") {
                return Err(wrong("it has no end, or is too long"));
            }
            let (listed, kind) = parse_line(line).map_err(wrong)?;
            manifest.add(listed, kind).map_err(wrong)?;
        }
        if lines == 0 {
            return Err(ManifestError {
                line: 1,
                reason: "the manifest is empty",
            });
        }
        Ok(manifest)
    }

    /// All files, in the order in which they are read.
    pub fn files(&self) -> impl Iterator<Item = &Listed> {
        self.base.iter().chain(&self.increments)
    }

    fn add(&mut self, listed: Listed, kind: Kind) -> Result<(), &'static str> {
        match kind {
            Kind::History => {}
            Kind::Base if self.base.is_some() => return Err("there is a base already"),
            Kind::Base => self.base = Some(listed),
            Kind::Increment => {
                let last = self.increments.last();
                if last.is_some_and(|last| last.seq >= listed.seq) {
                    return Err("the numbers of the increments do not rise");
                }
                self.increments.push(listed);
            }
        }
        Ok(())
    }
}

/// Reads a line: pairs of a word and what it means, of which unknown ones are passed over.
fn parse_line(line: &[u8]) -> Result<(Listed, Kind), &'static str> {
    let words = words::split(line).ok_or("quotes do not match")?;
    if words.len() < 6 || words.len() % 2 != 0 {
        return Err("it should say: file NAME seq NUMBER type b|i|h");
    }
    let (mut name, mut seq, mut kind) = (None, None, None);
    for pair in words.chunks_exact(2) {
        let value = &pair[1];
        match pair[0].to_ascii_lowercase().as_slice() {
            b"file" => name = Some(value.clone()),
            b"seq" => {
                let text = std::str::from_utf8(value).ok();
                seq = text.and_then(|text| text.parse().ok());
            }
            b"type" => {
                kind = Some(match value.first() {
                    Some(b'b') => Kind::Base,
                    Some(b'i') => Kind::Increment,
                    Some(b'h') => Kind::History,
                    _ => return Err("the type is none of b, i and h"),
                });
            }
            _ => {}
        }
    }
    let name = name.ok_or("the name of the file is missing")?;
    if name.is_empty() || name.contains(&b'/') || name == b"." || name == b".." {
        return Err("the file is not beside the manifest");
    }
    let seq = seq
        .filter(|&seq| seq > 0)
        .ok_or("the number of the file is missing")?;
    Ok((
        Listed { name, seq },
        kind.ok_or("the type of the file is missing")?,
    ))
}
