//! Room for the entries of streams that a request takes, and for their pending entries.

use std::ops::Range;

use keyspace::StreamRef;
use keyspace::collection::stream::{ItemBuffer, Section};

use super::super::{Args, Context, Failure, Next};
use super::deliver::{From, Reader, count_behind};
use crate::store::Taking;

/// Makes room for entries of the streams of these arguments. `count` says how many of a stream are taken at
/// most. Outside of a transaction nothing is locked. Returns the next step, if the command is not to run now.
///
/// # Errors
/// There is no room.
pub(super) fn foresee(
    context: &mut Context<'_>,
    args: &Args<'_>,
    keys: Range<usize>,
    count: impl Fn(usize, StreamRef<'_>) -> u64,
) -> Result<Option<Next>, Failure> {
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
            let count = count(at, stream);
            bytes += Taking::Entries(count).reply_bytes(tree);
        }
    }
    context.foresee_reply(bytes)
}

/// How many entries of a stream a reader of a group gets at most.
pub(super) fn count_for(stream: StreamRef<'_>, reader: &Reader<'_>, from: From, most: u64) -> u64 {
    let mut buffer = ItemBuffer::default();
    let Some(group) = stream.group(reader.group, &mut buffer) else {
        return 0;
    };
    let number = stream.consumer_number(group.number, reader.consumer, &mut buffer);
    let consumer = number.and_then(|number| stream.consumer(group.number, number, &mut buffer));
    let count = match from {
        // A leaf that is missing is fetched before anything is taken.
        From::New if stream.cold_at(Section::ENTRIES, group.last).is_some() => 0,
        From::New => count_behind(stream, group.last),
        From::History(_) => consumer.map_or(0, |consumer| consumer.pending),
        From::After(_) => 0,
    };
    count.min(most)
}

/// How many pending entries a group has.
pub(super) fn count_pending(stream: StreamRef<'_>, group: &[u8]) -> u64 {
    let group = stream.group(group, &mut ItemBuffer::default());
    group.map_or(0, |group| group.pending)
}
