//! Before a command runs: are the values that it needs in memory? Those that are not are read back
//! ([`crate::values::cold`]).
//!
//! Budget, while nothing is cold: one load for each lane. Otherwise one lock and one look-up for each key
//! whose value is needed.

mod at_hand;
pub(crate) mod leaves;

use std::sync::atomic::Ordering::Relaxed;

use fastrand::Rng;
use keyspace::Key;
use keyspace::collection::any::Collection;

use self::leaves::{Needs, Walks};
use crate::command::queue::Transaction;
use crate::command::{Command, Context, Reach, received};
use crate::config::Settings;
use crate::limits::{FETCH_TRIES, LEAVES_PER_FETCH};
use crate::request::reply::Mark;
use crate::request::{Args, Failure, ReplyMode, failure};
use crate::server::Server;
use crate::shared::memory::Room;
use crate::store::{Entry, Store};
use crate::values::blobs;
use crate::values::cold::{Wanted, needed, taken};

/// Use of values by a command.
#[derive(Clone, Copy)]
pub(crate) struct Uses {
    /// It copes with those that have files of their own, as they are.
    pub(crate) copes: bool,
    /// It does no more than send them, or parts of them.
    pub(crate) sends: bool,
}

/// Whether a command may run, as far as values are concerned.
pub(crate) enum Prepared {
    Ready,
    /// When what is in [`Extras::wanted`](crate::command::Extras::wanted) is there.
    Fetch,
    /// When there is room for what it needs.
    Later,
    /// It never may: a value cannot be read.
    Failed(Failure),
}

