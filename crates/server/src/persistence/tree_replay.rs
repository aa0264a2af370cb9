//! Trees at the start: their records are put together, and each tree goes to the key that names it.
//!
//! The records of an instance and the record of its key come in any order, as compaction appends them anew.
//! So the key gets a tree without items, and the pieces wait here until the last record has been applied.
//! Instances that no key names then are dropped: their key was removed, or the crash was between the leaves
//! and the record of the key.
//!
//! The records of an instance wait in its *inbox*: to copy them there is all that is done while a thread has
//! the instance's partition. Between two pieces of the log a thread applies what waits. Leaves it applies
//! soon. Edits stay until those of all instances take too much memory, so that many of them are applied in
//! one pass over the leaves of their instance; the instance whose records have waited longest is the first.
//!
//! When memory is short, the parts of one instance after the other leave it ([`super::tile_store`]).

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ferrite_log::{Change, DbId, Lsn, Record, Tag};
use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::log::leaf::{LeafRecord, WriteLeaf};
use keyspace::collection::log::store::TileStore as _;
use keyspace::collection::pieces::Pieces;
use keyspace::collection::run::Damage;
use keyspace::{Keyspace, Kind};
use parking_lot::{Condvar, Mutex};

use super::instances::leaf_share;
use super::tile_store::ReplayStore;

/// Parts of the table, each with a lock.
const PARTS: usize = 64;
/// Bytes of memory for records that wait between two pieces, at most, and the part of `maxmemory` that they
/// may take.
const WAITING_BYTES: u64 = 64 << 20;
const WAITING_SHARE: u64 = 16;

/// How many buffers of applied inboxes are kept for others, and bytes of the largest that is kept.
const SPARE_BUFFERS: usize = 8;
const SPARE_BYTES: usize = 1 << 20;

/// Bytes of memory for records that wait, by `maxmemory`.
pub(super) fn waiting_bytes(limit: u64) -> u64 {
    match limit {
        0 => WAITING_BYTES,
        limit => (limit / WAITING_SHARE).min(WAITING_BYTES),
    }
}

/// What the records of an instance have said so far.
enum Found {
    Pieces {
        pieces: Box<Pieces>,
        /// Whether the instance is among those with parts in memory.
        is_resident: bool,
    },
    /// A repair has cut records of it out.
    Gone,
}

/// A record that waits.
#[derive(Clone, Copy)]
pub(super) struct InInbox {
    pub(super) lsn: Lsn,
    pub(super) db: DbId,
    pub(super) instance: u64,
    pub(super) tag: Tag,
    is_leaf: bool,
    /// Bytes of its contents.
    len: usize,
}

/// Records of an instance that wait, and their contents one behind the other.
#[derive(Default)]
struct Inbox {
    records: Vec<InInbox>,
    bytes: Vec<u8>,
    has_leaf: bool,
    /// Whether the instance is in the queue.
    is_queued: bool,
}

impl Inbox {
    fn memory(&self) -> usize {
        self.bytes.len() + self.records.len() * size_of::<InInbox>()
    }
}

/// Is told of a record that makes no sense.
pub(super) type OnDamage<'d> = &'d mut dyn FnMut(InInbox, Damage);

/// Key that names an instance. The key may have got another value later.
pub(super) struct Claim {
    pub(super) instance: u64,
    pub(super) tag: Tag,
    pub(super) id: DbId,
    pub(super) db: usize,
    pub(super) hash: u64,
    pub(super) name: Box<[u8]>,
}

/// A tree, when all records are applied.
pub(super) enum Rebuilt {
    Tree(Box<Collection>),
    /// It takes more memory than there is, until the log takes records again.
    Large,
    /// A repair has cut its records out. Its key goes, too.
    Gone,
    /// Records of it are missing.
    Lacking,
}

