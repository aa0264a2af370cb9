//! Runs against vectors, and bytes that are no runs.

use super::*;
use crate::collection::cell::{self, Cell};

/// An item as the model has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plain {
    pub(super) name: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) expiry: Option<u64>,
}

impl Plain {
    pub(super) fn item(&self) -> Item<'_> {
        Item {
            name: Cell::of(&self.name),
            value: self.value.as_deref().map(Cell::of),
            expiry: self.expiry,
        }
    }

    fn of(item: Item<'_>) -> Plain {
        let text = |cell: Cell<'_>| cell.text(&mut [0; cell::DECIMAL_MAX]).to_vec();
        Plain {
            name: text(item.name),
            value: item.value.map(text),
            expiry: item.expiry,
        }
    }
}

/// A run in a buffer with some room, the rest of which is not zero.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    len: usize,
}

impl Buffer {
    pub(super) fn new(flags: u8) -> Buffer {
        Buffer {
            bytes: Run::empty(flags).to_vec(),
            len: Run::EMPTY,
        }
    }

    pub(super) fn run(&self) -> Run<'_> {
        Run::trusted(&self.bytes[..self.len])
    }

    pub(super) fn edit(&mut self, growth: isize, edit: impl FnOnce(&mut RunMut<'_>)) {
        let needed = self.len.checked_add_signed(growth).expect("not below zero");
        self.bytes.resize(self.bytes.len().max(needed), 0xee);
        let mut run = RunMut::new(&mut self.bytes, self.len);
        edit(&mut run);
        self.len = run.len();
        assert_eq!(self.len, needed);
    }

    pub(super) fn insert(&mut self, index: usize, item: &Item<'_>) {
        let growth = self.run().growth(item, None).expect("there is room");
        self.edit(growth, |run| run.insert(index, item));
    }

    fn replace(&mut self, index: usize, item: &Item<'_>) {
        let growth = self.run().growth(item, Some(index)).expect("there is room");
        self.edit(growth, |run| run.replace(index, item));
    }

    fn remove(&mut self, index: usize) {
        let mut run = RunMut::new(&mut self.bytes, self.len);
        run.remove(index);
        self.len = run.len();
    }

    fn remove_range(&mut self, from: usize, to: usize) {
        let mut run = RunMut::new(&mut self.bytes, self.len);
        run.remove_range(from, to);
        self.len = run.len();
    }
}

pub(super) fn random_text(random: &mut fastrand::Rng) -> Vec<u8> {
    match random.u8(..20) {
        0..8 => random.i64(-300..300).to_string().into_bytes(),
        8 => random.i64(..).to_string().into_bytes(),
        9 => vec![b'x'; random.usize(100..400)],
        _ => (0..random.usize(..18))
            .map(|_| random.alphanumeric() as u8)
            .collect(),
    }
}

pub(super) fn compare(run: Run<'_>, model: &[Plain]) {
    let checked = Run::check(run.bytes()).expect("an edit leaves a run");
    assert!(checked.iter().map(Plain::of).eq(model.iter().cloned()));
    assert_eq!(run.count(), model.len());
    let earliest = model.iter().filter_map(|plain| plain.expiry).min();
    assert_eq!(run.earliest(), earliest);
}