impl Context<'_> {
    /// Makes sure that the values are in memory that a command needs, until [`Context::unpin`].
    #[inline(never)]
    pub(crate) fn prepare(&mut self, command: &Command, args: &mut Args<'_>) -> Prepared {
        if let Some(failure) = self.fetch.take_failure() {
            return Prepared::Failed(failure);
        }
        while self.fetch.seed == 0 {
            self.fetch.seed = fastrand::u64(..);
        }
        args.first_key = command.first_key as usize;
        args.key_shift = command.key_shift;
        let db = self.store.db;
        if self.server.offload.is_eager.load(Relaxed) && self.fetch.tries == 0 {
            offload_all(&mut self.store, db, command, args);
        }
        let uses = Uses {
            copes: received::copes(command, args, false),
            sends: (command.spec.large.sends)(args),
        };
        self.pin_or_want_all(command, args, uses);
        if self.extras.wanted.is_empty() {
            self.fetch.done();
            return Prepared::Ready;
        }
        self.fetch.is_noted = true;
        let is_each = |wanted: &Wanted| self.server.may_hold(wanted.value);
        if !self.extras.wanted.iter().all(is_each) || !self.may_hold_all(command, args) {
            self.fetch.done();
            self.extras.wanted.clear();
            self.unpin();
            return Prepared::Failed(failure::OUT_OF_MEMORY);
        }
        let has_leaves = self
            .extras
            .wanted
            .iter()
            .any(|wanted| wanted.instance.is_some());
        if self.take_what_is_at_hand(uses)
            && (!has_leaves || self.pin_or_want_all_again(command, args, uses))
        {
            self.fetch.done();
            return Prepared::Ready;
        }
        if let Some(failure) = self.fetch.take_failure() {
            self.extras.wanted.clear();
            self.unpin();
            return Prepared::Failed(failure);
        }
        // They are used soon.
        self.extras.borrowed.clear();
        self.unpin();
        if !self.has_room_for_wanted() {
            self.extras.wanted.clear();
            return Prepared::Later;
        }
        if self.fetch.tries < FETCH_TRIES || self.goes_on_with_leaves(command, args) {
            return Prepared::Fetch;
        }
        self.extras.wanted.clear();
        self.pin_or_want_all(command, args, uses);
        self.read_wanted_now(command, args, uses)
    }

    /// Pins the shards of keys whose values a command needs, or notes in
    /// [`Extras::wanted`](crate::command::Extras::wanted) what is to be read.
    fn pin_or_want_all(&mut self, command: &Command, args: &Args<'_>, uses: Uses) {
        let db = self.store.db;
        for_each_needed(command, args, |key| {
            self.pin_or_want(command, args, (db, key), uses);
        });
    }

    /// The same when what was read has been given back: other workers may have changed the keys meanwhile.
    /// Whether all is there now that a command needs of them.
    fn pin_or_want_all_again(&mut self, command: &Command, args: &Args<'_>, uses: Uses) -> bool {
        let db = self.store.db;
        for_each_needed(command, args, |key| {
            if self.store.served.get(key.bytes, key.hash).is_none() {
                self.pin_or_want(command, args, (db, key), uses);
            }
        });
        self.extras.wanted.is_empty() && self.fetch.failure.is_none()
    }

    /// Whether more leaves may be read for a command in the way that others wait for: if fewer are missing
    /// than when it was asked the last time.
    fn goes_on_with_leaves(&mut self, command: &Command, args: &Args<'_>) -> bool {
        if self.extras.wanted.len() < LEAVES_PER_FETCH {
            return false;
        }
        let mut missing = 0;
        for_each_needed(command, args, |key| {
            let mut shard = self.store.lock(key);
            let entry = shard.find(key);
            missing += entry
                .as_ref()
                .and_then(Entry::tree)
                .map_or(0, Collection::cold_leaves);
        });
        let before = std::mem::replace(&mut self.fetch.missing, missing);
        before == 0 || missing < before
    }

    /// Whether there can ever be room for all values at once that a command needs, and what it copies of
    /// them: if not, it would be in vain to read them, or the limit would not hold.
    fn may_hold_all(&self, command: &Command, args: &Args<'_>) -> bool {
        let most = self.server.most_held();
        if most == usize::MAX || self.extras.wanted.len() == 1 && self.extras.pins.is_empty() {
            return true;
        }
        let copes = received::copes(command, args, false);
        let leaves = self.extras.wanted.iter();
        let leaves = leaves.filter(|wanted| wanted.instance.is_some());
        let mut bytes: usize = leaves.map(needed).sum();
        for_each_needed(command, args, |key| {
            let mut shard = self.store.lock(key);
            let Some(entry) = shard.find(key) else {
                return;
            };
            if let Some(tree) = entry.tree() {
                let needs = self.needs_of(command, args, false).of_key(key);
                bytes = bytes.saturating_add(needs.bytes_of_all(tree));
                return;
            }
            if !(copes && entry.cold().is_some_and(blobs::is_blob)) {
                bytes = bytes.saturating_add(taken(entry.value_len()));
            }
        });
        bytes <= most
    }

    /// Whether there is room for the values in [`Extras::wanted`](crate::command::Extras::wanted). No shard
    /// is locked. If nothing else may leave memory there can be no room; then commands get their values one
    /// after the other, so that none is refused. Each worker serves one such command a turn, and checks the
    /// memory of its clients at the end of the turn.
    #[cold]
    pub(crate) fn has_room_for_wanted(&mut self) -> bool {
        let need = self.extras.wanted.iter().map(needed).sum::<usize>();
        self.has_room_to_read(need)
    }

    /// The same for so many bytes.
    pub(crate) fn has_room_to_read(&mut self, need: usize) -> bool {
        if !self.server.memory.is_near_with(need) {
            return true;
        }
        match self.make_room(need) {
            Room::Enough => true,
            _ if self.fetch.goes_without_room => true,
            Room::Later => false,
            Room::No => {
                let server = self.server;
                let evictor = &server.workers[self.worker].evictor;
                let is_granted = server.fetching.promises.bytes() == 0 && evictor.makes_exception();
                self.fetch.goes_without_room = is_granted;
                is_granted
            }
        }
    }

    /// Reads on the spot what is wanted, and pins it.
    #[cold]
    fn read_wanted_now(&mut self, command: &Command, args: &Args<'_>, uses: Uses) -> Prepared {
        for arrived in std::mem::take(&mut self.fetch.arrived) {
            self.settle(arrived);
        }
        while let Some(wanted) = self.extras.wanted.pop() {
            let (db, key) = (wanted.db, wanted.key());
            let read = match wanted.instance {
                None => self.store.bring_back(db, key),
                Some(instance) => {
                    // All leaves of the tree at once. None of them goes meanwhile.
                    let of_others = |other: &Wanted| other.instance != Some(instance);
                    self.extras.wanted.retain(of_others);
                    self.store.lock_in(db, key).pin();
                    self.extras.pins.push((db, key.hash));
                    let needs = self.needs_of(command, args, false).of_key(key);
                    let which = |tree: &Collection| needs.records(tree);
                    self.store.bring_leaves_back(db, key, which)
                }
            };
            if let Err(failure) = read {
                self.fetch.done();
                self.extras.wanted.clear();
                self.unpin();
                return Prepared::Failed(failure);
            }
            // Another worker may have offloaded it again.
            self.pin_or_want(command, args, (db, key), uses);
        }
        self.fetch.done();
        Prepared::Ready
    }

    /// Pins the shard of a key, or notes in [`Extras::wanted`](crate::command::Extras::wanted) what is to be
    /// read of its value.
    fn pin_or_want(
        &mut self,
        command: &Command,
        args: &Args<'_>,
        (db, key): (usize, Key<'_>),
        uses: Uses,
    ) {
        let mut shard = self.store.lock_in(db, key);
        let mut is_borrowed = false;
        if let Some(mut entry) = shard.find(key) {
            match entry.cold() {
                Some(value) if uses.copes && blobs::is_blob(value) => {}
                Some(value) => {
                    let mut wanted = Wanted::new(db, key, value);
                    wanted.stays_out = uses.sends && self.keeps_out(&wanted, &mut entry);
                    self.extras.wanted.push(wanted);
                    return;
                }
                None => is_borrowed = entry.is_in_file_too(),
            }
            let leaves = self
                .needs_of(command, args, false)
                .of_key(key)
                .wanted((db, key), &entry);
            if !leaves.is_empty() {
                self.extras.wanted.extend(leaves);
                return;
            }
        }
        shard.pin();
        drop(shard);
        self.extras.pins.push((db, key.hash));
        if is_borrowed {
            self.extras.borrowed.push((db, key.hash, key.bytes.into()));
        }
    }

    /// Lets other workers change the values that were prepared before the command runs, if tests want that.
    #[inline]
    pub(crate) fn dawdle(&self) {
        if cfg!(any(debug_assertions, feature = "faults"))
            && self.server.offload.is_eager.load(Relaxed)
            && fastrand::u8(..4) == 0
        {
            std::thread::sleep(std::time::Duration::from_micros(fastrand::u64(..200)));
        }
    }

    /// Lets go of what [`Context::prepare`] has pinned.
    #[inline]
    pub(crate) fn unpin(&mut self) {
        for (db, hash) in self.extras.pins.drain(..) {
            let database = self.store.keyspace.database(self.store.turn, db);
            database.unpin(hash);
        }
        self.store.served.clear();
        if !self.extras.borrowed.is_empty() {
            self.give_back();
        }
    }

    /// Forgets what a request left that has not run: the next may be of another connection.
    #[inline]
    pub(crate) fn forget_values(&mut self) {
        self.store.served.clear();
        self.extras.borrowed.clear();
    }

    /// Lets values leave memory again that were brought there from files of their own, unless they were
    /// changed.
    #[cold]
    fn give_back(&mut self) {
        if !self.server.may_offload() {
            // The log ends, and with it what would be there alone.
            self.extras.borrowed.clear();
            return;
        }
        for (db, hash, key) in std::mem::take(&mut self.extras.borrowed) {
            let key = Key { bytes: &key, hash };
            let mut shard = self.store.lock_in(db, key);
            if let Some(entry) = shard.find(key)
                && entry.is_in_file_too()
            {
                entry.leave();
            }
        }
    }

    /// Answers that a value cannot be read, for a request of which this is all that becomes. It is done with.
    #[cold]
    pub(crate) fn fail_unprepared(&mut self, failure: &Failure, before: Mark) {
        self.refuse(failure);
        if self.session.reply_mode != ReplyMode::On {
            self.reply.take_back(before);
            self.session.reply_mode = self.session.reply_mode.behind_a_command();
        }
    }

    /// Lets the values of all keys that a transaction uses leave memory, if tests want that. Nothing is held.
    #[cold]
    pub(crate) fn offload_for(&mut self, transaction: &Transaction) {
        if !self.server.offload.is_eager.load(Relaxed) || self.fetch.tries > 0 {
            return;
        }
        for at in 0..transaction.len() {
            let args = transaction.args(at, &self.server.keyspace);
            let db = self.store.db;
            offload_all(&mut self.store, db, transaction.command(at), &args);
        }
    }

    /// Notes in [`Extras::wanted`](crate::command::Extras::wanted) which values a transaction needs that are
    /// not in memory. Whether there are any.
    #[cold]
    pub(crate) fn wants_of(&mut self, transaction: &Transaction) -> bool {
        if self.fetch.tries >= FETCH_TRIES {
            self.fetch.done();
            return false;
        }
        let mut search = Search {
            store: &self.store,
            server: self.server,
            seed: self.fetch.seed,
            copes: true,
            left: self.server.most_held(),
            wanted: &mut self.extras.wanted,
        };
        let databases = self.server.selectable_databases();
        transaction.for_each_run(&self.store, databases, |db, command, args| {
            search.add(db, command, args);
        });
        self.fetch.is_noted = true;
        if self.extras.wanted.is_empty() {
            self.fetch.done();
        }
        !self.extras.wanted.is_empty()
    }

    /// The same for a command that a script calls.
    pub(crate) fn wants_of_call(&mut self, command: &Command, args: &Args<'_>) -> bool {
        if self.fetch.tries >= FETCH_TRIES {
            return false;
        }
        while self.fetch.seed == 0 {
            self.fetch.seed = fastrand::u64(..);
        }
        let mut search = Search {
            store: &self.store,
            server: self.server,
            seed: self.fetch.seed,
            copes: false,
            left: self.server.most_held(),
            wanted: &mut self.extras.wanted,
        };
        search.add(self.store.db, command, args);
        let wants = !self.extras.wanted.is_empty();
        self.fetch.is_noted |= wants;
        wants
    }

    /// Lets the values of a script's keys leave memory, if tests want that. Nothing is held.
    #[cold]
    pub(crate) fn offload_keys(&mut self, args: &Args<'_>, at: std::ops::Range<usize>) {
        if self.server.offload.is_eager.load(Relaxed) && self.fetch.tries == 0 {
            let db = self.store.db;
            for at in at {
                self.store.offload_key(db, args.key(at));
            }
        }
    }

    /// Reads the values of a command of a transaction at once; only the transaction reaches its shards.
    ///
    /// # Errors
    /// One of them cannot be read.
    #[cold]
    pub(crate) fn prepare_now(
        &mut self,
        command: &Command,
        args: &Args<'_>,
    ) -> Result<(), Failure> {
        let (store, server) = (&self.store, self.server);
        // A script gets its values whole.
        let copes = !self.extras.in_script && received::copes(command, args, true);
        let mut done = Ok(());
        for_each_needed(command, args, |key| {
            if done.is_err() {
                return;
            }
            let Some(cold) = store.cold_in(store.db, key) else {
                let needs = self.needs_of(command, args, true).of_key(key);
                let bytes = store.with_cold_tree(store.db, key, |tree| needs.bytes_of_all(tree));
                done = match bytes {
                    None => Ok(()),
                    Some(bytes) if bytes > server.most_held() => Err(failure::OUT_OF_MEMORY),
                    Some(_) => store.bring_leaves_back(store.db, key, |tree| needs.records(tree)),
                };
                return;
            };
            if copes && blobs::is_blob(cold) {
                return;
            }
            done = match server.may_hold(cold) {
                true => store.bring_back(store.db, key),
                false => Err(failure::OUT_OF_MEMORY),
            };
        });
        done
    }
}

