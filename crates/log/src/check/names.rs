//! Names of keys and libraries in messages.

use crate::address::DbId;
use crate::bindings::Bindings;

/// A key or a library, for people.
pub(super) fn name_of(bindings: &Bindings, db: DbId, key: &[u8]) -> String {
    if db == DbId::APART {
        return format!("the library \"{}\"", key.escape_ascii());
    }
    let number = bindings.number_of(db);
    format!("the key \"{}\" in database {number}", key.escape_ascii())
}
