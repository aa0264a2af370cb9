//! The model of what one connection has: its keys, and where it stands (database, transaction, watched keys).
//!
//! [`Model::apply`] runs a request and says what its reply has to be. The keys of connections are disjoint,
//! so each has a model of its own. What commands of all keys (FLUSHALL, ...) do to the keys of another
//! connection is [`Model::apply_global`].

mod chosen;

use std::sync::Arc;

pub(crate) use chosen::Chosen;

use crate::support::Value;
use crate::torture::commands::scans::{self, Page, Scans};
use crate::torture::commands::scripts::LIBRARIES;
use crate::torture::commands::{Effect, IN_PLACE, Row, payload, row};
use crate::torture::script::{Arg, Request};
use crate::torture::slots::Slots;
use crate::torture::streams::{self, Stream};
use crate::torture::values::{
    Data, Entry, Fields, Key, Keys, Members, Span, fields_of, halves_of, is_same_to_watch,
    members_of, scored_of,
};

/// Databases of the servers.
pub(crate) const DATABASES: u16 = 4;

/// What a reply has to be.
#[derive(Clone, Debug)]
pub(crate) enum Expect {
    Is(Value),
    /// Null of any kind.
    Null,
    /// An error that begins so.
    Error(&'static str),
    /// An error of a request in EXEC that has done nothing: there was no memory, or a script was ended, or
    /// there was no space on the disk for a request of it.
    Refused,
    /// A number within these, both included.
    Between(i64, i64),
    /// Null, or this.
    NullOr(Value),
    All(Vec<Expect>),
    /// These fields with their values, in any order.
    Fields(Fields),
    /// These members, in any order.
    Members(Members),
    /// This score, in halves.
    Score(i64),
    /// These members behind their scores, in this order.
    Scored(Vec<(i64, Vec<u8>)>),
    /// The facts of this that XINFO STREAM FULL says.
    Stream(Arc<Stream>),
    /// Names and their values: a map, or in turn, or as pairs.
    Pairs(Vec<(Expect, Expect)>),
    /// What DUMP gives of a value.
    Payload(Data),
    /// A page of a scan.
    Page(Page),
    /// Nothing is known of it, except that it is no error.
    Any,
}

impl Expect {
    pub(crate) fn ok() -> Expect {
        Expect::Is(Value::Simple(b"OK".to_vec()))
    }

    pub(crate) fn int(number: impl TryInto<i64>) -> Expect {
        let number = number.try_into().unwrap_or(i64::MAX);
        Expect::Is(Value::Int(number))
    }

    pub(crate) fn bulk(bytes: &[u8]) -> Expect {
        Expect::Is(Value::Bulk(bytes.to_vec()))
    }

    pub(crate) fn bulk_or_null(bytes: Option<&[u8]>) -> Expect {
        bytes.map_or(Expect::Null, Expect::bulk)
    }

