//! Messages to connections with CLIENT TRACKING.
//!
//! ```text
//!  RESP3   >2 invalidate KEYS                     >2 tracking-redir-broken ID
//!  RESP2   *3 message __redis__:invalidate KEYS   (to the target of REDIRECT, if it subscribes)
//! ```
//!
//! KEYS is an array, or null for all keys. The sending worker chooses the form, because it knows its
//! connections.

use std::sync::Arc;

use resp::reply::{Protocol, Writer, put_bulk};

use crate::shared::clients::Client;

/// Content of a message.
pub(crate) enum News<'n> {
    /// These keys have changed.
    Keys(&'n mut dyn ExactSizeIterator<Item = &'n [u8]>),
    /// All keys are invalid.
    All,
    /// The connection with this id, the target of a REDIRECT, has ended.
    Broken(u64),
}

impl News<'_> {
    /// Writes the part that is the same in all protocols. It is empty for all keys.
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

/// Recipient of a message.
#[derive(Clone)]
pub(crate) struct Addressee {
    pub(crate) client: Arc<Client>,
    /// Whether it gets the message for another connection (REDIRECT).
    pub(crate) redirected: bool,
}
