//! Deques against vectors; an item of a run that changes its place.

use super::tests::{Buffer, Plain, compare, random_text};
use super::*;
use crate::collection::cell::Cell;
use crate::collection::kind::{Edge, Elements, LeafKind};

/// An item gets any other place, with a value as long or another.
#[test]
fn an_item_changes_its_place() {
    for flags in [PAIRS, PAIRS | BARE] {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..if cfg!(miri) { 10 } else { 2_000 } {
            let most = if flags & BARE != 0 { 16 } else { 60 };
            let (mut buffer, mut model) = (Buffer::new(flags), Vec::<Plain>::new());
            for _ in 0..random.usize(1..=most) {
                let plain = Plain {
                    name: random_text(&mut random),
                    value: Some(random.u64(100..120).to_string().into_bytes()),
                    expiry: None,
                };
                buffer.insert(model.len(), &plain.item());
                model.push(plain);
            }
            for _ in 0..20 {
                let (index, to) = (random.usize(..model.len()), random.usize(..=model.len()));
                let mut plain = model.remove(index);
                plain.value = Some(random.u64(110..140).to_string().into_bytes());
                let growth = buffer.run().growth(&plain.item(), Some(index));
                let growth = growth.expect("there is room");
                buffer.edit(growth, |run| run.replace_and_move(index, to, &plain.item()));
                model.insert(if to > index { to - 1 } else { to }, plain);
                compare(buffer.run(), &model);
            }
        }
    }
}

/// A deque in a buffer with some room, and what it should be.
struct Deque {
    bytes: Vec<u8>,
    len: usize,
    first: u64,
    model: Vec<Plain>,
}

impl Deque {
    fn new(first: u64) -> Deque {
        let mut bytes = Run::empty(NUMBERED | DEQUE).to_vec();
        let len = Run::empty_len(NUMBERED);
        bytes.resize(len, 0);
        RunMut::new(&mut bytes, len).set_number(first);
        let model = Vec::new();
        Deque {
            bytes,
            len,
            first,
            model,
        }
    }

    fn edit(&mut self, edit: impl FnOnce(&mut RunMut<'_>)) {
        let mut run = RunMut::new(&mut self.bytes, self.len);
        edit(&mut run);
        self.len = run.len();
    }

    fn run(&self) -> Run<'_> {
        Run::trusted(&self.bytes[..self.len])
    }

    fn push(&mut self, is_front: bool, plain: Plain) {
        let count = self.model.len();
        let (end, at) = match is_front {
            true => (End::Front, 0),
            false => (End::Back, count),
        };
        self.edit(|run| run.push(end, &plain.item()));
        self.first -= u64::from(is_front && count > 0);
        self.model.insert(at, plain);
    }

    /// What lists seldom do.
    fn edit_somewhere(&mut self, kind: u8, plain: Plain, random: &mut fastrand::Rng) {
        let count = self.model.len();
        let at = random.usize(..=count);
        match kind {
            0 if count > 0 => {
                self.edit(|run| run.replace(at % count, &plain.item()));
                self.model[at % count] = plain;
            }
            1 => {
                self.edit(|run| run.insert(at, &plain.item()));
                self.first -= u64::from(at == 0 && count > 0);
                self.model.insert(at, plain);
            }
            2 => {
                let to = (at + random.usize(..3)).min(count);
                self.edit(|run| run.remove_range(at, to));
                self.first += if at == 0 && to < count { to as u64 } else { 0 };
                self.model.drain(at..to);
            }
            3 => {
                self.first = random.u64(1 << 32..1 << 33);
                let first = self.first;
                self.edit(|run| run.set_number(first));
            }
            _ => {
                self.edit(|run| run.truncate(at));
                self.model.truncate(at);
            }
        }
    }

    fn pop(&mut self, is_front: bool) {
        let at = if is_front { 0 } else { self.model.len() - 1 };
        self.edit(|run| run.remove(at));
        self.first += u64::from(is_front);
        self.model.remove(at);
    }