#[test]
fn a_run_is_like_a_vector() {
    let flavours = [0, TAGGED, PAIRS, TAGGED | PAIRS];
    for flags in flavours.into_iter().flat_map(|flags| [flags, flags | BARE]) {
        let mut random = fastrand::Rng::with_seed(u64::from(flags));
        let mut buffer = Buffer::new(flags);
        let mut model: Vec<Plain> = Vec::new();
        for step in 0..6_000 {
            let most = [3, 20, 90][step / 500 % 3];
            let plain = Plain {
                name: random_text(&mut random),
                value: (flags & PAIRS != 0).then(|| random_text(&mut random)),
                expiry: (step > 3_000 && random.u8(..9) == 0).then(|| random.u64(..1 << 48)),
            };
            let found = model.iter().position(|other| other.name == plain.name);
            assert_eq!(buffer.run().find(plain.item().name), found);
            if model.len() > most || !model.is_empty() && random.u8(..5) < 2 {
                let index = random.usize(..model.len());
                buffer.remove(index);
                model.remove(index);
            } else if let (Some(index), true) = (found, flags & TAGGED != 0) {
                buffer.replace(index, &plain.item());
                model[index] = plain;
            } else {
                let index = match random.bool() {
                    true => model.len(),
                    false => random.usize(..=model.len()),
                };
                buffer.insert(index, &plain.item());
                model.insert(index, plain);
            }
            if !model.is_empty() && random.bool() {
                let index = random.usize(..model.len());
                model[index].value = (flags & PAIRS != 0).then(|| random_text(&mut random));
                buffer.replace(index, &model[index].item());
            }
            if random.u8(..12) == 0 {
                let from = random.usize(..=model.len());
                let to = (from + random.usize(..20)).min(model.len());
                buffer.remove_range(from, to);
                model.drain(from..to);
            }
            if random.u8(..50) == 0 {
                let now = random.u64(..1 << 48);
                let mut run = RunMut::new(&mut buffer.bytes, buffer.len);
                let mut gone = Vec::new();
                let removed = run.remove_due(now, &mut |item| gone.push(Plain::of(*item)));
                buffer.len = run.len();
                let is_due = |plain: &Plain| plain.expiry.is_some_and(|at| now > at);
                let due: Vec<_> = model
                    .iter()
                    .filter(|plain| is_due(plain))
                    .cloned()
                    .collect();
                assert_eq!((removed, gone), (due.len(), due));
                model.retain(|plain| !is_due(plain));
                let expires = model.iter().any(|plain| plain.expiry.is_some());
                assert_eq!(buffer.run().flags() & EXPIRING != 0, expires);
            }
            compare(buffer.run(), &model);
            let index = random.usize(..=model.len());
            assert_eq!(
                buffer.run().get(index).map(Plain::of),
                model.get(index).cloned()
            );
            assert!(
                buffer
                    .run()
                    .range(index)
                    .map(Plain::of)
                    .eq(model[index..].iter().cloned())
            );
        }
    }
}

/// A run of integers has what a set of them has, ascending, whatever their range, also when a text comes
/// among them.
#[test]
fn integers_are_kept_in_order() {
    let mut random = fastrand::Rng::with_seed(5);
    let (mut of_integers, mut of_cells) = (0, 0);
    for round in 0..400 {
        let mut buffer = Buffer::new(TAGGED | BARE);
        let mut model = std::collections::BTreeSet::new();
        let bits = random.u32(1..=64);
        let middle = random.i64(..);
        for step in 0..random.usize(20..300) {
            let far = random.i64(..) >> (64 - bits);
            let integer = middle.wrapping_add(far);
            let item = Item::single(Cell::Int(integer));
            let found = buffer.run().find(item.name);
            assert_eq!(found.is_some(), model.contains(&integer));
            match found {
                Some(index) if random.bool() => {
                    buffer.remove(index);
                    model.remove(&integer);
                }
                Some(index) => buffer.replace(index, &item),
                None => {
                    let count = buffer.run().count();
                    buffer.insert(count, &item);
                    model.insert(integer);
                }
            }
            let run = Run::check(&buffer.bytes[..buffer.len]).expect("an edit leaves a run");
            let found = run.iter().map(|item| item.name);
            let wanted = model.iter().map(|&integer| Cell::Int(integer));
            assert_eq!(run.count(), model.len());
            if !run.is_of_integers() {
                assert!(run.count() <= 16, "{round}, {step}");
                continue;
            }
            assert!(found.eq(wanted.clone()));
            let mut cells = Vec::new();
            run.cells(|cell, is_name| cells.push((cell, is_name)));
            assert!(cells.into_iter().eq(wanted.map(|cell| (cell, true))));
            let absent = middle.wrapping_add(random.i64(..) >> (64 - bits));
            assert_eq!(
                run.find(Cell::Int(absent)).is_some(),
                model.contains(&absent)
            );
            assert_eq!(run.find(Cell::Bytes(b"text")), None);
        }
        let text = Item::single(Cell::Bytes(b"text"));
        if buffer.run().is_of_integers() && buffer.run().growth(&text, None).is_some() {
            of_integers += 1;
            let count = buffer.run().count();
            buffer.insert(count, &text);
            let run = Run::check(&buffer.bytes[..buffer.len]).expect("it is one still");
            let wanted = model.iter().map(|&integer| Cell::Int(integer));
            let found = run.iter().map(|item| item.name);
            assert!(found.eq(wanted.chain([text.name])));
            assert!(!run.is_of_integers());
        } else {
            of_cells += 1;
        }
    }
    assert!(
        of_integers > 100 && of_cells > 0,
        "{of_integers} {of_cells}"
    );
}

/// 100 integers of 32 bits: no more than 3 bytes each beyond their own 4, with a key of 16 bytes.
#[test]
fn a_run_of_integers_is_small() {
    let mut buffer = Buffer::new(TAGGED | BARE);
    for index in 0..100_u32 {
        let integer = i64::from(index.wrapping_mul(2_654_435_761));
        buffer.insert(index as usize, &Item::single(Cell::Int(integer)));
    }
    let entry = crate::heap::class_size(8 + 16 + buffer.len);
    assert!(entry - 16 <= 700, "{entry}");
    println!("{} bytes, {entry} as an entry", buffer.len);
}

