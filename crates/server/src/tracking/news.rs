//! What a tracking connection is told, and who is told in its place.
//!
//! ```text
//!  RESP3   >2 invalidate KEYS                          >2 tracking-redir-broken ID
//!  RESP2   *3 message __redis__:invalidate KEYS        (to the connection that REDIRECT names, if it subscribes)
//! ```
//!
//! KEYS is an array, or null when all copies are worthless. Which form it takes is decided by the worker that
//! sends it, which knows its connections ([`crate::pubsub`]).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use resp::reply::{Protocol, Writer, put_bulk};

use crate::clients::{Client, status};
use crate::pubsub;
use crate::server::Server;

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

/// The same news for several connections.
#[derive(Default)]
pub(crate) struct Letters {
    to: Vec<Addressee>,
}

impl Letters {
    /// Adds whoever is told for a connection that tracks. If that is one that has ended, the connection is
    /// told so instead.
    pub(crate) fn add(&mut self, server: &Server, client: &Arc<Client>) {
        let redirected = client.redirect_id.load(Relaxed) != 0;
        let target = if redirected {
            client.redirect.lock().clone()
        } else {
            Some(Arc::clone(client))
        };
        // None: tracking ends at this moment.
        let Some(target) = target else { return };
        if redirected && target.has_status(status::ENDED) {
            client.set_status(status::BROKEN_REDIRECT, true);
            let to = Addressee {
                client: Arc::clone(client),
                redirected: false,
            };
            pubsub::tell(server, &[to], News::Broken(target.id));
            return;
        }
        // Over RESP2 nothing can be told apart from a reply.
        if redirected || target.protocol.load(Relaxed) > 2 {
            self.to.push(Addressee {
                client: target,
                redirected,
            });
        }
    }

    /// Leaves the news for all of them: once for each worker.
    pub(crate) fn send(&mut self, server: &Server, news: News<'_>) {
        if self.to.is_empty() {
            return;
        }
        self.to.sort_by_key(|to| to.client.worker);
        pubsub::tell(server, &self.to, news);
    }
}
