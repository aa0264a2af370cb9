//! Ready keys: keys with waiting connections that this thread has written and not served yet.
//!
//! A command may write a key several times, and a transaction may write it and remove it again. So waiting
//! connections are served after the command, or after the whole transaction.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use super::Key;
use crate::names::steps;

/// Keys of databases, in order of writing and as a set.
#[derive(Default)]
struct Written {
    order: Vec<(usize, Key)>,
    known: HashSet<(usize, Key)>,
}

thread_local! {
    static ANY: Cell<bool> = const { Cell::new(false) };
    static KEYS: RefCell<Written> = RefCell::default();
}

/// Adds a key of a database.
pub(crate) fn note(db: usize, key: &[u8]) {
    KEYS.with_borrow_mut(|keys| {
        steps::add(1);
        let key = (db, Key::from(key));
        if keys.known.insert(key.clone()) {
            keys.order.push(key);
        }
    });
    ANY.set(true);
}

/// Whether there are any. This is the only cost for a command that writes no awaited key.
#[inline]
pub(crate) fn any() -> bool {
    ANY.get()
}

/// Takes the keys, in order of writing.
pub(crate) fn take() -> Vec<(usize, Key)> {
    ANY.set(false);
    KEYS.take().order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_once_in_the_order_in_which_they_were_written() {
        for key in ["b", "a", "b", "c", "a"] {
            note(1, key.as_bytes());
        }
        note(0, b"a");
        let keys = take();
        let names: Vec<(usize, &[u8])> = keys.iter().map(|(db, key)| (*db, &**key)).collect();
        assert_eq!(names, [(1, &b"b"[..]), (1, b"a"), (1, b"c"), (0, b"a")]);
        assert!(!any() && take().is_empty());
    }

    #[test]
    fn twice_as_many_keys_take_twice_the_steps() {
        steps::assert_linear(2_000, |n| {
            (0..n).for_each(|at| note(0, at.to_string().as_bytes()));
            assert_eq!(take().len(), n);
        });
    }
}
