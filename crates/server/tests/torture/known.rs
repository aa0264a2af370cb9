//! What the server is known to do wrong, or does not promise yet. Each is a constant that becomes true with the change that mends it; until
//! then the torture keeps clear of it. Their scripts are in `finds/open`, and move to `finds` with the change.

/// A killed process loses nothing that was acknowledged, under every `appendfsync` (issue 16, item 8).
pub(crate) const KILL_LOSES_NOTHING: bool = true;

/// Files of snapshots that were not finished are gone after the next start (issue 16, item 5).
pub(crate) const UNFINISHED_SNAPSHOTS_GO: bool = true;

/// DEBUG RELOAD and DEBUG LOADAOF keep to the limit of memory while they load (`finds/open/reload-memory.txt`).
pub(crate) const RELOAD_KEEPS_TO_THE_LIMIT: bool = false;