    fn compare(&mut self) {
        let run = self.run();
        compare(run, &self.model);
        // Of none the number says nothing.
        let first = match self.model.is_empty() {
            true => run.number(),
            false => self.first,
        };
        assert_eq!(run.number(), first);
        for (index, plain) in self.model.iter().enumerate() {
            assert_eq!(run.get(index), Some(plain.item()));
        }
        let mut buffer = Vec::new();
        let logged = run.logged(&mut buffer);
        compare(logged, &self.model);
        assert_eq!((logged.flags(), logged.number()), (NUMBERED, first));
        assert!(run.filled() <= logged.len_in_leaf(run.flags()));
        self.first = first;
    }
}

/// In every buffer that is long enough, and with every number that comes first.
#[test]
fn a_deque_is_like_a_vector() {
    let steps = if cfg!(miri) { 300 } else { 20_000 };
    for seed in 0..8 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut deque = Deque::new(random.u64(1 << 32..1 << 33));
        for step in 0..steps {
            let plain = Plain {
                name: random_text(&mut random),
                value: None,
                expiry: None,
            };
            let (count, kind) = (deque.model.len(), random.u8(..120));
            let grows = random.u8(..10) < if step / 500 % 2 == 0 { 7 } else { 3 };
            // At times there is more room than is needed; what is replaced moves what is behind it.
            let needed = match kind {
                0 => deque.len + plain.item().size(),
                _ => deque.run().filled_with(&plain.item()).max(deque.len),
            };
            let room = deque.bytes.len().max(needed + random.usize(..3) * 20);
            deque.bytes.resize(room, 0xee);
            match kind {
                0..5 => deque.edit_somewhere(kind, plain, &mut random),
                _ if grows && count < 90 => deque.push(random.bool(), plain),
                _ if count > 0 => deque.pop(random.bool()),
                _ => {}
            }
            deque.compare();
            if random.u8(..50) == 0 {
                // It may have less room.
                deque.bytes.truncate(deque.len);
            }
        }
    }
}

/// A log has none: what it has is a run that is numbered. Changed bytes are refused, or are a deque.
#[test]
fn a_log_has_no_deques() {
    let mut deque = Deque::new(77);
    for number in 0..30u8 {
        deque.bytes.resize(deque.len + 24, 0xee);
        let plain = Plain {
            name: vec![b'a' + number % 20; 20],
            value: None,
            expiry: None,
        };
        deque.push(number.is_multiple_of(3), plain);
    }
    let check = |bytes: &[u8]| {
        let run = Elements.check_leaf(bytes, &Edge::default(), None);
        run.map(|run| run.count())
    };
    assert_eq!(check(deque.run().bytes()), Err(Damage::Kind));
    let mut buffer = Vec::new();
    assert_eq!(check(deque.run().logged(&mut buffer).bytes()), Ok(30));
    let bytes = deque.run().bytes().to_vec();
    for at in 0..bytes.len() {
        for change in [1, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            if let Ok(run) = Run::check(&changed) {
                assert_eq!(run.iter().count(), run.count());
            }
        }
        assert!(Run::check(&bytes[..at]).is_err());
    }
}

/// Pushes at one end move the others seldom: the bytes of a leaf are found where they were.
#[test]
fn pushes_move_no_others() {
    for end in [End::Front, End::Back] {
        let mut bytes = vec![0; 2016];
        bytes[..Run::EMPTY].copy_from_slice(&Run::empty(NUMBERED | DEQUE));
        let mut run = RunMut::new(&mut bytes, Run::empty_len(NUMBERED));
        run.set_number(1 << 40);
        let item = Item::single(Cell::Bytes(b"0123456789abcdef"));
        let (mut moves, mut place) = (0, None);
        while run.run().filled_with(&item) <= 1984 {
            let count = run.run().count();
            run.push(end, &item);
            let at = run
                .run()
                .start(if end == End::Front { 1.min(count) } else { 0 });
            let expected = match (end, place) {
                (End::Front, Some(before)) if count > 1 => before - item.size(),
                (_, before) => before.unwrap_or(at),
            };
            moves += usize::from(at != expected);
            place = Some(at);
        }
        assert!(run.run().count() > 100 && moves < 8, "{moves}");
    }
}
