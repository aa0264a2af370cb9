//! Linux' io_uring behind the functions of the poller: one system call per turn of a worker, which
//! sends all replies, waits, and receives all requests.
//!
//! - *Receiving*: the kernel receives ahead into provided buffers (`buffers`), with one multishot
//!   receive per connection that is asked for once. [`Uring::recv`] copies from there. Whoever sends
//!   more than is taken, or comes when the buffers are all in use, is received from on demand
//!   instead, so that what lies ahead stays bounded and nobody starves.
//! - *Sending*: what is short is copied (`outbox`) and sent by the next wait; what is long is sent
//!   at once, uncopied, by a system call of its own. Bytes that were taken and then found no room
//!   (the residue, at most [`COPY_BYTES`](outbox::COPY_BYTES)) go out before any others.
//! - *Waiting* (`crowd`): while very many peers are active, a wait may go on until several of them have sent
//!   something.
//! - *Files* (`reads`): what is to be read goes with the next wait, and is there with that one or a later
//!   one.
//! - *Ends*: a poll per connection tells of hangups, and of ends that receiving missed: kernels before
//!   7.0 lose the end of the stream if it comes together with the last bytes.
//!
//! Invariants:
//! 1. Between two waits the kernel moves no bytes (invariant 1 of `queues`), so a system call on a
//!    socket sees all that no answer has told of, in order.
//! 2. A request names a descriptor only in the enter that follows, and a removed descriptor not even
//!    there: the number may be another connection's by then. Nothing else depends on numbers:
//!    answers find their slot by index and generation.
//! 3. Bytes of a descriptor leave in the order they were taken: residue, outbox, system call.
//! 4. A ring that fails to take requests is never entered again: nobody could tell which of its
//!    sends have happened.
//!
//! What does not live here: listeners that accept ahead, registered files. Linux 6.1 is the oldest
//! that has everything this needs.

mod answers;
mod buffers;
mod crowd;
mod names;
mod outbox;
mod queues;
mod reads;
mod slots;
mod state;
mod transfer;
mod waiting;

#[cfg(test)]
mod tests;

pub(super) use state::Uring;
