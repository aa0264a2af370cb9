//! Where the server is, and what it asks for at the door.

use crate::connection::{Approach, Place};

/// The version of the protocol that a session begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Resp2,
    /// RESP3, but RESP2 will do: JSON is better off with types.
    Resp3IfPossible,
    Resp3,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) place: Place,
    pub(crate) approach: Approach,
    pub(crate) user: Option<Vec<u8>>,
    pub(crate) password: Option<Vec<u8>>,
    pub(crate) database: u64,
    /// Somebody asked for this database, though it may be the usual one.
    pub(crate) is_database_chosen: bool,
    /// RESP2 if absent, or what the form of replies is better off with.
    pub(crate) protocol: Option<Protocol>,
    /// MOVED and ASK are followed.
    pub(crate) follows_redirections: bool,
}
