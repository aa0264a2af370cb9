//! One connection: opening it, greeting the server, counting its replies. Nothing here knows what is
//! measured.

pub(crate) mod ask;
pub(crate) mod cluster;
pub(crate) mod link;
pub(crate) mod map;
pub(crate) mod replies;
pub(crate) mod target;
