//! Commands that read new entries of several streams: XREAD, and XREADGROUP for a consumer of a group.
//!
//! All shards are locked before the first stream is looked at. A stream that has something is answered with;
//! the others are left out. Where none has, the command waits, if it says so ([`super::waiting`]).

use keyspace::collection::Base;
use keyspace::collection::stream::{
    Consumer, EntryFields, Group, Id, ItemBuffer, Pending, StreamItems,
};
use keyspace::{Key, StreamRef};
use resp::reply::Writer;

use super::super::park::{self, Unit};
use super::super::prepare::leaves::AskedLeaves;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::deliver::{
    From, Reader, before_last, begin_stream, begin_streams, deliver, has_behind, leaves_of,
    write_behind,
};
use super::group::{find_or_make, no_key_or_group};
use super::id::{self, IdText};
use super::leaves::lacks;
use super::read::write_fields;
use super::{room, waiting};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::server::Server;
use crate::store::{Shards, Stream};

const GROUP_OF_XREAD: Failure =
    Failure::of("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.");
const NO_ACK_OF_XREAD: Failure =
    Failure::of("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.");
const UNBALANCED: Failure = Failure::of(
    "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
);
const NO_GROUP: Failure = Failure::of("ERR Missing GROUP option for XREADGROUP");
const DOLLAR: Failure = Failure::of(
    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this \
     consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just \
     return an empty result set.",
);
const PLUS: Failure = Failure::of(
    "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this \
     consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just \
     return an empty result set.",
);
const GREATER: Failure = Failure::of(
    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
);

/// A request of XREAD or XREADGROUP.
struct Request<'a> {
    reader: Option<Reader<'a>>,
    /// So many entries of each stream at most.
    most: u64,
    /// The argument with a timeout, if the command may wait.
    timeout: Option<usize>,
    /// The first key, and how many there are. As many IDs follow.
    first: usize,
    streams: usize,
}

impl<'a> Request<'a> {
    fn parse(args: &Args<'a>, of_group: bool, now: i64) -> Result<Request<'a>, Failure> {
        let (mut most, mut timeout, mut no_ack) = (u64::MAX, None, false);
        let (mut names, mut first) = (None, None);
        let mut at = 1;
        while at < args.len() && first.is_none() {
            let left = args.len() - at - 1;
            if left > 0 && args.is(at, "BLOCK") {
                at += 1;
                park::deadline(now, args, at, Unit::Milliseconds)?;
                timeout = Some(at);
            } else if left > 0 && args.is(at, "COUNT") {
                at += 1;
                most = match args.integer(at)? {
                    count @ 1.. => count as u64,
                    _ => u64::MAX,
                };
            } else if left > 0 && args.is(at, "STREAMS") {
                first = Some(at + 1);
            } else if left > 1 && args.is(at, "GROUP") {
                if !of_group {
                    return Err(GROUP_OF_XREAD);
                }
                names = Some((args.get(at + 1), args.get(at + 2)));
                at += 2;
            } else if args.is(at, "NOACK") {
                if !of_group {
                    return Err(NO_ACK_OF_XREAD);
                }
                no_ack = true;
            } else {
                return Err(failure::SYNTAX);
            }
            at += 1;
        }
        let first = first.ok_or(failure::SYNTAX)?;
        let streams = args.len() - first;
        if !streams.is_multiple_of(2) {
            return Err(UNBALANCED);
        }
        if of_group && names.is_none() {
            return Err(NO_GROUP);
        }
        Ok(Request {
            reader: names.map(|(group, consumer)| Reader {
                group,
                consumer,
                no_ack,
                now: now.max(0) as u64,
            }),
            most,
            timeout,
            first,
            streams: streams / 2,
        })
    }

    /// The argument with the ID of the stream that is the argument at an index.
    fn id_of(&self, at: usize) -> usize {
        at + self.streams
    }

    fn keys<'k>(&self, args: &Args<'k>) -> impl Iterator<Item = Key<'k>> + Clone + use<'k> {
        let args = *args;
        (self.first..self.first + self.streams).map(move |at| args.key(at))
    }
}

