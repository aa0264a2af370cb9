//! Whose data is in a directory. A node leaves its id beside its data; another node of a cluster that is started there would
//! serve keys that are not its own, and is refused.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::View;
use crate::config::{Setting, Settings};

/// The file, in `dir`.
const FILE: &str = "cluster-node";

/// Refuses a directory with the data of another node. Leaves the id of this one if there is none. A server that keeps no
/// data there leaves nothing.
pub(super) fn check(settings: &Settings, view: &View) -> Result<(), String> {
    check_in(Path::new("."), settings, view)
}

fn check_in(directory: &Path, settings: &Settings, view: &View) -> Result<(), String> {
    let path = directory.join(FILE);
    let (map, node) = (&view.map, &view.map.nodes[view.me]);
    let own = format!("{} {} {}\n", node.id, node.name, map.name);
    let shown = settings.text(Setting::Dir);
    match fs::read_to_string(&path) {
        Ok(text) if text.split_whitespace().next() == Some(&node.id) => Ok(()),
        Ok(text) => Err(format!(
            "the data in {shown} belongs to the node {} of a cluster, and this is {} (file {FILE} there)",
            text.trim_end().escape_debug(),
            own.trim_end()
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let keeps =
                settings.flag(Setting::AppendOnly) || !settings.text(Setting::Save).is_empty();
            if !keeps {
                return Ok(());
            }
            // Named as a whole: half of an id would be another node's.
            let draft = directory.join(format!("{FILE}.{}.tmp", std::process::id()));
            fs::write(&draft, own)
                .and_then(|()| fs::rename(&draft, &path))
                .map_err(|error| format!("cannot write {FILE} in {shown}: {error}"))
        }
        Err(error) => Err(format!("cannot read {FILE} in {shown}: {error}")),
    }
}
