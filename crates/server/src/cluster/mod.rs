//! A node of a cluster: its hash slots, and the nodes of all other slots.
//!
//! ```text
//! file --read--> Map --this node--> View --+--> slots that are served here (one bit each, for every request)
//!                                          +--> answers: MOVED, CLUSTER SLOTS, ...
//! ```
//!
//! The rest of the server asks one question: `Cluster::refusal`, whether a request may run here, and if not,
//! what to tell its client ([`crate::command::cluster`]). Most requests have one key and find the answer in
//! one bit ([`Cluster::serves`]).
//!
//! The map is static: it is a file that all nodes share, read at the start and by [`Cluster::reload`]. Nodes
//! do not talk to each other. Another source of the map replaces only `read_map` and the callers of `reload`.
//!
//! Invariant: a bit of `served` is set only if the view gives that slot to this node. While a view is
//! exchanged each slot changes at one moment; a request has keys of one slot, so it sees the old map or the
//! new one.

mod identity;
pub(crate) mod replies;
mod strays;
mod this_node;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use keyspace::SLOTS;
use parking_lot::{Mutex, RwLock};

use crate::config::{Setting, Settings};
use map::{Map, ranges_text};
use strays::Strays;

/// Words of the bits of all slots.
pub(crate) const WORDS: usize = SLOTS as usize / 64;

const NO_MAP: &str =
    "cluster-enabled needs cluster-map, the file that says which node has which slots";

/// See the module.
pub(crate) struct Cluster {
    file: PathBuf,
    view: RwLock<Arc<View>>,
    pub(crate) served: Box<[AtomicU64; WORDS]>,
    /// Held while the view is exchanged.
    changing: Mutex<()>,
    strays: Strays,
}

/// The map as one node sees it.
pub(crate) struct View {
    pub(crate) map: Map,
    /// The index of this node.
    pub(crate) me: usize,
}

/// Why a map is not taken: a line for each reason.
#[derive(Debug)]
pub(crate) struct Refused(Vec<String>);

impl Refused {
    fn because(reason: impl Into<String>) -> Refused {
        Refused(vec![reason.into()])
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        self.0.join("\n")
    }

    /// The first reason, and how many more there are.
    pub(crate) fn line(&self) -> String {
        match &self.0[..] {
            [first, _, ..] => format!("{first} (and {} more)", self.0.len() - 1),
            _ => self.text(),
        }
    }
}

impl View {
    /// A view of the map in a file.
    fn read(file: &Path, settings: &Settings) -> Result<View, Refused> {
        let map = read_map(file)?;
        let me = this_node::find(&map, settings)
            .map_err(|reason| Refused::because(format!("{}: {reason}", file.display())))?;
        Ok(View { map, me })
    }

    /// Whether no key may be written: a slot has no node, and all are required.
    pub(crate) fn is_down(&self, settings: &Settings) -> bool {
        settings.flag(Setting::ClusterRequireFullCoverage)
            && self.map.assigned() < usize::from(SLOTS)
    }

    /// Writes the identity of this node to the server's log.
    fn tell(&self) {
        let (map, node) = (&self.map, &self.map.nodes[self.me]);
        log::info!(
            "Cluster {}, epoch {}, {} nodes: this is {} ({}), slots {}",
            map.name,
            map.epoch,
            map.nodes.len(),
            node.name,
            node.id,
            if node.slots.is_empty() {
                "none".to_owned()
            } else {
                ranges_text(&node.slots)
            }
        );
        let gaps = map.gaps();
        if !gaps.is_empty() {
            log::warn!("{}", gaps_text(&gaps));
        }
    }
}

/// Reads the map in a file. Relative to `dir`.
fn read_map(file: &Path) -> Result<Map, Refused> {
    Map::read_file(file).map_err(Refused)
}

