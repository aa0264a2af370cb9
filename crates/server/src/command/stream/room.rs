//! Room for the entries of streams that a request takes, and for their pending entries.

use std::ops::Range;

use keyspace::StreamRef;
use keyspace::collection::stream::{ItemBuffer, Section};

use super::super::{Args, Context, Failure, Next};
use super::deliver::{From, Reader, count_behind};
use crate::store::Taking;

/// Makes room for entries of the streams of these arguments: `most` of each, and no more than `count` says
/// that there are. A single entry needs no look. Outside of a transaction nothing is locked. Returns the next
/// step, if the command is not to run now.
///
/// # Errors
/// There is no room.
pub(super) fn foresee(
    context: &mut Context<'_>,
    args: &Args<'_>,
    keys: Range<usize>,
    most: u64,
    count: impl Fn(usize, StreamRef<'_>) -> u64,
) -> Result<Option<Next>, Failure> {
    if most < 2 {
        return Ok(None);
    }
    let mut bytes = 0;
    for at in keys {
        let key = args.key(at);
        let mut shard = context.store.lock(key);
        let Some(entry) = shard.find(key) else {
            continue;
        };
        let tree = entry.tree().filter(|tree| context.is_scarce_for(tree));
        if let Some((tree, stream)) = tree.and_then(|tree| Some((tree, StreamRef::in_tree(tree)?)))
        {
            let count = count(at, stream).min(most);
            bytes += Taking::Entries(count).reply_bytes(tree);
        }
    }
    context.foresee_reply(bytes)
}

/// How many entries of a stream there are for a reader of a group.
pub(super) fn count_for(stream: StreamRef<'_>, reader: &Reader<'_>, from: From) -> u64 {
    let mut buffer = ItemBuffer::default();
    let Some(group) = stream.group(reader.group, &mut buffer) else {
        return 0;
    };
    let number = stream.consumer_number(group.number, reader.consumer, &mut buffer);
    let consumer = number.and_then(|number| stream.consumer(group.number, number, &mut buffer));
    match from {
        // If the leaf of the last ID is not in memory, nothing is taken before it is.
        From::New if stream.cold_at(Section::ENTRIES, group.last).is_some() => 0,
        From::New => count_behind(stream, group.last),
        From::History(_) => consumer.map_or(0, |consumer| consumer.pending),
        From::After(_) => 0,
    }
}

/// How many pending entries a group has.
pub(super) fn count_pending(stream: StreamRef<'_>, group: &[u8]) -> u64 {
    let group = stream.group(group, &mut ItemBuffer::default());
    group.map_or(0, |group| group.pending)
}
