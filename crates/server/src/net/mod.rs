//! Connections and the event loop: the bytes of a connection, and the turns of a worker that runs their
//! requests.
//!
//! [`worker`] is the loop; [`batch`] and [`execute`] are its two halves, *parse* and *run*. A connection that
//! does not run waits: for values of the log ([`fetching`]), for a large value that it sends ([`receive`]),
//! for what others do ([`waits`]), for a command that takes long ([`work`]), for a script that keeps it from
//! the data ([`outside`]), or for the disk ([`durability`]).

mod ahead;
pub(crate) mod batch;
pub(crate) mod connection;
mod connections;
pub(crate) mod delivery;
mod durability;
pub(crate) mod execute;
mod expiring;
mod fetching;
mod lane;
mod outside;
mod receive;
pub(crate) mod turn_clock;
pub(crate) mod waits;
mod work;
pub(crate) mod worker;