    /// Whether a reply is so.
    pub(crate) fn admits(&self, reply: &Value) -> bool {
        let is_null = matches!(reply, Value::NullBulk | Value::NullArray | Value::Null);
        match (self, reply) {
            (Expect::Any, _) => !matches!(reply, Value::Error(_)),
            (Expect::Null, _) => is_null,
            (Expect::NullOr(value), _) => is_null || value == reply,
            (Expect::Is(value), _) => value == reply,
            (Expect::Error(start), Value::Error(text)) => text.starts_with(start.as_bytes()),
            // The history knows the errors that mean this.
            (Expect::Refused, Value::Error(_)) => true,
            (Expect::Between(least, most), Value::Int(number)) => (least..=most).contains(&number),
            (Expect::All(items), Value::Array(replies)) => {
                let mut pairs = items.iter().zip(replies);
                items.len() == replies.len() && pairs.all(|(item, reply)| item.admits(reply))
            }
            (Expect::Payload(data), Value::Bulk(bytes)) => {
                payload::decode(bytes).as_ref() == Some(data)
            }
            (Expect::Page(page), _) => page.admits(reply),
            (Expect::Stream(stream), _) => {
                streams::decode(reply).is_ok_and(|found| stream.may_show(&found))
            }
            (Expect::Pairs(pairs), _) => admits_pairs(pairs, reply),
            (Expect::Score(halves), _) => halves_of(reply) == Some(*halves),
            (Expect::Scored(pairs), _) => scored_of(reply).as_ref() == Some(pairs),
            (Expect::Members(members), _) => members_of(reply).as_ref() == Some(members),
            (Expect::Fields(fields), _) => fields_of(reply).as_ref() == Some(fields),
            _ => false,
        }
    }
}

/// Whether a reply is these pairs.
fn admits_pairs(pairs: &[(Expect, Expect)], reply: &Value) -> bool {
    let admits = |(name, value): &(Expect, Expect), [found, its]: [&Value; 2]| {
        name.admits(found) && value.admits(its)
    };
    match reply {
        Value::Map(replies) => {
            let mut both = pairs.iter().zip(replies);
            pairs.len() == replies.len()
                && both.all(|(pair, (name, its))| admits(pair, [name, its]))
        }
        Value::Array(replies) if replies.len() == 2 * pairs.len() => {
            let mut both = pairs.iter().zip(replies.chunks(2));
            both.all(|(pair, words)| admits(pair, [&words[0], &words[1]]))
        }
        Value::Array(replies) => {
            let mut both = pairs.iter().zip(replies);
            pairs.len() == replies.len()
                && both.all(|(pair, reply)| match reply {
                    Value::Array(words) if words.len() == 2 => admits(pair, [&words[0], &words[1]]),
                    _ => false,
                })
        }
        _ => false,
    }
}

/// The keys that a command sees.
pub(crate) struct Call<'a> {
    pub(crate) keys: &'a mut Keys,
    /// Keys that were written or removed.
    pub(crate) touched: &'a mut Vec<Key>,
    pub(crate) db: u16,
    /// The arguments behind the command's name.
    pub(crate) args: &'a [Vec<u8>],
    /// When it runs.
    pub(crate) at: Span,
    /// The limit of memory in bytes.
    pub(crate) limit: Option<u64>,
    /// IDs that the server chooses.
    pub(crate) chosen: &'a mut Chosen,
}

impl Call<'_> {
    pub(crate) fn key(&self, name: &[u8]) -> Key {
        (self.db, name.to_vec())
    }

    /// Whether a value of so many bytes is larger than all memory: what makes it is refused.
    pub(crate) fn has_no_room(&self, bytes: usize) -> bool {
        self.limit.is_some_and(|limit| bytes as u64 > limit)
    }

    /// What a key holds, unless its time is certainly up. Whether that is certain tells [`Call::is_sure`].
    pub(crate) fn get_key(&self, key: &Key) -> Option<&Entry> {
        let entry = self.keys.get(key);
        entry.filter(|entry| entry.expiry.is_none_or(|at| at.most > self.at.least))
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&Entry> {
        self.get_key(&self.key(name))
    }

    /// A string's bytes. Commands of strings are not sent to hashes, but for those that replace them.
    pub(crate) fn string(&self, name: &[u8]) -> Option<&[u8]> {
        match &self.get(name)?.data {
            Data::String(bytes) => Some(bytes),
            Data::Hash(_) | Data::Set(_) | Data::SortedSet(_) | Data::List(_) | Data::Stream(_) => {
                None
            }
        }
    }

    /// Whether it is certain that a key is there, or not.
    pub(crate) fn is_sure(&self, name: &[u8]) -> bool {
        let expiry = self.get(name).and_then(|entry| entry.expiry);
        expiry.is_none_or(|at| at.least > self.at.most)
    }

    pub(crate) fn put(&mut self, key: Key, data: Data, expiry: Option<Span>) {
        self.touched.push(key.clone());
        self.keys.insert(key, Entry { data, expiry });
    }

    pub(crate) fn set(&mut self, name: &[u8], bytes: Vec<u8>, expiry: Option<Span>) {
        self.put(self.key(name), Data::string(bytes), expiry);
    }

    pub(crate) fn remove_key(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.keys.remove(key);
        if entry.is_some() {
            self.touched.push(key.clone());
        }
        entry
    }

    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<Entry> {
        self.remove_key(&self.key(name))
    }

    /// Changes a string in its place; its expiry stays. A missing one is empty, and becomes none if it stays
    /// so.
    pub(crate) fn change<T>(&mut self, name: &[u8], change: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let key = self.key(name);
        let expiry = self.get_key(&key).and_then(|entry| entry.expiry);
        let was_there = self.get_key(&key).is_some();
        let entry = self.keys.remove(&key).filter(|_| was_there);
        let mut data = entry.map_or_else(|| Data::string(Vec::new()), |entry| entry.data);
        let Data::String(bytes) = &mut data else {
            panic!("{} is no string", key.1.escape_ascii());
        };
        let bytes = Arc::make_mut(bytes);
        let result = change(bytes);
        if was_there || !bytes.is_empty() {
            self.put(key, data, expiry);
        }
        result
    }
}

