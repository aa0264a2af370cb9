//! Waiting for sockets: one [`Poller`] per worker, and the calls that move bytes once it says that
//! they are there.
//!
//! The bytes go through the poller because io_uring receives before it reports and sends after it was
//! told to: such a backend fits behind the same functions, and the worker's loop stays as it is. Each
//! backend is a module; [`Poller`] chooses with a `match`, which costs a predicted branch.
//!
//! Invariants:
//! 1. Readiness is level-triggered: what is not read or written is reported again by the next wait.
//! 2. A descriptor is registered at most once, and removed before it is closed. It is removed in order
//!    to be closed: what was received ahead for it is lost.
//! 3. A reported token may belong to a descriptor that an earlier event of the same wait made the
//!    caller remove. The poller does not look for this: tokens carry a generation where that
//!    matters.
//! 4. What a send has taken leaves in order, with the next wait or the removal at the latest, and what
//!    the peer is slow to read after that: a connection that is closed right after its last reply
//!    gets it to the peer. A removed connection is closed with the next wait at the latest.
//!
//! What does not live here: who owns the descriptors, what the tokens mean, and how long to wait.

mod driver;
#[cfg(target_os = "linux")]
mod epoll;
mod event;
mod portable;
mod transfer;
#[cfg(target_os = "linux")]
mod uring;
mod waker;

#[cfg(test)]
mod tests;

pub use driver::Poller;
pub use event::{Backend, Event, FinishedRead, Interest, MAX_EVENTS, MAX_SLICES};
pub use waker::Waker;
