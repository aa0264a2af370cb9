//! What SORT does to the model: by bytes, or as elements are, and always stored.

use std::sync::Arc;

use crate::torture::model::{Call, Expect};
use crate::torture::values::Data;

/// `key ALPHA [DESC] STORE key`, or `list BY nosort LIMIT 0 5 STORE key`.
pub(super) fn sort(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let mut elements: Vec<Vec<u8>> = match call.get(&args[0]).map(|entry| &entry.data) {
        None => Vec::new(),
        Some(Data::List(elements)) => elements.iter().cloned().collect(),
        Some(Data::Set(members)) => members.iter().cloned().collect(),
        Some(Data::SortedSet(scores)) => scores.keys().cloned().collect(),
        Some(_) => return Expect::Error("WRONGTYPE"),
    };
    match &args[1][..] {
        b"BY" => elements.truncate(5),
        _ => elements.sort(),
    }
    if args[2] == b"DESC" {
        elements.reverse();
    }
    let (to, len) = (&args[args.len() - 1], elements.len());
    call.remove(to);
    if len > 0 {
        let list = Data::List(Arc::new(elements.into()));
        call.put(call.key(to), list, None);
    }
    Expect::int(len as u64)
}
