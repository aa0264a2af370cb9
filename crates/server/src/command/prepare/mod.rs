//! Before a command runs: are the values that it needs in memory? Those that are not are read back
//! ([`crate::values::cold`]).
//!
//! Budget, while nothing is cold: one load for each lane. Otherwise one lock and one look-up for each key
//! whose value is needed.

mod at_hand;

use std::sync::atomic::Ordering::Relaxed;

use keyspace::Key;

use crate::command::queue::Transaction;
use crate::command::{Command, Context, Reach, received};
use crate::limits::FETCH_TRIES;
use crate::request::reply::Mark;
use crate::request::{Args, Failure, ReplyMode, failure};
use crate::shared::memory::Room;
use crate::store::Store;
use crate::values::blobs;
use crate::values::cold::{Wanted, needed, taken};

/// What a command does with values.
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
        if self.take_what_is_at_hand(uses) {
            self.fetch.done();
            return Prepared::Ready;
        }
        // They are used soon.
        self.extras.borrowed.clear();
        self.unpin();
        if !self.has_room_for_wanted() {
            self.extras.wanted.clear();
            return Prepared::Later;
        }
        if self.fetch.tries < FETCH_TRIES {
            return Prepared::Fetch;
        }
        self.extras.wanted.clear();
        self.pin_or_want_all(command, args, uses);
        self.read_wanted_now(uses)
    }

    /// Pins the shards of keys whose values a command needs, or notes in
    /// [`Extras::wanted`](crate::command::Extras::wanted) what is to be read.
    fn pin_or_want_all(&mut self, command: &Command, args: &Args<'_>, uses: Uses) {
        let db = self.store.db;
        for_each_needed(command, args, |key| {
            let wanted = self.pin_or_want(db, key, uses);
            self.extras.wanted.extend(wanted);
        });
    }

    /// Whether there can ever be room for all values at once that a command needs, and what it copies of
    /// them: if not, it would be in vain to read them, or the limit would not hold.
    fn may_hold_all(&self, command: &Command, args: &Args<'_>) -> bool {
        let most = self.server.most_held();
        if most == usize::MAX || self.extras.wanted.len() == 1 && self.extras.pins.is_empty() {
            return true;
        }
        let copes = received::copes(command, args, false);
        let mut bytes: usize = 0;
        for_each_needed(command, args, |key| {
            let mut shard = self.store.lock(key);
            let Some(entry) = shard.find(key) else {
                return;
            };
            if !(copes && entry.cold().is_some_and(blobs::is_blob)) {
                bytes = bytes.saturating_add(taken(entry.value_len()));
            }
        });
        bytes <= most
    }

    /// Whether there is room for what is in [`Extras::wanted`](crate::command::Extras::wanted). Nothing is
    /// held. Where there can be none, because nothing else may leave memory, one command after the other has
    /// its values all the same: nobody is refused what is there. Each worker lets one have them in a turn, at
    /// the end of which it looks at what its clients take.
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
    fn read_wanted_now(&mut self, uses: Uses) -> Prepared {
        for arrived in std::mem::take(&mut self.fetch.arrived) {
            self.settle(arrived);
        }
        while let Some(wanted) = self.extras.wanted.pop() {
            if let Err(failure) = self.store.bring_back(wanted.db, wanted.key()) {
                self.fetch.done();
                self.extras.wanted.clear();
                self.unpin();
                return Prepared::Failed(failure);
            }
            // Somebody may have let it go again.
            let again = self.pin_or_want(wanted.db, wanted.key(), uses);
            self.extras.wanted.extend(again);
        }
        self.fetch.done();
        Prepared::Ready
    }

    /// Pins the shard of a key, unless its value is to be read.
    fn pin_or_want(&mut self, db: usize, key: Key<'_>, uses: Uses) -> Option<Wanted> {
        let mut shard = self.store.lock_in(db, key);
        let mut is_borrowed = false;
        if let Some(mut entry) = shard.find(key) {
            match entry.cold() {
                Some(value) if uses.copes && blobs::is_blob(value) => {}
                Some(value) => {
                    let mut wanted = Wanted::new(db, key, value);
                    wanted.stays_out = uses.sends && self.keeps_out(&wanted, &mut entry);
                    return Some(wanted);
                }
                None => is_borrowed = entry.is_in_file_too(),
            }
        }
        shard.pin();
        drop(shard);
        self.extras.pins.push((db, key.hash));
        if is_borrowed {
            self.extras.borrowed.push((db, key.hash, key.bytes.into()));
        }
        None
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
        let (store, wanted, server) = (&self.store, &mut self.extras.wanted, self.server);
        let mut left = server.most_held();
        transaction.for_each_run(store, server.selectable_databases(), |db, command, args| {
            let copes = received::copes(command, args, true);
            for_each_needed(command, args, |key| {
                let mut shard = store.lock_in(db, key);
                let Some(entry) = shard.find(key) else {
                    return;
                };
                let (cold, bytes) = (entry.cold(), taken(entry.value_len()));
                if cold.is_some_and(|value| copes && blobs::is_blob(value)) {
                    return;
                }
                // One for which there is no room is an error of its command.
                let fits = bytes <= left && cold.is_none_or(|value| server.may_hold(value));
                left = left.saturating_sub(if fits { bytes } else { 0 });
                let cold = cold.filter(|_| fits);
                wanted.extend(cold.map(|value| Wanted::new(db, key, value)));
            });
        });
        self.fetch.is_noted = true;
        if wanted.is_empty() {
            self.fetch.done();
        }
        !self.extras.wanted.is_empty()
    }

    /// Brings back on the spot what a command of a transaction needs, whose shards nobody else reaches.
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
        let copes = received::copes(command, args, true);
        let mut done = Ok(());
        for_each_needed(command, args, |key| {
            let Some(cold) = store.cold_in(store.db, key) else {
                return;
            };
            if done.is_err() || copes && blobs::is_blob(cold) {
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