/// What a command of all keys does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Global {
    FlushDb(u16),
    FlushAll,
    Swap(u16, u16),
}

/// Requests that MULTI has queued.
#[derive(Clone, Debug, Default)]
struct Queue {
    requests: Vec<Request>,
    /// As many of the first were certainly queued: no watched key had changed.
    certain: usize,
    /// A request was refused meanwhile.
    was_refused: bool,
}

impl Queue {
    /// Whether it is not known if the last of them were queued.
    fn is_open(&self) -> bool {
        self.certain < self.requests.len()
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) keys: Keys,
    pub(crate) db: u16,
    queue: Option<Queue>,
    watched: Vec<Key>,
    scans: Scans,
    /// The limit of memory of the server, in bytes.
    pub(crate) limit: Option<u64>,
    /// Requests of the next EXEC, by their place, that were refused in it because memory was short.
    refused: Vec<usize>,
    /// Whether a watched key has changed; `None` if that is not known.
    is_dirty: Option<bool>,
    pub(crate) chosen: Chosen,
}

impl Model {
    /// Keys, seen by a new connection.
    pub(crate) fn new(keys: Keys) -> Model {
        Model {
            keys,
            is_dirty: Some(false),
            ..Model::default()
        }
    }

    /// Runs a request. Keys that it may have changed are added to `touched`.
    pub(crate) fn apply(&mut self, request: &Request, at: Span, touched: &mut Vec<Key>) -> Expect {
        let name = command_name(request);
        let args: Vec<Vec<u8>> = request[1..].iter().map(Arg::bytes).collect();
        let is_control = matches!(&name[..], "multi" | "exec" | "discard" | "watch");
        if let (Some(queue), false) = (&mut self.queue, is_control) {
            // What would not run is not kept.
            if !queue.was_refused && self.is_dirty != Some(true) {
                queue.requests.push(request.clone());
            }
            if self.is_dirty == Some(false) {
                queue.certain = queue.requests.len();
            }
            return Expect::Is(Value::Simple(b"QUEUED".to_vec()));
        }
        match &name[..] {
            "multi" if self.queue.is_some() => Expect::Error("ERR"),
            "multi" => {
                self.queue = Some(Queue::default());
                Expect::ok()
            }
            "discard" if self.queue.take().is_some() => {
                self.unwatch();
                Expect::ok()
            }
            "exec" => match self.queue.take() {
                Some(queue) => self.exec(queue, at, touched),
                None => Expect::Error("ERR"),
            },
            "watch" if self.queue.is_some() => Expect::Error("ERR"),
            "watch" => {
                self.watched
                    .extend(args.into_iter().map(|key| (self.db, key)));
                Expect::ok()
            }
            "discard" => Expect::Error("ERR"),
            "unwatch" => {
                self.unwatch();
                Expect::ok()
            }
            _ => self.run(request, &args, at, touched),
        }
    }

    /// Runs a request of another connection for these keys, in the database of this one.
    pub(crate) fn apply_beside(
        &mut self,
        request: &Request,
        at: Span,
        touched: &mut Vec<Key>,
    ) -> Expect {
        let args: Vec<Vec<u8>> = request[1..].iter().map(Arg::bytes).collect();
        self.run(request, &args, at, touched)
    }

    fn unwatch(&mut self) {
        self.watched.clear();
        self.is_dirty = Some(false);
    }

