//! Keys that were written while somebody waited for them, as far as this thread has written them and looked at nobody in their lines yet.
//!
//! A command may write a key several times, and a transaction may write it and remove it again: who waits is looked at behind
//! the command, or behind the whole transaction.

use std::cell::{Cell, RefCell};

use super::Key;

thread_local! {
    static ANY: Cell<bool> = const { Cell::new(false) };
    static KEYS: RefCell<Vec<(usize, Key)>> = const { RefCell::new(Vec::new()) };
}

/// Notes a key of a database.
pub(crate) fn note(db: usize, key: &[u8]) {
    KEYS.with_borrow_mut(|keys| {
        if !keys
            .iter()
            .any(|(other, known)| *other == db && **known == *key)
        {
            keys.push((db, key.into()));
        }
    });
    ANY.set(true);
}

/// Whether there are any: the only cost for a command that writes nothing that anybody waits for.
#[inline]
pub(crate) fn any() -> bool {
    ANY.get()
}

/// Takes them, in the order in which they were written.
pub(super) fn take() -> Vec<(usize, Key)> {
    ANY.set(false);
    KEYS.take()
}
