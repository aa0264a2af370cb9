//! Publishing, joining and leaving in every order that the memory model allows (with few interruptions), on
//! the tray that inboxes are made of: who was counted is told, exactly once and nobody else; nothing stays
//! where nobody looks; nobody is held back for ever.
//!
//! The tray and the crowd are the real ones. Around them it is a model: one channel, whose entry in the
//! registry is a number under a lock, workers that look once more if they were woken, and wakers that are one
//! flag, as those of `sys::poller` are.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering::AcqRel};
use loom::thread;

/// What the tray is made of here.
mod sync {
    pub(super) use loom::sync::atomic::{AtomicUsize, Ordering};

    /// A lock as `parking_lot` has it.
    pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(super) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no test has panicked")
        }
    }
}

#[path = "../src/pubsub/tray.rs"]
mod tray;

use sync::Mutex;
use tray::{Contents, Crowd, Tray};

/// Messages, each of which is a byte; more than one are a crowd.
#[derive(Default)]
struct Messages(usize);

const CROWD: usize = 1;

impl Contents for Messages {
    fn memory(&self) -> usize {
        self.0
    }
}

/// A channel, and the worker that listens to it.
struct Model {
    /// What the registry knows: how many listen.
    listeners: Mutex<usize>,
    inbox: Tray<Messages>,
    crowd: Crowd,
    /// Whether the listening worker's waker was rung, and the publishing one's.
    bells: [AtomicBool; 2],
}

const LISTENER: usize = 0;
const PUBLISHER: usize = 1;

/// What the listening worker knows.
#[derive(Default)]
struct Listener {
    /// How many of its connections listen.
    here: usize,
    /// Messages times connections that were told.
    told: usize,
    taken: Messages,
}

impl Model {
    fn new() -> Arc<Model> {
        Arc::new(Model {
            listeners: Mutex::new(0),
            inbox: Tray::default(),
            crowd: Crowd::default(),
            bells: [AtomicBool::new(false), AtomicBool::new(false)],
        })
    }

    fn ring(&self, bell: usize) {
        self.bells[bell].swap(true, AcqRel);
    }

    /// The end of a wait. Returns whether there was one.
    fn was_rung(&self, bell: usize) -> bool {
        self.bells[bell].swap(false, AcqRel)
    }

    /// `Registry::publish`. Returns how many listeners were counted.
    fn publish(&self) -> usize {
        let counted = {
            let listeners = self.listeners.lock();
            if *listeners > 0 {
                self.inbox
                    .add(&self.crowd, CROWD, |messages| messages.0 += 1);
            }
            *listeners
        };
        if counted > 0 {
            self.ring(LISTENER);
        }
        counted
    }
}

impl Listener {
    /// `Listeners::join`, or `leave`: what was in the inbox is for those who listened before.
    fn change(&mut self, model: &Model, change: isize) {
        let is_free = {
            let mut listeners = model.listeners.lock();
            *listeners = listeners.checked_add_signed(change).expect("it has joined");
            model.inbox.take(&model.crowd, &mut self.taken)
        };
        self.hand_out(model, is_free);
        self.here = self.here.checked_add_signed(change).expect("it has joined");
    }

    /// `Listeners::collect`, in a turn.
    fn collect(&mut self, model: &Model) {
        if model.inbox.bytes() > 0 {
            let is_free = model.inbox.take(&model.crowd, &mut self.taken);
            self.hand_out(model, is_free);
        }
    }

    fn hand_out(&mut self, model: &Model, is_free: bool) {
        self.told += std::mem::take(&mut self.taken).0 * self.here;
        if is_free {
            model.ring(PUBLISHER);
        }
    }

    /// Looks again as long as it is woken.
    fn end(&mut self, model: &Model) {
        while model.was_rung(LISTENER) {
            self.collect(model);
        }
    }
}

fn explore(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // What goes wrong does so with few interruptions.
    builder.preemption_bound = Some(3);
    builder.check(run);
}

#[test]
fn who_was_counted_is_told_and_nobody_else() {
    explore(|| {
        let model = Model::new();
        let publishers: Vec<_> = (0..2)
            .map(|_| {
                let model = Arc::clone(&model);
                thread::spawn(move || model.publish())
            })
            .collect();
        let mut listener = Listener::default();
        listener.change(&model, 1);
        listener.collect(&model);
        listener.change(&model, 1);
        listener.change(&model, -1);
        let counted: usize = publishers
            .into_iter()
            .map(|publisher| publisher.join().expect("it has not panicked"))
            .sum();
        listener.end(&model);
        assert_eq!(listener.told, counted);
        assert_eq!(model.inbox.bytes(), 0, "a wake is lost");
    });
}

#[test]
fn nobody_listens_any_more_and_nothing_is_left() {
    explore(|| {
        let model = Model::new();
        let mut listener = Listener::default();
        listener.change(&model, 1);
        let publisher = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.publish() + model.publish())
        };
        listener.end(&model);
        listener.change(&model, -1);
        let counted = publisher.join().expect("it has not panicked");
        assert_eq!(listener.told, counted);
        assert_eq!(model.inbox.bytes(), 0);
        assert!(!model.crowd.any());
    });
}

#[test]
fn who_is_held_back_goes_on() {
    explore(|| {
        let model = Model::new();
        let mut listener = Listener::default();
        listener.change(&model, 1);
        let publisher = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                let mut counted = model.publish() + model.publish();
                // A connection of this worker wants to publish more: it does, or it is held back until a
                // later turn.
                let is_held = model.crowd.any();
                if !is_held {
                    counted += model.publish();
                }
                (counted, is_held)
            })
        };
        listener.end(&model);
        let (mut counted, mut is_held) = publisher.join().expect("it has not panicked");
        listener.end(&model);
        while model.was_rung(PUBLISHER) {
            if is_held && !model.crowd.any() {
                is_held = false;
                counted += model.publish();
            }
        }
        listener.end(&model);
        assert!(!is_held, "it is held back for ever");
        assert!(!model.crowd.any(), "who comes later is held back");
        assert_eq!(listener.told, counted);
    });
}
