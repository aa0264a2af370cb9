//! Which connections are told in place of those that track.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::observe::Observed;
use crate::pubsub::{self, Addressee, News};
use crate::shared::clients::{Client, status};

/// The same news for several connections.
#[derive(Default)]
pub(crate) struct Letters {
    to: Vec<Addressee>,
}

impl Letters {
    /// Adds whoever is told for a connection that tracks. If that is one that has ended, the connection is
    /// told so instead.
    pub(crate) fn add(&mut self, server: &Observed, client: &Arc<Client>) {
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
    pub(crate) fn send(&mut self, server: &Observed, news: News<'_>) {
        if self.to.is_empty() {
            return;
        }
        self.to.sort_by_key(|to| to.client.worker);
        pubsub::tell(server, &self.to, news);
    }
}
