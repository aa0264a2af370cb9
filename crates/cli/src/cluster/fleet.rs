//! The nodes that a directory or a file names.

use std::path::{Path, PathBuf};

use map::Map;

use crate::failure::{Failure, Result, reason};

/// The map in the directory of `cluster local`.
pub(super) const MAP: &str = "map.toml";

/// See the module.
pub(super) struct Fleet {
    pub(super) map: Map,
}

impl Fleet {
    /// The nodes of a directory of `cluster local`, or of a map.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn open(path: &Path) -> Result<Fleet> {
        Ok(Fleet {
            map: read_map(&map_of(path)?)?,
        })
    }
}

/// Where the map is.
fn map_of(path: &Path) -> Result<PathBuf> {
    let facts = path
        .metadata()
        .map_err(|error| Failure::Other(format!("{}: {}", path.display(), reason(&error))))?;
    if !facts.is_dir() {
        return Ok(path.to_owned());
    }
    let map = path.join(MAP);
    if map.exists() {
        Ok(map)
    } else {
        Err(Failure::Other(format!(
            "{} is no directory of `cluster local`: it has no {MAP}",
            path.display()
        )))
    }
}

/// The map in a file.
///
/// # Errors
/// All that is wrong with it, a line each.
pub(super) fn read_map(path: &Path) -> Result<Map> {
    Map::read_file(path).map_err(|lines| Failure::Other(lines.join("\n")))
}
