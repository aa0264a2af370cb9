//! What the keyspace tells of changes to keys (`keyspace::Observer`), and to whom it goes on.

use keyspace::{Change, Observer};

use crate::notify;
use crate::server::Server;

impl Observer for Server {
    fn changed(&self, change: &Change<'_>) -> u8 {
        notify::expired(self, change);
        0
    }
}
