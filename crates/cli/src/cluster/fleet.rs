//! The nodes that a directory or a file names.

use std::path::{Path, PathBuf};

use map::Map;

use super::node_process;
use crate::connection::Place;
use crate::failure::{Failure, Result, reason};

/// The map in the directory of `cluster local`.
pub(super) const MAP: &str = "map.toml";

/// See the module.
pub(super) struct Fleet {
    pub(super) map: Map,
    pub(super) members: Vec<Member>,
}

/// A node of a fleet.
pub(super) struct Member {
    /// What tables call it.
    pub(super) name: String,
    /// Forty digits.
    pub(super) id: String,
    pub(super) host: String,
    pub(super) port: u16,
    /// Where its data is, if it is a node of `cluster local`.
    pub(super) directory: Option<PathBuf>,
}

impl Member {
    pub(super) fn place(&self) -> Place {
        Place::Port(self.host.clone(), self.port)
    }

    /// Whether it is the node of an id.
    pub(super) fn is(&self, id: &str) -> bool {
        self.id == id
    }

    /// The process, if it runs on this machine in the directory of the node.
    pub(super) fn process(&self) -> Option<u32> {
        node_process::running_in(self.directory.as_ref()?)
    }
}

impl Fleet {
    /// The nodes of a directory of `cluster local`, or of a map.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn open(path: &Path) -> Result<Fleet> {
        let facts = path.metadata().map_err(|error| wrong(path, &error))?;
        if !facts.is_dir() {
            return Ok(Fleet::of(read_map(path)?, None));
        }
        let file = path.join(MAP);
        if !file.exists() {
            return Err(Failure::Other(format!(
                "{} is no directory of `cluster local`: it has no {MAP}",
                path.display()
            )));
        }
        Ok(Fleet::of(read_map(&file)?, Some(path)))
    }

    /// The nodes of a map, with their directories in that of `cluster local`.
    pub(super) fn of(map: Map, directory: Option<&Path>) -> Fleet {
        let member = |node: &map::Node| Member {
            name: node.name.clone(),
            id: node.id.clone(),
            host: node.host.clone(),
            port: node.port,
            directory: directory.map(|directory| directory.join(&node.name)),
        };
        Fleet {
            members: map.nodes.iter().map(member).collect(),
            map,
        }
    }
}

/// The map in a file.
///
/// # Errors
/// All that is wrong with it, a line each.
pub(super) fn read_map(path: &Path) -> Result<Map> {
    Map::read_file(path).map_err(|lines| Failure::Other(lines.join("\n")))
}

/// A failure with a file, in words.
pub(super) fn wrong(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Other(format!("{}: {}", path.display(), reason(error)))
}
