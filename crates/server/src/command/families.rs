//! The families of commands: the only list of their tables.

use super::table::Table;
use super::{
    bitmap, config, connection, geo, hash, hyperloglog, key, list, pubsub, replication, script,
    server, set, sort, sorted_set, stream, string, transaction,
};

/// Gives the table of commands its rows; a second call changes nothing. The start calls it before anything
/// asks for a command.
pub(crate) fn install() {
    let families = [
        string::COMMANDS,
        bitmap::COMMANDS,
        hyperloglog::COMMANDS,
        hash::COMMANDS,
        set::COMMANDS,
        sorted_set::COMMANDS,
        sorted_set::RANGES,
        sorted_set::COMBINES,
        sorted_set::WAITS,
        geo::COMMANDS,
        list::COMMANDS,
        stream::COMMANDS,
        stream::GROUPS,
        key::COMMANDS,
        sort::COMMANDS,
        connection::COMMANDS,
        pubsub::COMMANDS,
        script::COMMANDS,
        replication::COMMANDS,
        server::COMMANDS,
        config::COMMANDS,
        transaction::COMMANDS,
    ];
    Table::install(families.into_iter().flatten());
}
