//! What another version wrote, and which one that was.
//!
//! A record whose checksum is right is what a server wrote on purpose. If this version does not know what it
//! says, the log is of a later version: nothing of it may be skipped, cut off or taken for something else. So
//! the start ends, and says where the record is, and which version wrote the segment.

use std::fmt;
use std::path::Path;

use crate::error::Error;
use crate::record::Unknown;

/// A version of the server, as headers hold it. No version: the header was written before they held one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32);

/// The number that `text` is; the parts of a version are decimal.
const fn number(text: &str) -> u32 {
    let (bytes, mut at, mut number) = (text.as_bytes(), 0, 0);
    while at < bytes.len() {
        assert!(bytes[at].is_ascii_digit());
        number = number * 10 + (bytes[at] - b'0') as u32;
        at += 1;
    }
    number
}

impl Version {
    /// No version.
    pub(crate) const NONE: Version = Version(0);

    /// This one.
    pub(crate) const THIS: Version = {
        let major = number(env!("CARGO_PKG_VERSION_MAJOR"));
        let minor = number(env!("CARGO_PKG_VERSION_MINOR"));
        let patch = number(env!("CARGO_PKG_VERSION_PATCH"));
        assert!(major < 1 << 8 && minor < 1 << 8 && patch < 1 << 16);
        Version(major << 24 | minor << 16 | patch)
    };
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version(bits) = self;
        write!(f, "{}.{}.{}", bits >> 24, bits >> 16 & 0xff, bits & 0xffff)
    }
}

/// The words for a version that wrote what this one does not know.
pub(crate) fn other(writer: Version) -> String {
    match writer {
        Version::NONE => "a later version wrote it".to_owned(),
        Version::THIS => format!("another build of version {writer} wrote it"),
        writer => format!("version {writer} wrote it"),
    }
}

/// Why a start ends: something in a segment's file, at this offset, that this version does not know.
pub(crate) fn refused_at(path: &Path, offset: u64, what: Unknown, writer: Version) -> Error {
    let (this, writer) = (Version::THIS, other(writer));
    let reason = format!("{what}, which this version ({this}) does not know; {writer}");
    Error::version(path, offset, reason)
}

/// Why a start ends: a file beside the segments has this format, which this version does not read.
pub(crate) fn other_format(path: &Path, format: &dyn fmt::Display) -> Error {
    let (this, writer) = (Version::THIS, other(Version::NONE));
    let reason =
        format!("it has format {format}, which this version ({this}) does not know; {writer}");
    Error::version(path, 0, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_its_three_numbers() {
        assert_eq!(Version::THIS.to_string(), env!("CARGO_PKG_VERSION"));
        assert_eq!(Version(0x0102_0304).to_string(), "1.2.772");
        assert!(other(Version::NONE).contains("later"));
        assert!(other(Version(1 << 24)).starts_with("version 1.0.0 "));
        assert!(other(Version::THIS).starts_with("another build"));
    }
}
