//! CLUSTER, READONLY, READWRITE and ASKING. Their rows are in [`crate::command::server`].

use keyspace::{Database, EntryRef, Position, SLOTS, slot};
use resp::number;

use crate::cluster::{Cluster, Refused, View, replies};
use crate::command::deferred::{self, Around, Progress, Slice, Work};
use crate::command::{Context, Handled, Next, help};
use crate::limits::SLICE_KEYS;
use crate::request::{Args, Failure, Pieces, failure};
use crate::server::Server;
use map::Node;

const DISABLED: Failure = Failure::of("ERR This instance has cluster support disabled");
const INVALID_SLOT: Failure = Failure::of("ERR Invalid slot");

/// The cluster that this server is a node of.
fn cluster_of(context: &Context<'_>) -> Result<&'static Cluster, Failure> {
    context.server.cluster.as_ref().ok_or(DISABLED)
}

/// READONLY, READWRITE and ASKING: there are no replicas and no slots that move, so there is nothing to
/// change.
pub(crate) fn accept(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    cluster_of(context)?;
    context.reply.ok();
    Ok(Next::Done)
}

/// Commands that change a cluster whose nodes talk to each other.
pub(crate) fn refuse(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    cluster_of(context)?;
    let name = context.command.spec.name.to_uppercase();
    Err(Failure::new(format!(
        "ERR CLUSTER {name} is not how this cluster changes: write what you want into the map (cluster-map) with a \
         higher epoch, give the file to all nodes, and send each of them CLUSTER RELOAD"
    )))
}

pub(crate) fn slots(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let view = cluster_of(context)?.view();
    replies::slots(&mut context.reply, &view, &context.server.settings);
    Ok(Next::Done)
}

pub(crate) fn shards(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let view = cluster_of(context)?.view();
    replies::shards(&mut context.reply, &view, &context.server.settings);
    Ok(Next::Done)
}

pub(crate) fn nodes(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let view = cluster_of(context)?.view();
    let text = replies::nodes(&view, &context.server.settings);
    context.reply.verbatim("txt", text.as_bytes());
    Ok(Next::Done)
}

pub(crate) fn info(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let view = cluster_of(context)?.view();
    let text = replies::info(&view, &context.server.settings);
    context.reply.verbatim("txt", text.as_bytes());
    Ok(Next::Done)
}

pub(crate) fn my_id(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let view = cluster_of(context)?.view();
    context.reply.bulk(view.map.nodes[view.me].id.as_bytes());
    Ok(Next::Done)
}

pub(crate) fn my_shard_id(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let view = cluster_of(context)?.view();
    let id = replies::shard_id(&view.map.nodes[view.me]);
    context.reply.bulk(id.as_bytes());
    Ok(Next::Done)
}

/// There are no connections between nodes.
pub(crate) fn links(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    cluster_of(context)?;
    context.reply.empty_array();
    Ok(Next::Done)
}

/// The node whose id is the third argument: all forty digits of it.
fn node<'v>(view: &'v View, args: &Args<'_>) -> Result<&'v Node, Failure> {
    let id = args.get(2);
    let mut nodes = view.map.nodes.iter();
    nodes
        .find(|node| node.id.as_bytes() == id)
        .ok_or_else(|| Failure::about("ERR Unknown node ", id, ""))
}

/// No node has replicas.
pub(crate) fn replicas(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    node(&cluster_of(context)?.view(), args)?;
    context.reply.empty_array();
    Ok(Next::Done)
}

/// Nodes do not report failures.
pub(crate) fn failure_reports(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    node(&cluster_of(context)?.view(), args)?;
    context.reply.integer(0);
    Ok(Next::Done)
}

pub(crate) fn key_slot(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    cluster_of(context)?;
    context.reply.integer(i64::from(slot(args.get(2))));
    Ok(Next::Done)
}

/// `CLUSTER RELOAD`. The connection waits for the disk: the reply says that the map is in force, or why it is
/// not.
pub(crate) fn reload(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (cluster, server) = (cluster_of(context)?, context.server);
    deferred::do_apart(context, args, move || {
        match reload_and_tell(server, cluster) {
            Ok(_) => Ok(Pieces::beginning(b"+OK\r\n".into())),
            Err(refused) => Err(Failure::new(format!(
                "ERR The old map stays: {}",
                refused.line()
            ))),
        }
    })
}

/// Reads the map again, and says in the log what came of it.
///
/// # Errors
/// The map is refused; the old one stays.
pub(crate) fn reload_and_tell(server: &Server, cluster: &Cluster) -> Result<bool, Refused> {
    let done = cluster.reload(&server.settings);
    match &done {
        Ok(true) => forget_copies(server),
        Ok(false) => log::info!("The map of the cluster has not changed"),
        Err(refused) => {
            log::warn!("The old map of the cluster stays: {}", refused.text());
        }
    }
    done
}

/// Invalidates all copies of clients with tracking: this node does not know of changes to a key in another
/// node. Later reads run after the change of the map.
fn forget_copies(server: &Server) {
    let alone = server.keyspace.turns().exclusive();
    server.observers.tracking.flushed(server);
    drop(alone);
    server.wake_workers();
}

pub(crate) fn show_help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    cluster_of(context)?;
    let lines = [
        "COUNTKEYSINSLOT <slot>",
        "    Return the number of keys in <slot>.",
        "GETKEYSINSLOT <slot> <count>",
        "    Return keys of <slot>, <count> at most.",
        "INFO",
        "    Return information about the cluster.",
        "KEYSLOT <key>",
        "    Return the hash slot for <key>.",
        "LINKS",
        "    Return the connections between nodes; there are none.",
        "MYID",
        "    Return the id of this node.",
        "MYSHARDID",
        "    Return the id of the shard that this node is.",
        "NODES",
        "    Return the map, a line for each node.",
        "RELOAD",
        "    Read the map again. One with a higher epoch takes the place of the old one.",
        "REPLICAS <node-id>",
        "    Return the replicas of a node; there are none.",
        "SHARDS",
        "    Return the map by nodes.",
        "SLOTS",
        "    Return the map by slots.",
    ];
    help(context, "CLUSTER", &lines);
    Ok(Next::Done)
}