#[test]
fn bytes_that_are_no_run_of_integers() {
    let mut buffer = Buffer::new(TAGGED | BARE);
    for index in 0..17 {
        buffer.insert(index, &Item::single(Cell::Int(index as i64 * 100 - 50)));
    }
    let good = buffer.run().bytes().to_vec();
    assert_eq!(
        (good[2], good[3], good.len()),
        (TAGGED | INTEGERS, 2, 12 + 17 * 2)
    );
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        Run::check(&bytes).map(|run| run.count())
    };
    assert_eq!(changed(0, 16), Err(Damage::Length));
    for flags in [
        INTEGERS,
        INTEGERS | TAGGED | PAIRS,
        INTEGERS | TAGGED | BARE,
    ] {
        assert_eq!(changed(2, flags), Err(Damage::Flags));
    }
    assert_eq!(changed(2, INTEGERS | TAGGED | EXPIRING), Err(Damage::Flags));
    assert_eq!(changed(3, 0), Err(Damage::Flags));
    assert_eq!(changed(3, 9), Err(Damage::Flags));
    assert_eq!(changed(3, 1), Err(Damage::Length));
    // The second is what the first is; then less.
    assert_eq!(changed(14, 0), Err(Damage::Twice));
    assert_eq!(changed(12, 101), Err(Damage::Twice));
    // The base is the highest integer there is.
    let mut bytes = good.clone();
    bytes[4..12].copy_from_slice(&i64::MAX.to_le_bytes());
    assert_eq!(Run::check(&bytes).map(|_| ()), Err(Damage::Twice));
    for cut in 0..good.len() {
        assert!(Run::check(&good[..cut]).is_err());
    }
    let mut empty = buffer;
    (0..17).for_each(|_| empty.remove(0));
    assert_eq!(Run::check(empty.run().bytes()).map(Run::count), Ok(0));
    empty.insert(0, &Item::single(Cell::Int(i64::MIN)));
    empty.insert(1, &Item::single(Cell::Int(i64::MAX)));
    assert_eq!(Run::check(empty.run().bytes()).map(Run::count), Ok(2));
}

#[test]
fn one_run_behind_another() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..200 {
        let flags = PAIRS | random.choice([0, TAGGED]).expect("two");
        let mut runs =
            [(); 2].map(|()| Buffer::new(flags | random.choice([0, BARE]).expect("two")));
        let mut model = Vec::new();
        let mut number = 0;
        for buffer in &mut runs {
            for index in 0..random.usize(..30) {
                number += 1;
                let plain = Plain {
                    name: format!("{number}{}", random.alphabetic()).into_bytes(),
                    value: Some(random_text(&mut random)),
                    expiry: None,
                };
                buffer.insert(index, &plain.item());
                model.push(plain);
            }
        }
        let [mut first, second] = runs;
        first.bytes.resize(first.len + second.len + 100, 0);
        let mut run = RunMut::new(&mut first.bytes, first.len);
        run.append(second.run());
        compare(run.run(), &model);
    }
}

#[test]
fn a_run_in_two() {
    let mut random = fastrand::Rng::with_seed(8);
    for flags in [0, TAGGED | PAIRS, BARE, TAGGED | PAIRS | BARE] {
        for count in 0..40 {
            let mut first = Buffer::new(flags);
            let mut model = Vec::new();
            for index in 0..count {
                let name = format!("{index}{}", random.alphabetic()).into_bytes();
                let value = (flags & PAIRS != 0).then(|| random_text(&mut random));
                let plain = Plain {
                    name,
                    value,
                    expiry: None,
                };
                first.insert(index, &plain.item());
                model.push(plain);
            }
            let at = random.usize(..=count);
            let mut second = Buffer::new(flags);
            second.bytes.resize(first.len + 60, 0);
            let mut run = RunMut::new(&mut first.bytes, first.len);
            let mut into = RunMut::new(&mut second.bytes, second.len);
            run.split_off(at, &mut into);
            compare(run.run(), &model[..at]);
            compare(into.run(), &model[at..]);
        }
    }
}

