//! What a connection that tracks keys is told.
//!
//! ```text
//!  RESP3   >2 invalidate KEYS                          >2 tracking-redir-broken ID
//!  RESP2   *3 message __redis__:invalidate KEYS        (to the connection that REDIRECT names, if it subscribes)
//! ```
//!
//! KEYS is an array, or null when all copies are worthless. Which form it takes is decided by the worker that
//! sends it, which knows its connections.

use std::sync::Arc;

use resp::reply::{Protocol, Writer, put_bulk};

use crate::shared::clients::Client;

/// See the module.
pub(crate) enum News<'n> {
    /// These keys have changed.
    Keys(&'n mut dyn ExactSizeIterator<Item = &'n [u8]>),
    /// All keys have.
    All,
    /// The connection of this id, which was told in place of another, has ended.
    Broken(u64),
}

impl News<'_> {
    /// Writes what is the same in all protocols. Nothing stands for all keys.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            News::Keys(keys) => {
                Writer::new(out, Protocol::Resp2).array(keys.len());
                keys.for_each(|key| put_bulk(out, key));
            }
            News::All => {}
            News::Broken(id) => Writer::new(out, Protocol::Resp2).integer(id as i64),
        }
    }
}

/// A connection that is told something.
#[derive(Clone)]
pub(crate) struct Addressee {
    pub(crate) client: Arc<Client>,
    /// It is told in place of another connection.
    pub(crate) redirected: bool,
}