pub(crate) fn count_keys(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    cluster_of(context)?;
    let slot = u16::try_from(args.integer(2)?).map_err(|_| INVALID_SLOT)?;
    if slot >= SLOTS {
        return Err(INVALID_SLOT);
    }
    Ok(look(context, args, Wanted { slot, most: None }))
}

pub(crate) fn get_keys(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    cluster_of(context)?;
    let number = |at| number::parse_i64(args.get(at)).ok_or(failure::NOT_AN_INTEGER);
    let (slot, most) = (number(2)?, number(3)?);
    let invalid = Failure::of("ERR Invalid slot or number of keys");
    match (u16::try_from(slot), usize::try_from(most)) {
        (Ok(slot), Ok(most)) if slot < SLOTS => {
            let most = Some(most);
            Ok(look(context, args, Wanted { slot, most }))
        }
        _ => Err(invalid),
    }
}

/// Request about a slot: the number of its keys, or some of them.
#[derive(Clone, Copy)]
struct Wanted {
    slot: u16,
    most: Option<usize>,
}

/// A walk through all keys that looks for those of a slot.
struct Look {
    wanted: Wanted,
    at: Option<Position>,
    found: usize,
    keys: Pieces,
}

impl Look {
    /// Looks at some keys, under one lock at a time.
    fn step(&mut self, database: &Database, now: i64, protocol: resp::reply::Protocol) {
        let Look {
            wanted,
            at,
            found,
            keys,
        } = self;
        let Some(from) = *at else { return };
        let visit = |entry: EntryRef<'_>| {
            let key = entry.key();
            if slot(key) != wanted.slot || wanted.most.is_some_and(|most| *found >= most) {
                return;
            }
            *found += 1;
            if wanted.most.is_some() {
                keys.write(protocol, |reply| reply.bulk(key));
            }
        };
        *at = database.walk(from, SLICE_KEYS, now, visit);
        if wanted.most.is_some_and(|most| self.found >= most) {
            self.at = None;
        }
    }

    /// The reply, when all was looked at.
    fn answer(&mut self) -> Pieces {
        let head = match self.wanted.most {
            None => format!(":{}\r\n", self.found),
            Some(_) => format!("*{}\r\n", self.found),
        };
        self.keys.put_before(head.into_bytes());
        std::mem::take(&mut self.keys)
    }
}

impl Work for Look {
    fn go_on(&mut self, around: &mut Around<'_>, slice: &Slice) -> Progress {
        let database = around.store.keyspace.database(around.store.turn, 0);
        while self.at.is_some() {
            if !slice.goes_on() {
                return Progress::More;
            }
            self.step(database, around.store.now, around.protocol);
        }
        Progress::Done(Ok(self.answer()))
    }

    fn memory(&self) -> usize {
        self.keys.len()
    }
}

/// Answers what a slot has: at once if that takes no longer than a slice.
fn look(context: &mut Context<'_>, args: &Args<'_>, wanted: Wanted) -> Next {
    let slice = context.slice();
    let protocol = context.reply.protocol();
    let mut look = Look {
        wanted,
        at: Some(Position::default()),
        found: 0,
        keys: Pieces::default(),
    };
    while look.at.is_some() {
        look.step(context.store.database(), context.store.now, protocol);
        if look.at.is_some() && !slice.goes_on() {
            return context.defer(args, look);
        }
    }
    for piece in look.answer().into_iter() {
        context.reply.encoded(piece.as_slice());
    }
    Next::Done
}
