//! Values of every kind, written in every way, under all that happens to values: each stays what it was
//! written as.

use std::collections::HashMap;
use std::num::NonZeroU64;

use crate::entry::Kind;
use crate::{
    Access, COLD_MIN_BYTES, Database, EntryRef, Expiry, Form, Guard, INLINE_VALUE_MAX, Key,
    Keyspace, LargeValue, LogAddress, New, Offloading, Options, Overwritten, Records, Turn, Type,
};

const LENGTHS: [usize; 10] = [
    0,
    7,
    16,
    63,
    64,
    200,
    3000,
    INLINE_VALUE_MAX,
    INLINE_VALUE_MAX + 1,
    50_000,
];

fn keyspace(shards: usize, access: Access) -> Keyspace {
    let keyspace = Keyspace::new(&Options {
        databases: 1,
        workers: 1,
        shards,
        seed: 9,
        ticks: || 0,
        charge: |_| (),
    });
    keyspace.set_access(access, 10, 1);
    keyspace.set_logged(true);
    keyspace
}

/// What may have any bytes for a value: a hash may not.
const KINDS: [Kind; 5] = [
    Kind::String,
    Kind::List,
    Kind::Set,
    Kind::SortedSet,
    Kind::Stream,
];

/// A key's value.
#[derive(Clone, Debug, PartialEq)]
struct Value {
    of: Type,
    bytes: Vec<u8>,
    expiry: Option<i64>,
}

/// What the keyspace should hold, and a log: what each record ever written says.
struct Model {
    random: fastrand::Rng,
    now: i64,
    keys: HashMap<Vec<u8>, Value>,
    log: Vec<Value>,
}

/// The address of the record with this number, and the number again.
fn address(number: usize) -> LogAddress {
    LogAddress(NonZeroU64::new(number as u64 + 1000).expect("it is more than 0"))
}

fn number(address: LogAddress) -> usize {
    usize::try_from(address.0.get() - 1000).expect("it was given out")
}

impl Model {
    fn name(&mut self) -> Vec<u8> {
        format!("key:{}", self.random.usize(..200)).into_bytes()
    }

    fn some_type(&mut self) -> Type {
        let forms = [Form::Whole, Form::Decimal, Form::Part];
        Type {
            kind: KINDS[self.random.usize(..KINDS.len())],
            form: forms[self.random.usize(..forms.len())],
        }
    }

    fn some_bytes(&mut self) -> Vec<u8> {
        let len = LENGTHS[self.random.usize(..LENGTHS.len())];
        vec![self.random.u8(..); len]
    }

    /// Forgets a key whose time has come.
    fn look_at(&mut self, name: &[u8]) -> Option<Value> {
        let value = self.keys.get(name)?;
        if value.expiry.is_some_and(|at| self.now > at) {
            self.keys.remove(name);
            return None;
        }
        Some(value.clone())
    }

    /// The function that logs a value. It makes sure that the entry it is shown is that value.
    fn logs(
        &mut self,
        value: &Value,
    ) -> impl FnOnce(EntryRef<'_>, Option<Overwritten>) -> Option<LogAddress> + use<> {
        let (number, value) = (self.log.len(), value.clone());
        self.log.push(value.clone());
        move |entry, _| {
            assert_eq!(
                (entry.value_type(), entry.expiry()),
                (value.of, value.expiry)
            );
            match entry.cold() {
                None => assert_eq!(entry.value().bytes(), value.bytes),
                Some(cold) => assert_eq!(cold.len, value.bytes.len() as u64),
            }
            Some(address(number))
        }
    }

    /// Gives a key a new value in one of the ways there are.
    fn write(&mut self, guard: &mut Guard<'_>, key: Key<'_>) {
        let old = self.look_at(key.bytes).and_then(|value| value.expiry);
        let (of, bytes) = (self.some_type(), self.some_bytes());
        let expiry = match self.random.u8(..3) {
            0 => Expiry::Clear,
            1 => Expiry::Keep,
            _ => Expiry::At(self.now + self.random.i64(0..300)),
        };
        let value = Value {
            of,
            bytes: bytes.clone(),
            expiry: match expiry {
                Expiry::Clear => None,
                Expiry::Keep => old,
                Expiry::At(at) => Some(at),
            },
        };
        let log = self.logs(&value);
        let large = LargeValue::new(bytes.clone().into());
        let new = match self.random.u8(..3) {
            0 if bytes.len() >= COLD_MIN_BYTES => New::cold(bytes.len() as u64),
            1 => New::large(&large),
            _ => New::bytes(&bytes),
        };
        let new = new.of(of).expiry(expiry);
        let new = match self.random.bool() {
            false => new,
            true => new.used(self.now - 7000),
        };
        guard.write(key, new, log);
        self.keys.insert(key.bytes.to_vec(), value);
    }