/// The wish for the stream that is the argument at an index.
fn from(
    request: &Request<'_>,
    args: &Args<'_>,
    at: usize,
    stream: Option<StreamRef<'_>>,
) -> Result<From, Failure> {
    if let Some(reader) = request.reader {
        let group =
            stream.and_then(|stream| stream.group(reader.group, &mut ItemBuffer::default()));
        if group.is_none() {
            let behind = " in XREADGROUP with GROUP option";
            return Err(no_key_or_group(args.get(at), reader.group, behind));
        }
    }
    match (args.get(request.id_of(at)), request.reader) {
        (b"$", Some(_)) => Err(DOLLAR),
        (b"$", None) => {
            let head = stream.and_then(StreamRef::head);
            Ok(From::After(head.map_or(Id::MIN, |head| head.last)))
        }
        (b"+", Some(_)) => Err(PLUS),
        (b"+", None) => Ok(From::After(stream.map_or(Id::MIN, before_last))),
        (b">", None) => Err(GREATER),
        (b">", Some(_)) => Ok(From::New),
        // As in Redis the last ID of all stands for all new entries.
        (text, Some(_)) => Ok(match id::exact(text, 0)? {
            Id::MAX => From::New,
            id => From::History(id),
        }),
        (text, None) => Ok(From::After(id::exact(text, 0)?)),
    }
}

/// The leaves that XREAD needs.
pub(super) fn leaves_of_xread(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    leaves_of_request(stream, asked, false)
}

/// The same of XREADGROUP.
pub(super) fn leaves_of_xreadgroup(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    leaves_of_request(stream, asked, true)
}

fn leaves_of_request(stream: StreamRef<'_>, asked: &AskedLeaves<'_>, of_group: bool) -> Vec<Base> {
    let Ok(request) = Request::parse(asked.args, of_group, 0) else {
        return Vec::new();
    };
    let keys = request.first..request.first + request.streams;
    let its = keys.filter(|&at| asked.args.get(at) == asked.key);
    let records = its.filter_map(|at| {
        let from = from(&request, asked.args, at, Some(stream)).ok()?;
        Some(leaves_of(
            stream,
            from,
            request.most,
            request.reader.as_ref(),
        ))
    });
    records.flatten().collect()
}

/// Answers with pending entries of a consumer after an ID, which count as delivered once more.
///
/// # Errors
/// The stream can have no further consumer.
fn repeat(
    found: Stream<'_, '_>,
    reader: &Reader<'_>,
    group: Group,
    after: Id,
    most: u64,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let (stream, mut buffer) = (found.stream(), ItemBuffer::default());
    let number = stream.consumer_number(group.number, reader.consumer, &mut buffer);
    let mut shown: Vec<(Pending, bool)> = Vec::new();
    if let (Some(number), Some(from)) = (number, after.next()) {
        let left = stream
            .consumer(group.number, number, &mut buffer)
            .map_or(0, |consumer| consumer.pending);
        let own = stream
            .pending_from(group.number, from)
            .filter(|pending| pending.consumer == number);
        let own = own.take(most.min(left) as usize);
        shown.extend(own.map(|pending| (pending, false)));
    }
    let shapes = stream.shapes();
    writer.array(shown.len());
    for (pending, is_there) in &mut shown {
        writer.array(2);
        writer.bulk(IdText::of(pending.id).bytes());
        match stream.entry(pending.id) {
            Some(entry) => {
                *is_there = true;
                write_fields(writer, EntryFields::of(entry.content, &shapes));
            }
            None => writer.null_array(),
        }
    }
    found.edit(Event::NONE, Packed::NONE, |edit| {
        edit.is_of_groups(false);
        let now = reader.now;
        let (number, is_new) = find_or_make(edit, group.number, reader.consumer, now)?;
        if is_new {
            edit.tell_also(Event::XGROUP_CREATECONSUMER);
        }
        for (pending, _) in shown.iter().filter(|(_, is_there)| *is_there) {
            let again = Pending {
                delivered: now,
                deliveries: pending.deliveries.wrapping_add(1),
                ..*pending
            };
            edit.put_pending(group.number, &again, &mut buffer);
        }
        edit.change_consumer(group.number, number, |consumer| Consumer {
            seen: now,
            ..consumer
        });
        edit.only_change();
        Ok(())
    })
}