/// Mistakes in the cluster settings and the map, one line each, then the hints. Changes nothing. If the
/// settings have other mistakes, this node is not looked up in the map.
pub(crate) fn check(settings: &Settings, are_right: bool) -> (Vec<String>, Vec<String>) {
    if !settings.flag(Setting::ClusterEnabled) {
        return (Vec::new(), Vec::new());
    }
    let file = settings.text(Setting::ClusterMap);
    if file.is_empty() {
        return (vec![NO_MAP.to_owned()], Vec::new());
    }
    let dir = settings.text(Setting::Dir);
    let file = Path::new(&*dir).join(&*file);
    let map = match read_map(&file) {
        Ok(map) => map,
        Err(Refused(lines)) => return (lines, Vec::new()),
    };
    let gaps = match map.gaps() {
        gaps if gaps.is_empty() => Vec::new(),
        gaps => vec![format!("{}: {}", file.display(), gaps_text(&gaps))],
    };
    let node = this_node::find(&map, settings)
        .map_err(|reason| format!("{}: {reason}", file.display()))
        .and_then(|me| identity::is_known(Path::new(&*dir), settings, &View { map, me }));
    match node {
        Err(reason) if are_right => (vec![reason], gaps),
        _ => (Vec::new(), gaps),
    }
}

fn gaps_text(gaps: &[RangeInclusive<u16>]) -> String {
    format!("No node of the cluster has the slots {}", ranges_text(gaps))
}

impl Cluster {
    /// The cluster that the settings ask for, if they do.
    ///
    /// # Errors
    /// What is wrong with the settings or the map.
    pub(crate) fn open(settings: &Settings) -> Result<Option<Cluster>, String> {
        if !settings.flag(Setting::ClusterEnabled) {
            return Ok(None);
        }
        let file = settings.text(Setting::ClusterMap);
        if file.is_empty() {
            return Err(NO_MAP.into());
        }
        let file = PathBuf::from(&*file);
        let view = View::read(&file, settings).map_err(|refused| refused.text())?;
        identity::check(settings, &view)?;
        view.tell();
        let cluster = Cluster {
            file,
            view: RwLock::new(Arc::new(view)),
            served: Box::new([const { AtomicU64::new(0) }; WORDS]),
            changing: Mutex::new(()),
            strays: Strays::default(),
        };
        cluster.refresh(settings);
        cluster.strays.begin();
        Ok(Some(cluster))
    }

    /// The map of now.
    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read())
    }

    /// Brings up to date what follows from settings.
    pub(crate) fn refresh(&self, settings: &Settings) {
        let _changing = self.changing.lock();
        self.note_served(&self.view(), settings);
    }

    fn note_served(&self, view: &View, settings: &Settings) {
        let is_down = view.is_down(settings);
        for (at, word) in self.served.iter().enumerate() {
            let slots = (at * 64..).take(64).enumerate();
            let mine =
                slots.filter(|&(_, slot)| !is_down && view.map.owner(slot as u16) == Some(view.me));
            word.store(mine.fold(0, |word, (bit, _)| word | 1 << bit), Relaxed);
        }
    }

    /// Reads the map again. Returns whether it has changed.
    ///
    /// # Errors
    /// Why the old map stays.
    pub(crate) fn reload(&self, settings: &Settings) -> Result<bool, Refused> {
        let _changing = self.changing.lock();
        let old = self.view();
        let (old_map, me) = (&old.map, &old.map.nodes[old.me]);
        let refuse = |reason| {
            Err(Refused::because(format!(
                "{}: {reason}",
                self.file.display()
            )))
        };
        let map = read_map(&self.file)?;
        if map.name != old_map.name {
            return refuse(format!(
                "it is of the cluster {}, this node is of {}",
                map.name, old_map.name
            ));
        }
        if map == *old_map {
            return Ok(false);
        }
        if map.epoch <= old_map.epoch {
            return refuse(format!(
                "its epoch is {}, and a change of the map needs a higher one than {}",
                map.epoch, old_map.epoch
            ));
        }
        let Some(at) = map.find(&me.id) else {
            return refuse(format!("this node, {} ({}), is missing", me.name, me.id));
        };
        if let Err(reason) = this_node::check_port(&map.nodes[at], settings) {
            return refuse(reason);
        }
        let view = Arc::new(View { map, me: at });
        *self.view.write() = Arc::clone(&view);
        self.note_served(&view, settings);
        self.strays.begin();
        view.tell();
        Ok(true)
    }
}