    /// Brings a value back from the log.
    fn warm(&self, guard: &mut Guard<'_>, key: Key<'_>) {
        let entry = guard.find(key).expect("it is there");
        if let Some(cold) = entry.cold() {
            let bytes = &self.log[number(cold.address)].bytes;
            assert!(entry.warm_copy(cold.address, bytes));
        }
    }

    /// Makes a value shorter or longer: what it is stays, and it counts as written in part.
    fn resize(&mut self, guard: &mut Guard<'_>, key: Key<'_>) {
        let Some(mut value) = self.look_at(key.bytes) else {
            return;
        };
        self.warm(guard, key);
        let len = LENGTHS[self.random.usize(..LENGTHS.len())];
        let mut entry = guard.find(key).expect("it is there");
        value.bytes.resize(len, 0);
        value.of.form = Form::Part;
        assert_eq!(entry.resize_value(len, Form::Part), value.bytes);
        entry.set_log_address(address(self.log.len()));
        self.log.push(value.clone());
        self.keys.insert(key.bytes.to_vec(), value);
    }

    /// Copies or moves a value to another key.
    fn transfer(&mut self, database: &Database, key: Key<'_>) {
        let Some(value) = self.look_at(key.bytes) else {
            return;
        };
        let mut guard = database.lock(key.hash, self.now);
        let mut taken = if self.random.bool() {
            self.keys.remove(key.bytes);
            guard.detach(key).expect("it is there")
        } else {
            guard.find(key).expect("it is there").copy()
        };
        drop(guard);
        assert_eq!(
            (taken.value_type(), taken.expiry()),
            (value.of, value.expiry)
        );
        let target = self.name();
        let key = database.key(&target);
        let log = self.logs(&value);
        let mut guard = database.lock(key.hash, self.now);
        guard.write(key, New::detached(&mut taken), log);
        self.keys.insert(target, value);
    }

    /// One thing that happens to a key, or to the values of its shard.
    fn step(&mut self, database: &Database) {
        let name = self.name();
        let key = database.key(&name);
        let action = self.random.u8(..13);
        if action == 5 {
            return self.transfer(database, key);
        }
        let mut guard = database.lock(key.hash, self.now);
        match action {
            0..3 => self.write(&mut guard, key),
            3 => {
                // What strings alone know makes a string of anything.
                guard.write(key, New::bytes(b"text"), |entry, _| {
                    assert_eq!(entry.value_type(), Type::STRING);
                    Some(address(self.log.len()))
                });
                let (of, bytes) = (Type::STRING, b"text".to_vec());
                let value = Value {
                    of,
                    bytes,
                    expiry: None,
                };
                self.log.push(value.clone());
                self.keys.insert(name, value);
            }
            4 => self.resize(&mut guard, key),
            6 => {
                if self.look_at(&name).is_some() {
                    let at = self
                        .random
                        .bool()
                        .then(|| self.now + self.random.i64(0..300));
                    guard.find(key).expect("in both").set_expiry(at);
                    self.keys.get_mut(&name).expect("in both").expiry = at;
                }
            }
            7 => drop(guard.offload(self.random.usize(..20), |_, _| Offloading::Goes)),
            8 => {
                if self.look_at(&name).is_some() {
                    self.warm(&mut guard, key);
                }
            }
            9 => {
                while guard.pack(20) {}
                guard.maintain();
            }
            10 => assert_eq!(guard.remove(key), {
                let was_there = self.look_at(&name).is_some();
                self.keys.remove(&name);
                was_there
            }),
            _ => {
                let expected = self.look_at(&name);
                let found = guard.find(key).map(|mut entry| {
                    entry.touch();
                    self.seen(entry.as_ref())
                });
                assert_eq!(found, expected);
            }
        }
    }