#[test]
fn bounds_of_a_run() {
    let long = vec![b'x'; 70_000];
    let mut buffer = Buffer::new(PAIRS | TAGGED);
    for name in 0..8 {
        buffer.insert(
            name,
            &Item::pair(Cell::Int(name as i64), Cell::Bytes(&long)),
        );
    }
    Run::check(buffer.run().bytes()).expect("eight items may be long");
    let one = Item::pair(Cell::Int(8), Cell::Int(0));
    assert_eq!(buffer.run().growth(&one, None), None);
    for index in 0..8 {
        let short = Item::pair(Cell::Int(index as i64), Cell::Int(0));
        buffer.replace(index, &short);
    }
    buffer.insert(8, &one);
    let longer = Item::pair(Cell::Int(3), Cell::Bytes(&long));
    assert_eq!(buffer.run().growth(&longer, Some(3)), None);

    let mut buffer = Buffer::new(0);
    for index in 0..usize::from(u16::MAX) {
        buffer.insert(index, &Item::single(Cell::Int(0)));
    }
    assert_eq!(buffer.run().growth(&Item::single(Cell::Int(0)), None), None);
    Run::check(buffer.run().bytes()).expect("it is full, no more");
}

/// Ten fields take no more than 6 bytes a field beyond their own: names and values of 12 to 16 bytes.
#[test]
fn a_run_of_ten_is_small() {
    let mut random = fastrand::Rng::with_seed(3);
    let (mut own, mut taken) = (0, 0);
    for _ in 0..1_000 {
        let mut buffer = Buffer::new(PAIRS | TAGGED | BARE);
        for index in 0..10 {
            let mut text = || format!("{:0>1$}", random.u64(..1 << 36), random.usize(12..=16));
            let (name, value) = (text() + "f", text() + "v");
            own += name.len() + value.len();
            buffer.insert(
                index,
                &Item::pair(Cell::of(name.as_bytes()), Cell::of(value.as_bytes())),
            );
        }
        // As an entry with a key of 16 bytes and nothing more takes it.
        let entry = crate::heap::class_size(8 + 16 + buffer.len);
        taken += entry - (8 + 16);
    }
    let each = (taken - own) as f64 / 10_000.0;
    assert!(each <= 6.0, "{each}");
    println!("{each:.2} bytes a field");
}

#[test]
fn bytes_that_are_no_run() {
    let mut buffer = Buffer::new(PAIRS | TAGGED);
    for index in 0..9 {
        let item = Item {
            expiry: (index == 4).then_some(7),
            ..Item::pair(Cell::Int(index), Cell::Bytes(b"v"))
        };
        buffer.insert(index as usize, &item);
    }
    let good = buffer.run().bytes().to_vec();
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        Run::check(&bytes).map(|run| run.count())
    };
    assert_eq!(changed(0, 8), Err(Damage::Tag));
    assert_eq!(changed(0, 10), Err(Damage::Item));
    assert_eq!(changed(1, 1), Err(Damage::Length));
    assert_eq!(changed(2, TAGGED | EXPIRING), Err(Damage::Tag));
    assert_eq!(changed(2, PAIRS | TAGGED), Err(Damage::Expiry));
    assert_eq!(changed(2, 0xff), Err(Damage::Flags));
    assert_eq!(changed(3, 1), Err(Damage::Flags));
    assert_eq!(changed(4, good[4] ^ 1), Err(Damage::Tag));
    assert_eq!(changed(4 + 10 + 7, 1), Err(Damage::Tag));
    assert_eq!(changed(4 + 10 + 8, good[22] + 1), Err(Damage::Offset));
    let name = 4 + 20 + 3;
    assert_eq!(good[name], 0xcb);
    let mut bytes = good.clone();
    (bytes[name], bytes[5]) = (0xca, bytes[4]);
    assert_eq!(
        Run::check(&bytes).map(|run| run.count()),
        Err(Damage::Twice)
    );
    for cut in 0..good.len() {
        assert!(Run::check(&good[..cut]).is_err());
    }
    assert!(Run::check(&[&good[..], b"x"].concat()).is_err());
}

/// What is accepted can be read and edited to its end.
#[test]
fn changed_bytes_never_panic() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut buffer = Buffer::new(random.u8(..4) | random.choice([0, BARE]).expect("two"));
        let is_pair = buffer.run().flags() & PAIRS != 0;
        for index in 0..random.usize(..20) {
            let value = is_pair.then_some(Cell::Bytes(b"value"));
            buffer.insert(
                index,
                &Item {
                    name: Cell::Int(index as i64 * 7),
                    value,
                    expiry: None,
                },
            );
        }
        buffer.bytes.truncate(buffer.len);
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..buffer.len);
            buffer.bytes[at] = random.u8(..);
        }
        let Ok(run) = Run::check(&buffer.bytes) else {
            continue;
        };
        accepted += 1;
        let model: Vec<_> = run.iter().map(Plain::of).collect();
        compare(run, &model);
        while !buffer.run().is_empty() {
            buffer.remove(random.usize(..buffer.run().count()));
            Run::check(buffer.run().bytes()).expect("still a run");
        }
    }
    assert!(accepted > 1_000, "{accepted}");
}
