//! Hashes and sets beside maps, under all that happens to keys: edits, other names, copies, expiry,
//! snapshots, packing.

use std::collections::{BTreeMap, HashMap};

use crate::collection::any::Held;
use crate::collection::cell::{Cell, DECIMAL_MAX};
use crate::collection::kind::Members;
use crate::collection::run::Item;
use crate::collection::tree::Put;
use crate::{
    Database, EMPTY_HASH, EMPTY_SET, EntryMut, Expiry, Form, HASH, ItemsRef, Key, Keyspace, Kind,
    New, Options, RecordValue, Records, SET, Snapshot, Turn, collection,
};

/// Values, and when they expire.
type Fields = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;
type Model = HashMap<Vec<u8>, (Fields, Option<i64>)>;

pub(super) fn keyspace(small_bytes: usize) -> Keyspace {
    let keyspace = Keyspace::new(&Options {
        databases: 1,
        workers: 1,
        shards: 4,
        seed: 11,
        ticks: || 0,
        charge: |_| (),
    });
    keyspace.set_small_bytes(small_bytes);
    keyspace
}

pub(super) fn text(cell: Cell<'_>) -> Vec<u8> {
    cell.text(&mut [0; DECIMAL_MAX]).to_vec()
}

/// The items of a hash, or of a set, whose members count as fields without a value.
fn fields<K: Held>(items: ItemsRef<'_, K>) -> Fields {
    let all: Fields = items
        .iter()
        .map(|item| {
            assert_eq!(item.value.is_some(), K::KIND == Kind::Hash);
            let value = item.value.map_or(Vec::new(), text);
            (text(item.name), (value, item.expiry))
        })
        .collect();
    assert_eq!(all.len() as u64, items.len(), "no item is there twice");
    all
}

pub(super) fn item<'a>(kind: Kind, field: &'a [u8], value: &'a [u8]) -> Item<'a> {
    match kind {
        Kind::Set => Item::single(Cell::of(field)),
        _ => Item::pair(Cell::of(field), Cell::of(value)),
    }
}

pub(super) fn empty(kind: Kind) -> New<'static> {
    match kind {
        Kind::Set => New::bytes(&EMPTY_SET).of(SET),
        _ => New::bytes(&EMPTY_HASH).of(HASH),
    }
}

/// One keyspace, its model, and a snapshot that is read meanwhile.
struct Bench {
    kind: Kind,
    random: fastrand::Rng,
    now: i64,
    model: Model,
    names: u32,
    fields: u32,
}

impl Bench {
    fn name(&mut self) -> Vec<u8> {
        format!("hash:{}", self.random.u32(..self.names)).into_bytes()
    }