/// Looks for values that are not in memory and that requests need.
struct Search<'s, 'c> {
    store: &'s Store<'c>,
    server: &'static Server,
    seed: u64,
    /// Some commands cope with values in files of their own.
    copes: bool,
    /// Bytes for which there is room.
    left: usize,
    wanted: &'s mut Vec<Wanted>,
}

impl Search<'_, '_> {
    /// Adds the needs of a request. A value for which there is no room is an error of its command.
    fn add(&mut self, db: usize, command: &Command, args: &Args<'_>) {
        let server = self.server;
        let copes = self.copes && received::copes(command, args, true);
        for_each_needed(command, args, |key| {
            let mut shard = self.store.lock_in(db, key);
            let Some(entry) = shard.find(key) else {
                return;
            };
            if let Some(tree) = entry.tree() {
                let needs = needs_of_queued(command, args, self.seed, &server.settings).of_key(key);
                let leaves = needs.wanted((db, key), &entry);
                let bytes = leaves.iter().map(needed).sum::<usize>();
                if bytes <= self.left && tree.cold_bytes() <= self.left as u64 {
                    self.left -= bytes;
                    self.wanted.extend(leaves);
                }
                return;
            }
            let (cold, bytes) = (entry.cold(), taken(entry.value_len()));
            if cold.is_some_and(|value| copes && blobs::is_blob(value)) {
                return;
            }
            let fits = bytes <= self.left && cold.is_none_or(|value| server.may_hold(value));
            self.left = self.left.saturating_sub(if fits { bytes } else { 0 });
            let cold = cold.filter(|_| fits);
            let wanted = cold.map(|value| Wanted::new(db, key, value));
            self.wanted.extend(wanted);
        });
    }
}