/// See the module.
pub(super) struct TreeReplay {
    found: [Mutex<HashMap<u64, Found>>; PARTS],
    inboxes: [Mutex<HashMap<u64, Inbox>>; PARTS],
    claims: Mutex<Vec<Claim>>,
    lost: Mutex<Vec<Base>>,
    /// Instances with records that wait, those that have waited longest first; and those with leaves that do.
    /// Some of them have none any more.
    queue: Mutex<VecDeque<u64>>,
    /// Is notified, with the queue locked, when fewer records wait.
    taken: Condvar,
    with_leaves: Mutex<VecDeque<u64>>,
    /// Instances with parts in memory; some of them have none any more.
    resident: Mutex<VecDeque<u64>>,
    store: ReplayStore<'static>,
    /// Buffers of inboxes that were applied.
    spare: Mutex<Vec<Vec<u8>>>,
    /// Bytes of memory of all records that wait, and how many there may be between two pieces.
    waiting: AtomicUsize,
    waiting_max: u64,
}

impl TreeReplay {
    /// `waiting_max` are the bytes of memory of records that wait between two pieces, at most.
    pub(super) fn new(waiting_max: u64, store: ReplayStore<'static>) -> TreeReplay {
        TreeReplay {
            found: std::array::from_fn(|_| Mutex::default()),
            inboxes: std::array::from_fn(|_| Mutex::default()),
            claims: Mutex::default(),
            lost: Mutex::default(),
            queue: Mutex::default(),
            taken: Condvar::new(),
            with_leaves: Mutex::default(),
            resident: Mutex::default(),
            store,
            spare: Mutex::default(),
            waiting: AtomicUsize::new(0),
            waiting_max,
        }
    }

    fn part(&self, instance: u64) -> &Mutex<HashMap<u64, Found>> {
        &self.found[instance as usize % PARTS]
    }

    fn inbox(&self, instance: u64) -> &Mutex<HashMap<u64, Inbox>> {
        &self.inboxes[instance as usize % PARTS]
    }

    /// Notes that a record of a key names an instance.
    pub(super) fn claim(&self, claim: Claim) {
        self.claims.lock().push(claim);
    }

    /// Takes a record of an instance, whose contents are `bytes`.
    pub(super) fn put(&self, record: &Record<'_>, instance: u64, tag: Tag, bytes: &[u8]) {
        let is_leaf = matches!(record.change, Change::Leaf { .. });
        let mut part = self.inbox(instance).lock();
        let inbox = part.entry(instance).or_default();
        let before = inbox.memory();
        if !std::mem::replace(&mut inbox.is_queued, true) {
            self.queue.lock().push_back(instance);
        }
        if is_leaf && !inbox.has_leaf {
            inbox.has_leaf = true;
            self.with_leaves.lock().push_back(instance);
        }
        if inbox.bytes.capacity() == 0
            && is_leaf
            && let Some(spare) = self.spare.lock().pop()
        {
            inbox.bytes = spare;
        }
        inbox.bytes.extend_from_slice(bytes);
        inbox.records.push(InInbox {
            lsn: record.lsn,
            db: record.db,
            instance,
            tag,
            is_leaf,
            len: bytes.len(),
        });
        self.waiting.fetch_add(inbox.memory() - before, Relaxed);
    }

    /// Applies leaves that wait, and so many edits that the others do not take too much memory.
    pub(super) fn apply_some(&self, keyspace: &Keyspace, damage: OnDamage<'_>) {
        let next = |queue: &Mutex<VecDeque<u64>>| queue.lock().pop_front();
        while let Some(instance) = next(&self.with_leaves) {
            self.apply(keyspace, instance, true, damage);
        }
        while let Some(instance) = self.next_of_too_many() {
            self.apply(keyspace, instance, false, damage);
        }
        self.make_room();
    }

    /// The next instance of the queue, if too many records wait. If the queue is empty then, other threads
    /// are about to apply them. This one would only add more, so it waits for them.
    fn next_of_too_many(&self) -> Option<u64> {
        let mut queue = self.queue.lock();
        while self.waiting.load(Relaxed) as u64 > self.waiting_max {
            if let Some(instance) = queue.pop_front() {
                return Some(instance);
            }
            self.taken.wait(&mut queue);
        }
        None
    }

