//! Recipients of invalidation messages: tracking connections or the targets of their REDIRECT.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::observe::Observed;
use crate::pubsub::{self, Addressee, News};
use crate::shared::clients::{Client, status};

/// Recipients of one message.
#[derive(Default)]
pub(crate) struct Letters {
    to: Vec<Addressee>,
}

impl Letters {
    /// Adds the recipient for a tracking connection. If the target of its REDIRECT has ended, the connection
    /// gets a message about that instead.
    pub(crate) fn add(&mut self, server: &Observed, client: &Arc<Client>) {
        let redirected = client.redirect_id.load(Relaxed) != 0;
        let target = if redirected {
            client.redirect.lock().clone()
        } else {
            Some(Arc::clone(client))
        };
        // No target: tracking is being stopped.
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
        // Over RESP2 a message can't be distinguished from a reply.
        if redirected || target.protocol.load(Relaxed) > 2 {
            self.to.push(Addressee {
                client: target,
                redirected,
            });
        }
    }

    /// Sends the message to all recipients, once for each worker.
    pub(crate) fn send(&mut self, server: &Observed, news: News<'_>) {
        if self.to.is_empty() {
            return;
        }
        self.to.sort_by_key(|to| to.client.worker);
        pubsub::tell(server, &self.to, news);
    }
}
