//! Iterating a database with SCAN, or a hash with HSCAN: the pages are each server's own affair, their union
//! is not.

use std::collections::BTreeSet;

use super::report::printed;
use super::request::{Request, shown};
use super::run::{Diverged, Run};
use super::support::Value;

/// Pages after which an iteration is taken to have no end.
const PAGES_MAX: usize = 100_000;

impl Run<'_> {
    /// Iterates with SCAN, or HSCAN of a key, over both and compares what was seen.
    pub(super) fn walk(
        &mut self,
        connection: usize,
        head: &Request,
        options: &[Vec<u8>],
    ) -> Result<(), Diverged> {
        // The first page by itself: where the options are illegal, both must refuse it alike.
        let first = scan(head, b"0", options);
        let replies = self.exchange(connection, vec![first.clone()])?;
        if matches!(replies[0], Value::Error(_)) {
            return Ok(());
        }
        let reference = self.iterate(connection, 0, head, options);
        let reference = reference.unwrap_or_else(|complaint| panic!("redis-server: {complaint}"));
        let complaint = match self.iterate(connection, 1, head, options) {
            Ok(subject) if subject == reference => return Ok(()),
            Ok(subject) => {
                let list = |keys: BTreeSet<_>| {
                    keys.into_iter()
                        .map(|key: &Vec<u8>| shown(key))
                        .collect::<Vec<_>>()
                };
                let missing = list(reference.difference(&subject).collect());
                let surplus = list(subject.difference(&reference).collect());
                format!("iteration without {missing:?} and with {surplus:?} beyond")
            }
            Err(complaint) => complaint,
        };
        self.mismatch(&first, &Value::Int(reference.len() as i64), &complaint)
    }

    /// All that an iteration returns on one side; its pages may repeat it.
    fn iterate(
        &mut self,
        connection: usize,
        side: usize,
        head: &Request,
        options: &[Vec<u8>],
    ) -> Result<BTreeSet<Vec<u8>>, String> {
        let (mut seen, mut cursor) = (BTreeSet::new(), b"0".to_vec());
        for _ in 0..PAGES_MAX {
            let reply = self.pairs[connection]
                .ask_side(side, &scan(head, &cursor, options).words)
                .map_err(|link| link.to_string())?;
            let Some((next, keys)) = page_of(&reply) else {
                return Err(format!(
                    "cursor {} gave {}",
                    shown(&cursor),
                    printed(&reply)
                ));
            };
            seen.extend(keys);
            cursor = next;
            if cursor == b"0" {
                return Ok(seen);
            }
        }
        Err(format!("no end after {PAGES_MAX} pages"))
    }
}

fn scan(head: &Request, cursor: &[u8], options: &[Vec<u8>]) -> Request {
    let head = head.clone();
    head.word(cursor).words(options.iter().cloned())
}

/// The cursor of a page, and what is on it.
fn page_of(reply: &Value) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let Value::Array(parts) = reply else {
        return None;
    };
    match &parts[..] {
        [Value::Bulk(cursor), Value::Array(keys)] => {
            let keys = keys.iter().filter_map(Value::bytes).map(<[u8]>::to_vec);
            Some((cursor.clone(), keys.collect()))
        }
        _ => None,
    }
}