    fn exec(&mut self, queue: Queue, at: Span, touched: &mut Vec<Key>) -> Expect {
        let is_dirty = self.is_dirty == Some(true);
        let refused = std::mem::take(&mut self.refused);
        self.unwatch();
        if queue.was_refused {
            return Expect::Error("EXECABORT");
        }
        if is_dirty {
            return Expect::Null;
        }
        let run = |(place, request): (usize, &Request)| {
            if refused.contains(&place) {
                return Expect::Refused;
            }
            let args: Vec<Vec<u8>> = request[1..].iter().map(Arg::bytes).collect();
            self.run(request, &args, at, touched)
        };
        Expect::All(queue.requests.iter().enumerate().map(run).collect())
    }

    fn run(
        &mut self,
        request: &Request,
        args: &[Vec<u8>],
        at: Span,
        touched: &mut Vec<Key>,
    ) -> Expect {
        let name = command_name(request);
        if name == "select" {
            let db = number(&args[0]).filter(|&db| db < DATABASES);
            self.db = db.unwrap_or(self.db);
            return db.map_or(Expect::Error("ERR"), |_| Expect::ok());
        }
        if scans::is_scan(&name) {
            return self.scan(&name, args);
        }
        let Some(Row { effect, .. }) = row(&name) else {
            panic!("the model knows no {name}");
        };
        let first = touched.len();
        let watched = self.watched.iter();
        let before: Vec<Option<Entry>> = watched.map(|key| self.keys.get(key).cloned()).collect();
        let expect = match effect {
            Effect::Keys(apply) => apply(&mut Call {
                keys: &mut self.keys,
                touched,
                db: self.db,
                args,
                at,
                limit: self.limit,
                chosen: &mut self.chosen,
            }),
            Effect::Global(_) => match self.global(request) {
                Some(global) => {
                    self.apply_global(&global, touched);
                    Expect::ok()
                }
                None => Expect::Error("ERR"),
            },
            Effect::Operator => Expect::Any,
        };
        self.note_changes(&name, &touched[first..]);
        for (key, before) in self.watched.iter().zip(&before) {
            if !is_same_to_watch(self.keys.get(key), before.as_ref()) {
                // If it is open which requests were queued before this change, the reply of EXEC tells.
                let is_open = self.queue.as_ref().is_some_and(Queue::is_open);
                self.is_dirty = (!is_open).then_some(true);
            } else if self.is_dirty == Some(false)
                && (touched[first..].contains(key) || args.contains(&key.1))
            {
                // Named, and as before: whether that counts as a change is left open.
                self.is_dirty = None;
            }
        }
        expect
    }

    fn scan(&self, name: &str, args: &[Vec<u8>]) -> Expect {
        let key = (self.db, args[0].clone());
        let data = self.keys.get(&key).map(|entry| &entry.data);
        let is_its_kind = match data {
            None => true,
            Some(Data::Hash(_)) => name == "hscan",
            Some(Data::Set(_)) => name == "sscan",
            Some(Data::SortedSet(_)) => name == "zscan",
            Some(_) => false,
        };
        if !is_its_kind {
            return Expect::Error("WRONGTYPE");
        }
        let scan = self.scans.get(&(name.to_owned(), key));
        Expect::Page(scans::page(data, scan, name, args))
    }

    /// A key that has another value now is another collection, of which a cursor says nothing.
    fn note_changes(&mut self, name: &str, touched: &[Key]) {
        if self.scans.is_empty() {
            return;
        }
        let keys = &self.keys;
        self.scans.retain(|(_, key), scan| {
            if !touched.contains(key) {
                return true;
            }
            let entry = keys.get(key).filter(|_| IN_PLACE.contains(&name));
            entry.is_some_and(|entry| {
                scan.keep_only(&entry.data);
                true
            })
        });
    }

    /// Takes note of a page that was answered outside of a transaction.
    pub(crate) fn learn_page(&mut self, request: &Request, page: &Page, reply: &Value) {
        let key = (self.db, request[1].bytes());
        let scan = (command_name(request), key);
        match page.next(reply) {
            Some(next) => drop(self.scans.insert(scan, next)),
            None => drop(self.scans.remove(&scan)),
        }
    }

