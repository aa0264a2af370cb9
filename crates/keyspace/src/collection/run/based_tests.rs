//! Runs of streams against a map, and bytes that are none.

use std::collections::BTreeMap;

use super::*;

/// A run in a buffer of its length.
struct Stream(Vec<u8>);

impl Stream {
    fn run(&self) -> Run<'_> {
        Run::trusted(&self.0)
    }

    /// Adds an entry that is not there; the base is as early as it has to be.
    fn add(&mut self, id: Id, content: &[u8]) {
        let index = self.run().find_based(id).expect_err("it is not there");
        if id.ms < self.run().base() {
            self.0 = self.run().rebased(id.ms);
        }
        let mut buffer = BasedBuffer::default();
        let item = Based { id, content }.item(self.run().base(), &mut buffer);
        let growth = self.run().growth(&item, None).expect("there is room");
        let len = self.0.len();
        self.0.resize(len.strict_add_signed(growth), 0xee);
        let mut run = RunMut::new(&mut self.0, len);
        run.insert(index, &item);
        assert_eq!(run.len(), self.0.len());
    }

    fn remove(&mut self, from: usize, to: usize) {
        let len = self.0.len();
        let mut run = RunMut::new(&mut self.0, len);
        run.remove_range(from, to);
        let len = run.len();
        self.0.truncate(len);
    }

    /// Keeps the items before an index; the rest is another run.
    fn split(&mut self, index: usize) -> Stream {
        let mut rest = vec![0; self.0.len()];
        let empty = Run::empty_based(self.run().base());
        rest[..empty.len()].copy_from_slice(&empty);
        let mut into = RunMut::new(&mut rest, empty.len());
        let len = self.0.len();
        let mut run = RunMut::new(&mut self.0, len);
        run.split_off(index, &mut into);
        let (len, rest_len) = (run.len(), into.len());
        self.0.truncate(len);
        rest.truncate(rest_len);
        Stream(rest)
    }
}

type Model = BTreeMap<Id, Vec<u8>>;

fn compare(run: Run<'_>, model: &Model) {
    let run = Run::check_based(run.bytes()).expect("an edit leaves a run");
    let mut all = Vec::new();
    run.based(0, run.count(), |based| {
        all.push((based.id, based.content.to_vec()))
    });
    assert!(
        model
            .iter()
            .map(|(&id, content)| (id, content.clone()))
            .eq(all)
    );
}

/// IDs close to each other, later ones, and those at the ends of all.
fn random_id(random: &mut fastrand::Rng) -> Id {
    let ms = match random.u8(..10) {
        0 => random.u64(..),
        1 => u64::MAX - random.u64(..3),
        2 => random.u64(..3),
        _ => 1_700_000_000_000 + random.u64(..300),
    };
    let seq = match random.u8(..6) {
        0 => random.u64(..),
        1 => u64::MAX - random.u64(..3),
        2 | 3 => 0,
        _ => random.u64(..60),
    };
    Id { ms, seq }
}

#[test]
fn runs_of_streams_are_as_a_map() {
    let mut random = fastrand::Rng::with_seed(71);
    for _ in 0..300 {
        let first = random_id(&mut random);
        let (mut stream, mut model) = (Stream(Run::empty_based(first.ms).to_vec()), Model::new());
        for _ in 0..random.usize(..200) {
            let id = random_id(&mut random);
            let found = stream.run().find_based(id);
            assert_eq!(found.is_ok(), model.contains_key(&id));
            assert_eq!(stream.run().based_before(id), model.range(..id).count());
            let at = found.unwrap_or_else(|at| at);
            match (random.u8(..20), found) {
                (0..15, Err(_)) => {
                    let content = vec![b'x'; random.usize(..40)];
                    stream.add(id, &content);
                    model.insert(id, content);
                }
                (0..15, Ok(_)) => {
                    stream.remove(at, at + 1);
                    model.remove(&id);
                }
                (15 | 16, _) => {
                    let to = random.usize(at..=model.len());
                    let gone: Vec<Id> = model.keys().copied().skip(at).take(to - at).collect();
                    stream.remove(at, to);
                    gone.iter().for_each(|id| drop(model.remove(id)));
                }
                (17, _) => {
                    let rest = stream.split(at);
                    compare(rest.run(), &model.split_off(&id));
                }
                _ => {
                    let first = model.keys().next().map_or(first.ms, |id| id.ms);
                    stream.0 = stream.run().rebased(first - random.u64(..=first.min(9)));
                }
            }
            compare(stream.run(), &model);
        }
    }
}

/// Every byte of a run is known: a run with another one is refused, or it is another run of a stream.
#[test]
fn changed_bytes_are_refused_or_a_run() {
    let mut random = fastrand::Rng::with_seed(5);
    let (mut refused, mut sound) = (0, 0);
    for _ in 0..2_000 {
        let first = random_id(&mut random);
        let mut stream = Stream(Run::empty_based(first.ms).to_vec());
        for _ in 0..random.usize(1..30) {
            let id = random_id(&mut random);
            if stream.run().find_based(id).is_err() {
                stream.add(id, b"content");
            }
        }
        for _ in 0..20 {
            let mut bytes = stream.0.clone();
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
            bytes.truncate(bytes.len() - usize::from(random.u8(..4) == 0));
            match Run::check_based(&bytes) {
                Err(_) => refused += 1,
                Ok(run) => {
                    sound += 1;
                    // It can be read and edited.
                    let mut ids = Vec::new();
                    run.based(0, run.count(), |based| ids.push(based.id));
                    assert!(ids.is_sorted_by(|one, next| one < next));
                    let ms = ids.first().map_or(0, |id| id.ms);
                    assert!(Run::check_based(&run.rebased(ms)).is_ok());
                }
            }
        }
    }
    assert!(
        refused > 10_000 && sound > 100,
        "{refused} refused, {sound} sound"
    );
}

/// Entries as XADD makes them: some ms apart, without sequence numbers or with small ones.
#[test]
fn an_entry_takes_few_bytes_beyond_its_content() {
    let first = 1_700_000_000_000;
    for (ms, seq, most) in [(2, 0, 400), (0, 7, 550)] {
        let mut stream = Stream(Run::empty_based(first).to_vec());
        for at in 1..=100 {
            let id = Id {
                ms: first + at * ms,
                seq: at * seq,
            };
            stream.add(id, b"25 bytes of fields, values");
        }
        let beyond = stream.0.len() - 100 * 26;
        assert!(beyond <= most, "{beyond} bytes");
    }
}