/// What a request of a transaction needs of collections.
fn needs_of_queued<'a>(
    command: &Command,
    args: &'a Args<'a>,
    seed: u64,
    settings: &'a Settings,
) -> Needs<'a> {
    Needs {
        items: command.spec.items,
        of: command.spec.collections(),
        args,
        key: b"",
        settings,
        in_transaction: true,
        walks: Walks::No,
        seed,
    }
}

impl Context<'_> {
    /// What a request needs of collections.
    fn needs_of<'a>(
        &self,
        command: &Command,
        args: &'a Args<'a>,
        in_transaction: bool,
    ) -> Needs<'a> {
        let walks = match self.server.offload.is_eager.load(Relaxed) {
            _ if in_transaction || !self.may_defer() => Walks::No,
            true => Walks::Perhaps,
            false => Walks::BeyondRoom(self.server),
        };
        Needs {
            in_transaction,
            walks,
            ..needs_of_queued(command, args, self.fetch.seed, &self.server.settings)
        }
    }

    /// The generator of what the command that runs does by chance: the one by which its leaves were found.
    pub(crate) fn chance(&mut self) -> Rng {
        match std::mem::take(&mut self.fetch.seed) {
            0 => Rng::new(),
            seed => Rng::with_seed(seed),
        }
    }
}

/// Lets the values of all keys of a request leave memory.
#[cold]
fn offload_all(store: &mut Store<'_>, db: usize, command: &Command, args: &Args<'_>) {
    for at in command.key_positions(args.len()) {
        store.offload_key(db, args.key(at));
    }
}

/// Calls `visit` with each key of a request whose value it needs.
fn for_each_needed(command: &Command, args: &Args<'_>, mut visit: impl FnMut(Key<'_>)) {
    let needs = command.spec.needs;
    let mut at_position = |at: usize| {
        if at < args.len() && needs(args, at) {
            visit(args.key(at));
        }
    };
    match command.reach(args) {
        Reach::Nothing => {}
        Reach::Found(positions) => positions.into_iter().for_each(at_position),
        Reach::Range | Reach::Everything => {
            let positions = command.key_positions(args.len());
            positions.for_each(&mut at_position);
        }
    }
}
