//! Whether a request may run on this node, or a call of a script.
//!
//! The order of the questions is that of redis-server: an unserved slot, keys of several slots, a cluster
//! that is down, a slot that another node has.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use keyspace::{all_slots, slot};
use resp::request::Span;

use crate::cluster::replies::Endpoint;
use crate::cluster::{Cluster, View, WORDS};
use crate::command::key_finder;
use crate::command::run::Request;
use crate::command::{Command, Context, Control, Routing, flag};
use crate::config::{Setting, Settings};
use crate::request::{Args, Failure};
use crate::script::{Script, flags_of};
use crate::server::Server;

/// Where a request belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Here,
    /// To the node of this index.
    Moved(u16, usize),
    CrossSlot,
    /// No node has the slot.
    Unserved,
    /// No key is served: some slot has no node.
    Down,
    /// The same, but keys may be read.
    ReadsAlone,
}

/// Effects of a request that matter in a cluster that is down.
#[derive(Clone, Copy, Default)]
struct Use {
    writes: bool,
    of_channels: bool,
}

/// Whether the bit of a slot is set.
#[inline]
fn is_set(slots: &[AtomicU64; WORDS], slot: u16) -> bool {
    let slot = usize::from(slot) % (WORDS * 64);
    slots[slot / 64].load(Relaxed) >> (slot % 64) & 1 != 0
}

impl Cluster {
    /// Whether this node has the slot of a key, and serves it.
    #[inline]
    fn has(&self, key: &[u8]) -> bool {
        is_set(&self.served, slot(key))
    }

    /// Whether all of these requests that can run without a closer look certainly may run here. Their
    /// arguments have yet to be counted.
    pub(crate) fn serves_all(&self, requests: &[Request], spans: &[Span], input: &[u8]) -> bool {
        let mut are_plain = true;
        let keys = requests.iter().map(|request| {
            let command = request.command?;
            if command.only_key < request.spans {
                let span = &spans[request.first_span + command.only_key];
                return Some((span.start, span.len));
            }
            are_plain &= command.routing != Routing::ManyKeys || !command.groupable;
            None
        });
        let served = &*self.served;
        all_slots(input, keys, |slot| is_set(served, slot)) && are_plain
    }

    /// Whether a request certainly may run here: it has one key of a slot that is served, or none. If not,
    /// [`Cluster::refusal`] decides. The number of arguments was found right.
    #[inline]
    pub(crate) fn serves(&self, command: &Command, args: &Args<'_>) -> bool {
        match command.routing {
            Routing::OneKey => self.has(args.get(command.first_key as usize)),
            Routing::Keyless => true,
            Routing::ManyKeys => false,
        }
    }

    /// The error of a script that calls a command which may not run here, in words of redis-server. Notes the
    /// slot of the first key of the script in `home`.
    #[inline]
    pub(crate) fn refusal_of_call(
        &self,
        context: &Context<'_>,
        command: &Command,
        args: &Args<'_>,
        home: &mut Home,
    ) -> Option<Failure> {
        let may_run = match command.routing {
            Routing::Keyless => true,
            Routing::OneKey => {
                let slot = slot(args.get(command.first_key as usize));
                let is_at_home = home.slot == Some(slot);
                is_set(&self.served, slot) && (is_at_home || home.may_leave)
            }
            Routing::ManyKeys => false,
        };
        match may_run {
            true => None,
            false => self.routed_call(context, command, args, home),
        }
    }

    fn routed_call(
        &self,
        context: &Context<'_>,
        command: &Command,
        args: &Args<'_>,
        home: &mut Home,
    ) -> Option<Failure> {
        let view = self.view();
        let mut router = Router {
            home: home.slot,
            ..Router::new(&view, context.server)
        };
        router.add(command, args);
        match router.route() {
            Route::Here => {}
            Route::Down => return Some(CALL_WHILE_DOWN),
            Route::ReadsAlone => return Some(WRITE_WHILE_DOWN),
            Route::Moved(..) | Route::CrossSlot | Route::Unserved => return Some(NOT_LOCAL),
        }
        match (home.slot, router.slot) {
            (Some(home_slot), Some(slot)) if home_slot != slot && !home.may_leave => {
                Some(OTHER_SLOT)
            }
            (None, Some(_)) => {
                home.slot = router.slot;
                None
            }
            _ => None,
        }
    }

    /// Reply to a request that may not run here. For EXEC all requests of its transaction count.
    pub(crate) fn refusal(
        &self,
        context: &Context<'_>,
        command: &Command,
        args: &Args<'_>,
    ) -> Option<Failure> {
        let view = self.view();
        let settings = &context.server.settings;
        let mut router = Router::new(&view, context.server);
        let transaction = context.session.transaction.as_ref();
        match transaction.filter(|_| command.control == Control::Exec) {
            Some(transaction) => {
                for at in 0..transaction.len() {
                    let args = transaction.args(at, &context.server.keyspace);
                    router.add(transaction.command(at), &args);
                }
            }
            None => router.add(command, args),
        }
        let route = router.route();
        (route != Route::Here).then(|| failure(route, &view, settings))
    }
}

/// The slot of a script.
pub(crate) struct Home {
    /// The slot of its keys, or of the first one that it uses. The script was admitted with its keys: they
    /// are served until it ends, also when the map changes meanwhile.
    slot: Option<u16>,
    /// It may use keys of other slots that are served here.
    may_leave: bool,
}