    /// Lets parts of instances leave memory, as long as it is short.
    pub(super) fn make_room(&self) {
        while self.store.is_short() {
            let Some(instance) = self.resident.lock().pop_front() else {
                return;
            };
            let mut part = self.part(instance).lock();
            if let Some(Found::Pieces {
                pieces,
                is_resident,
            }) = part.get_mut(&instance)
            {
                *is_resident = !pieces.leave(&mut self.store.of(instance));
                if *is_resident {
                    self.resident.lock().push_back(instance);
                }
            }
        }
    }

    /// What could not be read of the log or the spill file, if there was something.
    pub(super) fn problem(&self) -> Option<String> {
        self.store.problem()
    }

    /// Applies all that waits. Several threads may do it together.
    pub(super) fn apply_all(&self, keyspace: &Keyspace, damage: OnDamage<'_>) {
        loop {
            let Some(instance) = self.queue.lock().pop_front() else {
                return;
            };
            self.apply(keyspace, instance, false, damage);
            self.make_room();
        }
    }

    /// Applies what waits for an instance. `is_queued`: it is in the queue still.
    fn apply(&self, keyspace: &Keyspace, instance: u64, is_queued: bool, damage: OnDamage<'_>) {
        // This lock is the first: another thread that has later records waits for it.
        let mut part = self.part(instance).lock();
        let inbox = match self.inbox(instance).lock().get_mut(&instance) {
            Some(inbox) => {
                let is_queued = is_queued && inbox.is_queued;
                let empty = Inbox {
                    is_queued,
                    ..Inbox::default()
                };
                std::mem::replace(inbox, empty)
            }
            None => return,
        };
        let before = self.waiting.fetch_sub(inbox.memory(), Relaxed);
        if before as u64 > self.waiting_max {
            let _queue = self.queue.lock();
            self.taken.notify_all();
        }
        let mut rest = &inbox.bytes[..];
        let of_one_kind = |one: &InInbox, other: &InInbox| {
            (one.is_leaf, one.len == 0) == (other.is_leaf, other.len == 0)
        };
        for records in inbox.records.chunk_by(of_one_kind) {
            let (bytes, others) = rest.split_at(records.iter().map(|its| its.len).sum());
            rest = others;
            match records[0].is_leaf {
                true => self.apply_leaves(keyspace, &mut part, records, bytes, damage),
                false => self.apply_edits(&mut part, records, bytes, damage),
            }
        }
        if let Some(Found::Pieces { is_resident, .. }) = part.get_mut(&instance)
            && !std::mem::replace(is_resident, true)
        {
            self.resident.lock().push_back(instance);
        }
        drop(part);
        self.keep(inbox.bytes);
    }

    /// Keeps a buffer for another inbox.
    fn keep(&self, mut buffer: Vec<u8>) {
        let mut spare = self.spare.lock();
        if buffer.capacity() <= SPARE_BYTES && spare.len() < SPARE_BUFFERS {
            buffer.clear();
            spare.push(buffer);
        }
    }

    /// Applies leaves that are one behind the other in `bytes`.
    fn apply_leaves(
        &self,
        keyspace: &Keyspace,
        part: &mut HashMap<u64, Found>,
        records: &[InInbox],
        mut bytes: &[u8],
        damage: OnDamage<'_>,
    ) {
        for &record in records {
            let (its, others) = bytes.split_at(record.len);
            bytes = others;
            if let Err(problem) = self.apply_leaf(keyspace, part, record, its) {
                damage(record, problem);
            }
        }
    }