    /// A request with the cursor of its scan, and IDs of entries of its stream.
    pub(crate) fn with_cursor(&self, request: &Request) -> Request {
        let key = (self.db, request.get(1).map(Arg::bytes).unwrap_or_default());
        let scan = self.scans.get(&(command_name(request), key));
        let cursor = Arg::word(scan.map_or(0, |scan| scan.cursor).to_string());
        let fill_in = |arg: &Arg| match arg {
            Arg::Cursor => cursor.clone(),
            Arg::Known(number) => {
                let known = self.known_id(request, *number);
                known.map_or_else(|| Arg::word(arg.bytes()), |id| Arg::word(id.text()))
            }
            arg => arg.clone(),
        };
        request.iter().map(fill_in).collect()
    }

    /// What a request of the connection does to all keys; `None` if it is not that kind, or wrong.
    pub(crate) fn global(&self, request: &Request) -> Option<Global> {
        match row(&command_name(request))?.effect {
            Effect::Global(parse) => parse(self.db, request),
            _ => None,
        }
    }

    /// What EXEC would do to all keys.
    pub(crate) fn queued_globals(&self) -> Vec<Global> {
        let mut model = Model {
            db: self.db,
            ..Model::default()
        };
        let Some(queue) = self.queue.as_ref().filter(|queue| !queue.was_refused) else {
            return Vec::new();
        };
        let globals = queue.requests.iter().filter_map(|request| {
            if command_name(request) == "select" {
                model.apply(request, Span::exactly(0), &mut Vec::new());
            }
            model.global(request)
        });
        globals.collect()
    }

    /// Does it to the keys of this connection, whoever asked for it.
    pub(crate) fn apply_global(&mut self, global: &Global, touched: &mut Vec<Key>) {
        touched.extend(self.keys.keys().cloned());
        self.scans.clear();
        match *global {
            Global::FlushAll => self.keys.retain(|key, _| key.0 == LIBRARIES),
            Global::FlushDb(db) => self.keys.retain(|key, _| key.0 != db),
            Global::Swap(one, two) => {
                let keys = std::mem::take(&mut self.keys);
                let swap = |((db, name), entry)| match db {
                    _ if db == one => ((two, name), entry),
                    _ if db == two => ((one, name), entry),
                    _ => ((db, name), entry),
                };
                self.keys = keys.into_iter().map(swap).collect();
                touched.extend(self.keys.keys().cloned());
            }
        }
        // Whether it counts for a watched key that was not there is left open.
        if !self.watched.is_empty() && self.is_dirty == Some(false) {
            self.is_dirty = None;
        }
    }

    /// The server refused the request, which did nothing.
    pub(crate) fn refuse(&mut self, request: &Request) {
        match &command_name(request)[..] {
            // What comes behind it is no transaction.
            "multi" => {}
            "exec" | "discard" => {
                self.queue = None;
                self.unwatch();
            }
            _ => {
                if let Some(queue) = &mut self.queue {
                    queue.was_refused = true;
                }
            }
        }
    }

    /// How the error begins with which a node with these slots of a cluster refuses a request, if it does.
    /// EXEC is refused with all that was queued before a watched key changed.
    pub(crate) fn refusal_of_node(&self, request: &Request, slots: Slots) -> Option<&'static str> {
        match &self.queue {
            Some(queue) if command_name(request) == "exec" => {
                let queued = match self.is_dirty {
                    Some(true) => queue.certain,
                    _ => queue.requests.len(),
                };
                slots.refusal(queue.requests[..queued].iter())
            }
            _ => slots.refusal(std::iter::once(request)),
        }
    }

    /// Whether it is open if EXEC runs anything: then its reply tells.
    pub(crate) fn is_unsure_of_exec(&self) -> bool {
        self.queue.is_some() && self.is_dirty.is_none()
    }

    /// EXEC has told that it did not run these of its requests.
    pub(crate) fn learn_refused(&mut self, refused: &[usize]) {
        self.refused = refused.to_vec();
    }

    /// Takes note of what the reply has told.
    pub(crate) fn learn_dirty(&mut self, is_dirty: bool) {
        self.is_dirty = Some(is_dirty);
    }
}

/// A command's name in lower case.
pub(crate) fn command_name(request: &Request) -> String {
    String::from_utf8_lossy(&request[0].bytes()).to_ascii_lowercase()
}

/// A number of any type, as text.
pub(crate) fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
