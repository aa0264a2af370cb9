//! The nodes that a directory or a file names.

use std::path::{Path, PathBuf};

use map::Map;

use super::given::Given;
use super::subcommand::SubcommandFlag;
use super::{node_process, nodes};
use crate::connection::Place;
use crate::failure::{Failure, Result, reason};

/// The map in the directory of `cluster local`.
pub(super) const MAP: &str = "map.toml";

/// The port of a node whose line in a file of hosts has none, as `cluster deploy` has it.
const PORT: u16 = 6380;

/// The flag that says it otherwise.
pub(super) const PORT_FLAG: SubcommandFlag = SubcommandFlag {
    long: "port",
    value: "PORT",
    summary: "The port of nodes whose line in NODES has none (6380).",
};

/// See the module.
pub(super) struct Fleet {
    /// What is known of the cluster before a node is asked: nothing, if a file names hosts alone.
    pub(super) map: Option<Map>,
    pub(super) members: Vec<Member>,
}

/// A node of a fleet.
pub(super) struct Member {
    /// What tables call it.
    pub(super) name: String,
    /// Forty digits, if they are known.
    pub(super) id: Option<String>,
    pub(super) host: String,
    pub(super) port: u16,
    /// Where its data is, if it is a node of `cluster local`.
    pub(super) directory: Option<PathBuf>,
}

impl Member {
    pub(super) fn place(&self) -> Place {
        Place::Port(self.host.clone(), self.port)
    }

    /// Whether it may be the node of an id; a server without a cluster has none.
    pub(super) fn is(&self, id: &str) -> bool {
        self.id.as_ref().map_or(!id.is_empty(), |own| own == id)
    }

    /// The process, if it runs on this machine in the directory of the node.
    pub(super) fn process(&self) -> Option<u32> {
        node_process::running_in(self.directory.as_ref()?)
    }
}

impl Fleet {
    /// The nodes that the first word behind a subcommand names.
    ///
    /// # Errors
    /// It names none.
    pub(super) fn of_given(given: &Given) -> Result<Fleet> {
        let port = given.number(PORT_FLAG.long, 1..=65535)?;
        Fleet::open(given.path(0), port.map_or(PORT, |port| port as u16))
    }

    /// The nodes of a directory of `cluster local`, of a map (`*.toml`), or of a file of hosts.
    fn open(path: &Path, port: u16) -> Result<Fleet> {
        let facts = path.metadata().map_err(|error| wrong(path, &error))?;
        if facts.is_dir() {
            let file = path.join(MAP);
            if !file.exists() {
                return Err(Failure::Other(format!(
                    "{} is no directory of `cluster local`: it has no {MAP}",
                    path.display()
                )));
            }
            return Ok(Fleet::of(read_map(&file)?, Some(path)));
        }
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            return Ok(Fleet::of(read_map(path)?, None));
        }
        let nodes = nodes::read(path, port).map_err(Failure::Other)?;
        let member = |node: nodes::Node| Member {
            name: node.address(),
            id: None,
            host: node.host,
            port: node.port,
            directory: None,
        };
        Ok(Fleet {
            map: None,
            members: nodes.into_iter().map(member).collect(),
        })
    }

    /// The map, of a cluster that has one.
    pub(super) fn own_map(&self) -> &Map {
        self.map.as_ref().expect("it was made of a map")
    }

    /// The nodes of a map, with their directories in that of `cluster local`.
    pub(super) fn of(map: Map, directory: Option<&Path>) -> Fleet {
        let member = |node: &map::Node| Member {
            name: node.name.clone(),
            id: Some(node.id.clone()),
            host: node.host.clone(),
            port: node.port,
            directory: directory.map(|directory| directory.join(&node.name)),
        };
        Fleet {
            members: map.nodes.iter().map(member).collect(),
            map: Some(map),
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