    fn apply_leaf(
        &self,
        keyspace: &Keyspace,
        part: &mut HashMap<u64, Found>,
        record: InInbox,
        bytes: &[u8],
    ) -> Result<(), Damage> {
        let leaf = LeafRecord::read(bytes)?;
        let found = part.entry(record.instance).or_insert_with(|| {
            let kind = Kind::from_bits(record.tag.kind).expect("the log knows the kind");
            Found::Pieces {
                pieces: Box::new(keyspace.pieces(kind, leaf.seed)),
                is_resident: false,
            }
        });
        let Found::Pieces { pieces, .. } = found else {
            return Ok(());
        };
        let base = Base {
            at: record.lsn.get(),
            share: leaf_share(bytes.len()),
        };
        let mut lost = Vec::new();
        let applied = pieces.leaf(&leaf, base, &mut lost, &mut self.store.of(record.instance));
        if !lost.is_empty() {
            self.lost.lock().append(&mut lost);
        }
        applied
    }

    /// Applies records of edits that are one behind the other in `bytes`. Either all are empty or none is.
    fn apply_edits(
        &self,
        part: &mut HashMap<u64, Found>,
        records: &[InInbox],
        bytes: &[u8],
        damage: OnDamage<'_>,
    ) {
        let instance = records[0].instance;
        if bytes.is_empty() {
            part.insert(instance, Found::Gone);
            return;
        }
        match part.get_mut(&instance) {
            // The leaves that have its result follow, or nobody names the instance.
            None | Some(Found::Gone) => {}
            Some(Found::Pieces { pieces, .. }) => {
                let mut lens = records.iter().map(|its| its.len);
                let damage = &mut |number: usize, problem| damage(records[number], problem);
                pieces.edit(bytes, &mut lens, damage, &mut self.store.of(instance));
            }
        }
    }

    /// Takes the keys that name instances, in no order.
    pub(super) fn claims(&self) -> Vec<Claim> {
        std::mem::take(&mut *self.claims.lock())
    }

    /// Takes the tree of an instance, which its key says to be of this kind, with order keys of this seed.
    /// All records have been applied ([`TreeReplay::apply_all`]). `write` puts a leaf into the log, if that
    /// takes records.
    pub(super) fn take(
        &self,
        instance: u64,
        kind: Kind,
        seed: u64,
        write: Option<WriteLeaf<'_>>,
    ) -> Rebuilt {
        let mut part = self.part(instance).lock();
        let pieces = match part.get_mut(&instance) {
            None | Some(Found::Gone) => return Rebuilt::Gone,
            Some(Found::Pieces { pieces, .. }) => pieces,
        };
        // A damaged record may name the instance of another.
        if pieces.kind() != kind || pieces.seed() != seed || !pieces.is_whole() {
            return Rebuilt::Lacking;
        }
        let store = &mut self.store.of(instance);
        if store.is_short() {
            pieces.leave(store);
        }
        if write.is_none() && pieces.has_spilled() {
            return Rebuilt::Large;
        }
        let Some(Found::Pieces { pieces, .. }) = part.remove(&instance) else {
            return Rebuilt::Gone;
        };
        drop(part);
        let mut lost = Vec::new();
        let whole = pieces.finish(&mut lost, store, write);
        self.lost.lock().append(&mut lost);
        whole.map_or(Rebuilt::Lacking, |tree| Rebuilt::Tree(Box::new(tree)))
    }

    /// Drops the instances that no key has taken. Returns the records on which nothing rests.
    pub(super) fn finish(self) -> Vec<Base> {
        let mut lost = self.lost.into_inner();
        for part in self.found {
            for found in part.into_inner().into_values() {
                if let Found::Pieces { pieces, .. } = found {
                    pieces.discard(&mut lost);
                }
            }
        }
        lost
    }
}

/// The message about a record that makes no sense.
pub(super) fn message(lsn: Lsn, damage: Damage) -> String {
    format!(
        "cannot load the log: the record at {lsn} has no changes of a collection ({damage:?}); \
         ferrite-server --repair-log deletes what cannot be read"
    )
}

#[cfg(test)]
mod tests {
    use ferrite_log::Value;
    use keyspace::Options;
    use keyspace::collection::cell::Cell;
    use keyspace::collection::kind::{Edge, Fields, LeafKind};
    use keyspace::collection::log::edits::Edits;
    use keyspace::collection::run::{Item, Run};

    use super::super::tile_store::ReplayMemory;
    use super::*;

