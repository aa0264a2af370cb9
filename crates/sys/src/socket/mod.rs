//! Sockets: what the server listens on and what it accepts, whose bytes move through the poller, not
//! through these types; and the connections of programs at the other end, which wait for one server.
//!
//! Everything opened here is close-on-exec from the start, and non-blocking except for the latter.
//! What does not live here: what a connection is to the server, and when one is too many.

mod address;
mod client;
mod dial;
mod listener;
mod options;
mod stream;

pub use client::{Family, Ready, Stream};
pub use dial::{Endpoint, resolve};
pub use listener::Listener;
pub use stream::Socket;