    /// What an entry shows, with the bytes that its record has if it is in the log alone.
    fn seen(&self, entry: EntryRef<'_>) -> Value {
        Value {
            of: entry.value_type(),
            bytes: match entry.cold() {
                None => entry.value().bytes().to_vec(),
                Some(cold) => self.log[number(cold.address)].bytes.clone(),
            },
            expiry: entry.expiry(),
        }
    }

    fn alive(&self) -> HashMap<Vec<u8>, Value> {
        let mut alive = self.keys.clone();
        alive.retain(|_, value| value.expiry.is_none_or(|at| self.now <= at));
        alive
    }
}

/// Reads a snapshot while everything changes: it holds what was there when it began.
fn snapshot(keyspace: &Keyspace, turn: &mut Turn<'_>, model: &mut Model) {
    let snapshot = turn.exclusive(|alone| keyspace.begin_snapshot(alone, model.now));
    let mut snapshot = snapshot.expect("there is no other");
    let (expected, mut found) = (model.alive(), HashMap::new());
    let mut records = Records::default();
    loop {
        // Before the first step all is owed, so that those who change things copy some.
        for _ in 0..model.random.usize(..100) {
            model.step(keyspace.database(turn, 0));
        }
        if snapshot.step(turn, &mut records).is_none() {
            break;
        }
        for record in records.iter() {
            let bytes = match record.value.bytes() {
                Ok(bytes) => bytes.to_vec(),
                Err(cold) => model.log[number(cold.address)].bytes.clone(),
            };
            let (of, expiry) = (record.of, record.expiry);
            let before = found.insert(record.key.to_vec(), Value { of, bytes, expiry });
            assert!(before.is_none(), "a key comes once");
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn a_value_stays_what_it_was_written_as_whatever_happens_to_it() {
    for (seed, shards, access) in [
        (1, 1, Access::Heat),
        (2, 4, Access::Clock),
        (3, 1, Access::Frequency),
    ] {
        let keyspace = keyspace(shards, access);
        let mut turn = keyspace.turns().register();
        turn.enter();
        let mut model = Model {
            random: fastrand::Rng::with_seed(seed),
            now: 1_000_000,
            keys: HashMap::new(),
            log: Vec::new(),
        };
        for round in 0..40 {
            for _ in 0..400 {
                model.step(keyspace.database(&turn, 0));
                model.now += i64::from(model.random.u8(..20) == 0);
            }
            if round % 4 == 0 {
                snapshot(&keyspace, &mut turn, &mut model);
            }
            let database = keyspace.database(&turn, 0);
            let mut found = HashMap::new();
            database.for_each(model.now, |entry| {
                found.insert(entry.key().to_vec(), model.seen(entry));
            });
            assert_eq!(found, model.alive());
            let kinds = found.values().map(|value| value.of.kind as u8);
            assert_eq!(
                kinds.collect::<std::collections::BTreeSet<u8>>().len(),
                KINDS.len()
            );
            for shard in database.shards() {
                database.lock_shard(shard, model.now).verify();
            }
        }
        assert!(shards > 1 || keyspace.database(&turn, 0).cold().0 > 0);
        turn.leave();
    }
}

#[test]
fn what_is_loaded_counts_as_used_when_it_says_however_often_it_is_there() {
    // In memory where it stands, elsewhere, and not in memory.
    let news: [fn() -> New<'static>; 3] = [
        || New::bytes(b"short"),
        || New::bytes(&[b'v'; 500]),
        || New::cold(200),
    ];
    let used = 1_700_000_000_000;
    for access in [Access::Clock, Access::Heat, Access::Frequency] {
        for (one, other) in (0..9).map(|at| (news[at / 3], news[at % 3])) {
            let keyspace = keyspace(1, access);
            let mut turn = keyspace.turns().register();
            turn.enter();
            let database = keyspace.database(&turn, 0);
            let key = database.key(b"key");
            // Whoever loads is at a time before everything.
            let mut guard = database.lock(key.hash, i64::MIN);
            for (number, new) in [one, other, one].into_iter().enumerate() {
                let new = new().used(used + number as i64 * 1000);
                guard.write(key, new, |_, _| Some(address(number)));
            }
            drop(guard);
            let mut guard = database.lock(key.hash, used + 60_000);
            let entry = guard.find(key).expect("it was loaded");
            match access {
                // One minute has passed since it was new.
                Access::Frequency => assert_eq!(entry.frequency(), 4),
                Access::Clock | Access::Heat => assert_eq!(entry.idle_seconds(), 58),
            }
        }
    }
}