    const SEED: u64 = 9;

    fn put(replay: &TreeReplay, at: u64, instance: u64, is_leaf: bool, bytes: &[u8]) {
        let tag = Tag {
            kind: Kind::Hash as u8,
            is_tree: true,
            ..Tag::default()
        };
        let value = Value::Bytes(bytes);
        let record = Record {
            lsn: Lsn::new(8 * at),
            db: DbId(0),
            key: &instance.to_le_bytes(),
            change: match is_leaf {
                true => Change::Leaf { tag, bytes: value },
                false => Change::Edit { tag, bytes: value },
            },
        };
        replay.put(&record, instance, tag, bytes);
    }

    struct Enough;

    impl ReplayMemory for Enough {
        fn is_short(&self, _: usize) -> bool {
            false
        }

        fn give_back(&self) {
            unreachable!("nothing is spilled");
        }
    }

    fn in_memory(waiting_max: u64) -> TreeReplay {
        let store = ReplayStore::new("/nowhere".into(), None, waiting_max, Box::new(Enough));
        TreeReplay::new(waiting_max, store)
    }

    fn keyspace() -> Keyspace {
        Keyspace::new(&Options {
            databases: 1,
            workers: 1,
            shards: 1,
            seed: 7,
            ticks: || 0,
            charge: |_| (),
        })
    }

    /// Hashes of which edits come in turns have their fields, and no more than allowed waits.
    #[test]
    fn records_wait_and_take_no_more_memory_than_they_may() {
        let keyspace = keyspace();
        for waiting_max in [0, 10_000, u64::MAX] {
            let replay = in_memory(waiting_max);
            let no_damage = &mut |_, damage| panic!("there is no damage: {damage:?}");
            let mut bytes = Vec::new();
            let leaf = LeafRecord {
                seed: SEED,
                from: Edge::default(),
                to: None,
                run: &Run::empty(Fields::FLAGS),
            };
            leaf.write(&mut bytes);
            (1..=20).for_each(|instance| put(&replay, instance, instance, true, &bytes));
            for round in 0..50 {
                for instance in 1..=20 {
                    let mut edits = Edits::default();
                    for number in 0..20 {
                        let name = Cell::Int(round * 10 + number);
                        edits.set(&Item::pair(name, Cell::Int(round)));
                    }
                    put(&replay, 100, instance, false, edits.bytes());
                }
                replay.apply_some(&keyspace, no_damage);
                assert!(replay.waiting.load(Relaxed) as u64 <= waiting_max);
                assert!(replay.with_leaves.lock().is_empty());
                assert!(replay.queue.lock().len() <= 20);
            }
            replay.apply_all(&keyspace, no_damage);
            assert_eq!(replay.waiting.load(Relaxed), 0);
            for instance in 1..=20 {
                let Rebuilt::Tree(tree) = replay.take(instance, Kind::Hash, SEED, None) else {
                    panic!("the tree is whole");
                };
                let Collection::Hash(tree) = *tree else {
                    panic!("it is a hash");
                };
                tree.verify();
                assert_eq!(tree.count(), 510);
                for name in 0..510_i64 {
                    let value = tree.view().get(Cell::Int(name)).and_then(|item| item.value);
                    assert_eq!(value, Some(Cell::Int((name / 10).min(49))));
                }
            }
        }
    }

    /// Damage is found with the record that has it, whenever that is applied.
    #[test]
    fn damage_names_its_record() {
        let replay = in_memory(u64::MAX);
        put(&replay, 600, 3, true, b"no leaf");
        put(&replay, 700, 3, false, b"");
        put(
            &replay,
            800,
            4,
            false,
            b"no edits of a tree that is not there",
        );
        let mut found = Vec::new();
        replay.apply_all(&keyspace(), &mut |record, _| found.push(record.lsn));
        assert_eq!(found, [Lsn::new(8 * 600)]);
        assert!(matches!(
            replay.take(3, Kind::Hash, SEED, None),
            Rebuilt::Gone
        ));
    }
}