    /// A field; every third is an integer.
    fn field(&mut self) -> Vec<u8> {
        let number = self.random.u32(..self.fields);
        match number % 3 {
            0 => number.to_string().into_bytes(),
            _ => format!("field:{number}").into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        if self.kind == Kind::Set {
            return Vec::new();
        }
        match self.random.u8(..8) {
            0 => self.random.i64(..).to_string().into_bytes(),
            1 => vec![b'v'; self.random.usize(..700)],
            _ => vec![self.random.u8(..); self.random.usize(..30)],
        }
    }

    /// Whether a field gets an expiry, and which.
    fn field_expiry(&mut self) -> Option<u64> {
        let expires = self.kind == Kind::Hash && self.random.u8(..4) == 0;
        expires.then(|| (self.now + self.random.i64(0..200)) as u64)
    }

    /// Forgets a key whose time has come, and fields whose time has come.
    fn look_at(&mut self, name: &[u8]) {
        let now = self.now;
        let Some((fields, expiry)) = self.model.get_mut(name) else {
            return;
        };
        fields.retain(|_, (_, expiry)| expiry.is_none_or(|at| now as u64 <= at));
        if fields.is_empty() || expiry.is_some_and(|at| now > at) {
            self.model.remove(name);
        }
    }

    /// Time passes, and nobody looks at anything.
    fn expire(&mut self, database: &Database) {
        self.now += self.random.i64(0..100);
        let before = self.count();
        // What the wheel has is late by two ticks at most.
        self.now += 16;
        super::expire_all(database, self.now);
        let (after, found) = (self.count(), (database.len(), database.expiring()));
        assert!(
            (after.0..=before.0).contains(&found.0),
            "{before:?} {found:?} {after:?}"
        );
        assert!(
            (after.1..=before.1).contains(&found.1),
            "{before:?} {found:?} {after:?}"
        );
    }

    /// Keys that have not expired, and those of them with fields that expire.
    fn count(&mut self) -> (usize, usize) {
        for name in self.model.keys().cloned().collect::<Vec<_>>() {
            self.look_at(&name);
        }
        let expires =
            |(fields, _): &&(Fields, _)| fields.values().any(|(_, expiry)| expiry.is_some());
        (
            self.model.len(),
            self.model.values().filter(expires).count(),
        )
    }

    fn set(&mut self, database: &Database, name: &[u8], count: usize) {
        let key = database.key(name);
        let mut guard = database.lock(key.hash, self.now);
        if !guard.contains(key) {
            guard.write(key, empty(self.kind), |_, _| None);
        }
        let (model, _) = self.model.entry(name.to_vec()).or_default();
        for _ in 0..count {
            let number = self.random.u32(..self.fields);
            let field = format!("field:{number}").into_bytes();
            let value = match self.kind {
                Kind::Set => Vec::new(),
                _ => vec![self.random.u8(..); self.random.usize(..40)],
            };
            let item = item(self.kind, &field, &value);
            let put = guard.find(key).expect("it is there").set_item(&item);
            let before = model.insert(field, (value, None));
            assert_eq!(put == Put::Replaced, before.is_some());
        }
    }

    fn edit(&mut self, database: &Database) {
        let name = self.name();
        self.look_at(&name);
        let (field, value) = (self.field(), self.value());
        let expiry = self.field_expiry();
        let key = database.key(&name);
        let mut guard = database.lock(key.hash, self.now);
        let cell = Cell::of(&field);
        if self.kind == Kind::Hash
            && self.random.u8(..8) == 0
            && let Some((fields, _)) = self.model.get_mut(&name)
        {
            let mut entry = guard.find(key).expect("it is there");
            let is_there = fields
                .get_mut(&field)
                .map(|field| field.1 = expiry)
                .is_some();
            assert_eq!(entry.reschedule_field(cell, expiry), is_there);
            return;
        }
        if self.random.u8(..5) < 3 {
            if !guard.contains(key) {
                guard.write(key, empty(self.kind), |_, _| None);
            }
            let item = Item {
                expiry,
                ..item(self.kind, &field, &value)
            };
            let put = guard.find(key).expect("it is there").set_item(&item);
            let (fields, _) = self.model.entry(name).or_default();
            let before = fields.insert(field, (value, expiry));
            assert_eq!(put == Put::Replaced, before.is_some());
            return;
        }
        let Some(mut entry) = guard.find(key) else {
            assert!(!self.model.contains_key(&name));
            return;
        };
        let (model, _) = self.model.get_mut(&name).expect("in both");
        assert_eq!(entry.remove_item(cell), model.remove(&field).is_some());
        if model.is_empty() {
            entry.remove();
            self.model.remove(&name);
        }
    }

    fn look(&mut self, database: &Database) {
        let (name, field) = (self.name(), self.field());
        self.look_at(&name);
        let key = database.key(&name);
        let mut guard = database.lock(key.hash, self.now);
        let Some(entry) = guard.find(key) else {
            assert!(!self.model.contains_key(&name));
            return;
        };
        assert_eq!(entry.kind(), self.kind);
        let (model, expiry) = &self.model[&name];
        assert_eq!(entry.expiry(), *expiry);
        match self.kind {
            Kind::Set => compare(entry.set_members(), model, &field, &mut self.random),
            _ => compare(entry.hash_fields(), model, &field, &mut self.random),
        }
    }

    /// RENAME, COPY, DEL, PEXPIREAT.
    fn move_about(&mut self, database: &Database) {
        let (from, to) = (self.name(), self.name());
        self.look_at(&from);
        self.look_at(&to);
        let (from_key, to_key) = (database.key(&from), database.key(&to));
        let lock = |key: Key<'_>| database.lock(key.hash, self.now);
        match self.random.u8(..4) {
            0 => {
                let taken = lock(from_key).detach(from_key);
                assert_eq!(taken.is_some(), self.model.contains_key(&from));
                if let Some(mut taken) = taken {
                    lock(to_key).write(to_key, New::detached(&mut taken), |_, _| None);
                    let value = self.model.remove(&from).expect("in both");
                    self.model.insert(to, value);
                }
            }
            1 => {
                let copy = lock(from_key).find(from_key).map(|entry| entry.copy());
                if let Some(mut copy) = copy {
                    lock(to_key).write(to_key, New::detached(&mut copy), |_, _| None);
                    let value = self.model[&from].clone();
                    self.model.insert(to, value);
                }
            }
            2 => assert_eq!(
                lock(from_key).remove(from_key),
                self.model.remove(&from).is_some()
            ),
            _ => {
                let at = self
                    .random
                    .bool()
                    .then(|| self.now + self.random.i64(-5..300));
                if let Some(mut entry) = lock(from_key).find(from_key) {
                    entry.set_expiry(at);
                    self.model.get_mut(&from).expect("in both").1 = at;
                }
            }
        }
    }

    /// A string takes the place of a hash, and a hash that of a string.
    fn overwrite(&mut self, database: &Database) {
        let name = self.name();
        let key = database.key(&name);
        let mut guard = database.lock(key.hash, self.now);
        guard.set(key, b"a string", Expiry::Clear);
        assert_eq!(guard.find(key).expect("it is there").kind(), Kind::String);
        guard.remove(key);
        self.model.remove(&name);
    }

    fn verify(database: &Database) {
        for shard in database.shards() {
            let mut guard = database.lock_shard(shard, 0);
            while guard.pack(100) {}
            guard.verify();
        }
    }
}

/// Compares the items of a key with those it should have: a look-up, now and then all.
fn compare<K: Held>(
    items: ItemsRef<'_, K>,
    model: &Fields,
    field: &[u8],
    random: &mut fastrand::Rng,
) {
    let found = items.get(Cell::of(field));
    let found = found.map(|item| (item.value.map_or(Vec::new(), text), item.expiry));
    assert_eq!(found.as_ref(), model.get(field));
    assert_eq!(items.len(), model.len() as u64);
    if random.u8(..10) == 0 {
        assert_eq!(&fields(items), model);
        let rank = random.u64(..items.len());
        let at = items.at(rank).expect("it is below the count");
        assert_eq!(items.iter().nth(rank as usize), Some(at));
        assert!(items.at(items.len()).is_none());
    }
}

/// What a record of a snapshot has.
fn recorded<K: Held>(value: &RecordValue<'_>) -> Fields {
    match value {
        RecordValue::Inline(bytes) => fields(ItemsRef::<K>::of_run(bytes)),
        RecordValue::Tree(moment) => fields(moment.items::<K>()),
        other => panic!("{other:?} is no collection"),
    }
}

/// Reads a snapshot to its end, or a step of it; what it gave out is what was there at its beginning.
struct Reading {
    snapshot: Snapshot,
    expected: Model,
    found: Model,
    /// Records that were trees.
    trees: usize,
}

impl Reading {
    fn begin(keyspace: &Keyspace, bench: &Bench, turn: &mut Turn<'_>) -> Reading {
        let now = bench.now;
        let snapshot = turn.exclusive(|alone| keyspace.begin_snapshot(alone, now));
        let alive = bench
            .model
            .iter()
            .filter(|(_, (_, at))| at.is_none_or(|at| now <= at));
        Reading {
            snapshot: snapshot.expect("no other exists"),
            expected: alive
                .map(|(name, hash)| (name.clone(), hash.clone()))
                .collect(),
            found: Model::new(),
            trees: 0,
        }
    }