impl Home {
    /// `key`: the first key of the script, if it names one.
    pub(crate) fn of(key: Option<&[u8]>, may_leave: bool) -> Home {
        Home {
            slot: key.map(slot),
            may_leave,
        }
    }
}

const READS_ALONE: Failure =
    Failure::of("CLUSTERDOWN The cluster is down and only accepts read commands");

const NOT_LOCAL: Failure =
    Failure::of("ERR Script attempted to access a non local key in a cluster node");
const OTHER_SLOT: Failure =
    Failure::of("ERR Script attempted to access keys that do not hash to the same slot");
const CALL_WHILE_DOWN: Failure =
    Failure::of("ERR Script attempted to execute a command while the cluster is down");
const WRITE_WHILE_DOWN: Failure = Failure::of(
    "ERR Script attempted to execute a write command while the cluster is down and readonly",
);

/// Finds out where keys belong, one after the other.
struct Router<'v> {
    view: &'v View,
    server: &'v Server,
    /// The view lacks a slot, and all are required.
    is_down: bool,
    /// A slot that is served here for this request.
    home: Option<u16>,
    slot: Option<u16>,
    /// Result that later keys do not change.
    refused: Option<Route>,
    used: Use,
}

impl Router<'_> {
    fn new<'v>(view: &'v View, server: &'v Server) -> Router<'v> {
        Router {
            view,
            server,
            is_down: view.is_down(&server.settings),
            home: None,
            slot: None,
            refused: None,
            used: Use::default(),
        }
    }

    /// The node that serves a slot.
    fn owner(&self, slot: u16) -> Option<usize> {
        match self.home == Some(slot) {
            true => Some(self.view.me),
            false => self.view.map.owner(slot),
        }
    }

    /// Adds the keys of a request.
    fn add(&mut self, command: &Command, args: &Args<'_>) {
        if command.spec.keys.is_empty() || self.refused.is_some() {
            return;
        }
        self.used.writes |= command.spec.has(flag::WRITE)
            || self.is_down && declares_writes(self.server, command, args);
        self.used.of_channels |= command.spec.has(flag::PUBSUB);
        if command.has_plain_keys() {
            command
                .key_positions(args.len())
                .for_each(|at| self.key(args.get(at)));
            return;
        }
        let all: Vec<&[u8]> = args.from(0).collect();
        // Where its keys cannot be found the command says itself what is wrong.
        for key in key_finder::find(command.spec, &all).into_iter().flatten() {
            self.key(args.get(key.at));
        }
    }

    fn key(&mut self, key: &[u8]) {
        let slot = slot(key);
        let refused = match self.slot {
            None if self.owner(slot).is_none() => Some(Route::Unserved),
            Some(first) if first != slot => Some(Route::CrossSlot),
            _ => None,
        };
        self.slot = self.slot.or(Some(slot));
        self.refused = self.refused.or(refused);
    }

    fn route(&self) -> Route {
        let settings = &self.server.settings;
        if let Some(refused) = self.refused {
            return refused;
        }
        let Some(slot) = self.slot else {
            return Route::Here;
        };
        if self.is_down {
            let reads = settings.flag(Setting::ClusterAllowReadsWhenDown);
            let channels = settings.flag(Setting::ClusterAllowPubsubshardWhenDown);
            match self.used {
                Use {
                    of_channels: true, ..
                } if channels => {}
                Use {
                    of_channels: true, ..
                } => return Route::Down,
                _ if !reads => return Route::Down,
                Use { writes: true, .. } => return Route::ReadsAlone,
                _ => {}
            }
        }
        match self.owner(slot) {
            Some(owner) if owner == self.view.me => Route::Here,
            Some(owner) => Route::Moved(slot, owner),
            None => Route::Unserved,
        }
    }
}

/// Whether a request runs a script that says of itself that it writes.
#[cold]
fn declares_writes(server: &Server, command: &Command, args: &Args<'_>) -> bool {
    let Some(word) = args.optional(1) else {
        return false;
    };
    let flags = match command.spec.name {
        "eval" | "eval_ro" => flags_of(word).ok(),
        "evalsha" | "evalsha_ro" => Script::parse_sha(word)
            .and_then(|sha| server.scripts.get(&sha))
            .map(|script| script.flags),
        "fcall" | "fcall_ro" => server
            .persistence
            .libraries
            .function(word)
            .map(|script| script.flags),
        _ => None,
    };
    flags.is_some_and(|flags| flags.is_declared && !flags.no_writes)
}

/// Reply in the words of redis-server.
#[cold]
fn failure(route: Route, view: &View, settings: &Settings) -> Failure {
    match route {
        Route::Moved(slot, owner) => {
            let endpoint = Endpoint::of(view, owner, settings);
            let host = endpoint.preferred(settings).unwrap_or_default();
            Failure::new(format!("MOVED {slot} {host}:{}", endpoint.port))
        }
        Route::CrossSlot => Failure::of("CROSSSLOT Keys in request don't hash to the same slot"),
        Route::Unserved | Route::Here => Failure::of("CLUSTERDOWN Hash slot not served"),
        Route::Down => Failure::of("CLUSTERDOWN The cluster is down"),
        Route::ReadsAlone => READS_ALONE,
    }
}