/// Answers with the entries of a stream that are wanted, if there are any; whether there are.
fn serve(
    server: &'static Server,
    db: usize,
    shards: &mut Shards<'_>,
    key: Key<'_>,
    from: From,
    request: &Request<'_>,
    writer: &mut Writer<'_>,
) -> Result<bool, Failure> {
    let (most, reader) = (request.most, request.reader.as_ref());
    let mut shard = shards.of(key);
    // A key that is missing is missed twice, as in redis-server.
    let Some(found) = shard.read_items::<StreamItems>(key)? else {
        return Ok(false);
    };
    let (stream, mut buffer) = (found.stream(), ItemBuffer::default());
    let group = reader.and_then(|reader| stream.group(reader.group, &mut buffer));
    match (from, reader, group) {
        (From::After(id), ..) if has_behind(stream, id) => {
            begin_stream(writer, key.bytes);
            write_behind(stream, id, most, writer);
        }
        (From::New, Some(reader), Some(group)) if has_behind(stream, group.last) => {
            // Those that waited for it come first.
            if waiting::has_line(server, db, key, reader.group) {
                return Ok(false);
            }
            begin_stream(writer, key.bytes);
            deliver(found, reader, group, most, writer)?;
        }
        (From::History(id), Some(reader), Some(group)) => {
            begin_stream(writer, key.bytes);
            repeat(found, reader, group, id, most, writer)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn read(context: &mut Context<'_>, args: &Args<'_>, of_group: bool) -> Handled {
    let now = context.store.now;
    let request = Request::parse(args, of_group, now)?;
    if request.timeout.is_some() && context.extras.in_script {
        let name = String::from_utf8_lossy(args.get(0));
        return Err(Failure::new(format!(
            "ERR {name} command is not allowed with BLOCK option from scripts"
        )));
    }
    if let Some(reader) = &request.reader {
        let keys = request.first..request.first + request.streams;
        let next = room::foresee(context, args, keys, request.most, |at, stream| {
            let from = from(&request, args, at, Some(stream));
            from.map_or(0, |from| room::count_for(stream, reader, from))
        })?;
        if let Some(next) = next {
            return Ok(next);
        }
    }
    loop {
        let mut shards = context.store.lock_keys(request.keys(args));
        let (mut asked, mut is_cold) = (Vec::with_capacity(request.streams), false);
        for at in request.first..request.first + request.streams {
            let key = args.key(at);
            let mut shard = shards.of(key);
            let found = shard.read_items::<StreamItems>(key)?;
            let stream = found.as_ref().map(|found| found.stream());
            let from = from(&request, args, at, stream)?;
            is_cold |= stream.is_some_and(|stream| {
                lacks(stream, |stream| {
                    leaves_of(stream, from, request.most, request.reader.as_ref())
                })
            });
            asked.push((key, from));
        }
        if is_cold {
            return Ok(Next::Retry);
        }
        let reply = &mut context.reply;
        let (start, mut served) = (reply.position(), 0);
        for &(key, from) in &asked {
            let (server, db) = (context.server, context.store.db);
            let is_served = serve(server, db, &mut shards, key, from, &request, reply)?;
            served += usize::from(is_served);
        }
        if served > 0 {
            reply.put_before(start, |writer| begin_streams(writer, served));
            return Ok(Next::Done);
        }
        drop(shards);
        let Some(timeout) = request.timeout.filter(|_| context.may_wait()) else {
            context.reply.null_array();
            return Ok(Next::Done);
        };
        let until_ms = park::deadline(now, args, timeout, Unit::Milliseconds)?;
        let asks = waiting::asks(&asked, request.most, request.reader.as_ref());
        if let Some(next) = waiting::wait(context, request.keys(args), until_ms, asks)? {
            return Ok(next);
        }
    }
}

/// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]`
pub(super) fn xread(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    read(context, args, false)
}

/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK]
/// STREAMS key [key ...] id [id ...]`
pub(super) fn xreadgroup(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    read(context, args, true)
}