    /// Whether it is over.
    fn step(&mut self, turn: &Turn<'_>) -> bool {
        let mut records = Records::default();
        let is_over = self.snapshot.step(turn, &mut records).is_none();
        for record in records.iter() {
            self.trees += usize::from(matches!(record.value, RecordValue::Tree(_)));
            let hash = match record.of.kind {
                Kind::Set => recorded::<Members>(&record.value),
                _ => recorded::<collection::kind::Fields>(&record.value),
            };
            let before = self
                .found
                .insert(record.key.to_vec(), (hash, record.expiry));
            assert!(before.is_none(), "{:?} came twice", record.key);
        }
        if is_over {
            assert_eq!(self.found, self.expected);
        }
        is_over
    }
}

#[test]
fn random_edits_match_maps() {
    for kind in [Kind::Hash, Kind::Set] {
        random_edits_of(kind);
    }
}

fn random_edits_of(kind: Kind) {
    let sizes = [
        (64, 30, 60, 40),
        (64, 3, 400, 4000),
        (4096, 40, 100, 100),
        (4096, 4, 800, 3000),
    ];
    for (seed, (small_bytes, names, rounds, fields)) in sizes.into_iter().enumerate() {
        // Members are shorter than fields with values.
        let small_bytes = match kind {
            Kind::Set => (small_bytes / 8).max(64),
            _ => small_bytes,
        };
        let keyspace = keyspace(small_bytes);
        let mut turn = keyspace.turns().register();
        turn.enter();
        let mut bench = Bench {
            kind,
            random: fastrand::Rng::with_seed(seed as u64),
            now: 1_000_000,
            model: Model::new(),
            names,
            fields,
        };
        let mut reading: Option<Reading> = None;
        // Snapshots that were read to their end with trees in them.
        let mut read = 0;
        for round in 0..rounds {
            let database = keyspace.database(&turn, 0);
            for _ in 0..200 {
                match bench.random.u8(..100) {
                    0..=69 => bench.edit(database),
                    70..=93 => bench.look(database),
                    94 => {
                        let name = bench.name();
                        bench.look_at(&name);
                        let count = bench.random.usize(..fields as usize / 4 + 1).max(1);
                        bench.set(database, &name, count);
                    }
                    95 if names > 10 => bench.overwrite(database),
                    96 if bench.random.u8(..4) == 0 => bench.expire(database),
                    _ if bench.random.u8(..3) == 0 => bench.move_about(database),
                    _ => bench.now += 1,
                }
            }
            let is_over = match &mut reading {
                // Some are given up.
                Some(_) if bench.random.u8(..20) == 0 => true,
                Some(open) => {
                    let is_over = open.step(&turn);
                    read += usize::from(is_over && open.trees > 0);
                    is_over
                }
                None if round % 7 == 0 => {
                    reading = Some(Reading::begin(&keyspace, &bench, &mut turn));
                    false
                }
                None => false,
            };
            if is_over {
                reading = None;
            }
            if round % 50 == 0 {
                Bench::verify(keyspace.database(&turn, 0));
            }
        }
        drop(reading);
        assert!(read > 0, "no snapshot of trees was read to its end");
        Bench::verify(keyspace.database(&turn, 0));
        turn.leave();
    }
}

#[test]
fn the_form_goes_where_the_hash_goes() {
    let keyspace = keyspace(64);
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    for is_set_before in [true, false] {
        let key = database.key(b"h");
        let mut guard = database.lock(key.hash, 0);
        guard.write(key, New::bytes(&EMPTY_HASH).of(HASH), |_, _| None);
        let mut entry = guard.find(key).expect("it was written");
        let set = |entry: &mut EntryMut<'_, '_>, number: i64| {
            entry.set_item(&Item::pair(Cell::Int(number), Cell::Bytes(b"value")));
        };
        set(&mut entry, 0);
        assert_eq!(entry.value_type(), HASH);
        if is_set_before {
            entry.set_form(Form::Part);
        }
        (1..50).for_each(|number| set(&mut entry, number));
        assert!(entry.hash_fields().is_tree());
        if !is_set_before {
            assert_eq!(entry.value_type().form, Form::Whole);
            entry.set_form(Form::Part);
        }
        (0..49).for_each(|number| assert!(entry.remove_item(Cell::Int(number))));
        assert_eq!(entry.value_type().form, Form::Part);
        let mut taken = guard.detach(key).expect("it is there");
        guard.write(key, New::detached(&mut taken), |_, _| None);
        let entry = guard
            .find(key)
            .expect("it was written")
            .as_ref()
            .value_type();
        assert_eq!((entry.kind, entry.form), (Kind::Hash, Form::Part));
    }
}

#[test]
fn a_set_that_does_not_change_stays_a_run_when_the_limit_is_lowered() {
    let keyspace = keyspace(4096);
    let mut turn = keyspace.turns().register();
    turn.enter();
    let database = keyspace.database(&turn, 0);
    let key = database.key(b"s");
    let mut guard = database.lock(key.hash, 0);
    guard.write(key, empty(Kind::Set), |_, _| None);
    let mut entry = guard.find(key).expect("it was written");
    let set = |entry: &mut EntryMut<'_, '_>, number: i64| {
        entry.set_item(&Item::single(Cell::Int(number << 40)));
        entry.set_members().is_tree()
    };
    assert!((0..50).all(|number| !set(&mut entry, number)));
    keyspace.set_small_bytes(64);
    assert!((0..50).all(|number| !set(&mut entry, number)));
    assert!(set(&mut entry, 50));
}
