//! The ring's protocol under a model of the memory: loom runs every interleaving, and lets every load
//! see every store that the orderings allow. The bytes are cells that loom watches for races, so a
//! range that is called complete before it is filled, or without its bytes being visible, is a failure.

use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use sys::ring::readers::Readers;
use sys::ring::watermarks::{Line, Mark, Watermarks, Word};

#[derive(Debug)]
struct ModelWord(loom::sync::atomic::AtomicU64);

impl Word for ModelWord {
    fn new(value: u64) -> ModelWord {
        ModelWord(loom::sync::atomic::AtomicU64::new(value))
    }

    fn load(&self, ordering: Ordering) -> u64 {
        self.0.load(ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        self.0.store(value, ordering);
    }

    fn fetch_add(&self, value: u64, ordering: Ordering) -> u64 {
        self.0.fetch_add(value, ordering)
    }
}

/// A ring of positions that are never used twice, each a cell.
struct Model {
    marks: Box<Watermarks<ModelWord>>,
    cells: Vec<UnsafeCell<u64>>,
}

// SAFETY: loom reports an access to a cell that is not ordered with another one; that is the test.
unsafe impl Sync for Model {}

impl Model {
    fn new<const PRODUCERS: usize>(cells: usize) -> Arc<Model> {
        let marks: Watermarks<_, [Line<Mark<ModelWord>>; PRODUCERS]> = Watermarks::new(0);
        Arc::new(Model {
            marks: Box::new(marks),
            cells: (0..cells).map(|_| UnsafeCell::new(0)).collect(),
        })
    }

    fn fill(&self, at: u64) {
        // SAFETY: see `Sync`.
        self.cells[at as usize].with_mut(|cell| unsafe { *cell = at + 1 });
    }

    /// What the consumer does: everything below the mark is filled.
    fn check(&self, from: u64) -> u64 {
        let complete = self.marks.complete();
        for at in from..complete {
            // SAFETY: see `Sync`.
            self.cells[at as usize].with(|cell| assert_eq!(unsafe { *cell }, at + 1));
        }
        complete.max(from)
    }
}

/// Every interleaving with up to three switches that nobody asked for; all of them would take minutes.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn what_is_complete_is_filled() {
    explore(|| {
        let model = Model::new::<2>(4);
        let threads: Vec<_> = (0..2)
            .map(|producer| {
                let model = model.clone();
                loom::thread::spawn(move || {
                    let mark = model.marks.producer(producer);
                    mark.begin(0, 1);
                    for _ in 0..2 - producer {
                        let at = model.marks.reserve(1);
                        mark.claimed(at + 1);
                        model.fill(at);
                    }
                    mark.end();
                })
            })
            .collect();
        let seen = model.check(0);
        model.check(seen);
        for thread in threads {
            thread.join().expect("the producer ends");
        }
        assert_eq!(model.check(0), 3);
    });
}

#[test]
fn a_second_turn_is_as_safe_as_the_first() {
    explore(|| {
        let model = Model::new::<2>(4);
        let thread = loom::thread::spawn({
            let model = model.clone();
            move || {
                let mut from = 0;
                for _ in 0..2 {
                    let mark = model.marks.producer(0);
                    mark.begin(from, 1);
                    let at = model.marks.reserve(1);
                    mark.claimed(at + 1);
                    model.fill(at);
                    mark.end();
                    from = at + 1;
                }
            }
        });
        model.marks.producer(1).begin(0, 1);
        let at = model.marks.reserve(1);
        model.fill(at);
        model.marks.producer(1).end();
        let seen = model.check(0);
        model.check(seen);
        thread.join().expect("the producer ends");
        assert_eq!(model.check(0), 3);
    });
}

#[test]
fn a_part_that_was_published_is_filled() {
    explore(|| {
        let model = Model::new::<2>(4);
        let thread = loom::thread::spawn({
            let model = model.clone();
            move || {
                let mark = model.marks.producer(0);
                mark.begin(0, 2);
                let at = model.marks.reserve(2);
                model.fill(at);
                mark.publish(at + 1);
                model.fill(at + 1);
                mark.end();
            }
        });
        model.marks.producer(1).begin(0, 1);
        let at = model.marks.reserve(1);
        model.fill(at);
        model.marks.producer(1).end();
        let seen = model.check(0);
        model.check(seen);
        thread.join().expect("the producer ends");
        assert_eq!(model.check(0), 3);
    });
}

/// The check itself: without the watermark, the model finds the hole.
#[test]
#[should_panic]
fn a_consumer_that_trusts_the_tail_is_caught() {
    explore(|| {
        let model = Model::new::<1>(2);
        let thread = loom::thread::spawn({
            let model = model.clone();
            move || {
                // No `begin`: the word says that there is nothing to wait for.
                let at = model.marks.reserve(1);
                model.fill(at);
            }
        });
        model.check(0);
        thread.join().expect("the producer ends");
    });
}

/// The consumer releases two positions, one after the other, and their places are filled again, while two
/// others read them.
#[test]
fn what_is_read_is_not_filled_again_meanwhile() {
    struct Place {
        readers: Readers<ModelWord>,
        cells: [UnsafeCell<u64>; 2],
    }
    // SAFETY: as for `Model`.
    unsafe impl Sync for Place {}
    explore(|| {
        let place = Arc::new(Place {
            readers: Readers::new(0),
            cells: [UnsafeCell::new(1), UnsafeCell::new(1)],
        });
        let read = |place: &Place, at: u64| {
            place.readers.read(at, || {
                // SAFETY: see `Sync`.
                place.cells[at as usize].with(|cell| assert_eq!(unsafe { *cell }, 1));
            })
        };
        let threads = [0, 1].map(|at| {
            let place = place.clone();
            loom::thread::spawn(move || read(&place, at))
        });
        for at in 0..2 {
            place.readers.release(at + 1, loom::thread::yield_now);
            // SAFETY: see `Sync`.
            place.cells[at as usize].with_mut(|cell| unsafe { *cell = 2 });
        }
        for thread in threads {
            thread.join().expect("the reader ends");
        }
        assert_eq!(read(&place, 0), None);
    });
}
