//! Whose data is in a directory. A node leaves its id beside its data; another node of a cluster that is
//! started there would serve keys that are not its own, and is refused.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::View;
use crate::config::{Setting, Settings};

/// The file, in `dir`.
const FILE: &str = "cluster-node";

/// Refuses the directory of the process if it has the data of another node. Leaves the id of this one if
/// there is none. A server that keeps no data there leaves nothing.
pub(super) fn check(settings: &Settings, view: &View) -> Result<(), String> {
    let directory = Path::new(".");
    let keeps = settings.flag(Setting::AppendOnly) || !settings.text(Setting::Save).is_empty();
    if is_known(directory, settings, view)? || !keeps {
        return Ok(());
    }
    // Named as a whole: half of an id would be another node's.
    let draft = directory.join(format!("{FILE}.{}.tmp", std::process::id()));
    fs::write(&draft, own_line(view))
        .and_then(|()| fs::rename(&draft, directory.join(FILE)))
        .map_err(|error| {
            let shown = settings.text(Setting::Dir);
            format!("cannot write {FILE} in {shown}: {error}")
        })
}

fn own_line(view: &View) -> String {
    let (map, node) = (&view.map, &view.map.nodes[view.me]);
    format!("{} {} {}\n", node.id, node.name, map.name)
}

/// Whether a directory, that of the settings, says whose data it has.
///
/// # Errors
/// It has that of another node.
pub(super) fn is_known(directory: &Path, settings: &Settings, view: &View) -> Result<bool, String> {
    let own = own_line(view);
    let shown = settings.text(Setting::Dir);
    match fs::read_to_string(directory.join(FILE)) {
        Ok(text) if text.split_whitespace().next() == own.split_whitespace().next() => Ok(true),
        Ok(text) => Err(format!(
            "the data in {shown} belongs to the node {} of a cluster, and this is {} (file {FILE} there)",
            text.trim_end().escape_debug(),
            own.trim_end()
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("cannot read {FILE} in {shown}: {error}")),
    }
}
