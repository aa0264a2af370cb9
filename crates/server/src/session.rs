//! What a connection means: who it is, which database it uses, what it has asked for.
//!
//! The session belongs to the connection's worker. What other connections may see of it (CLIENT LIST) or do to it
//! (CLIENT KILL) is in its [`Client`] record.

use std::sync::Arc;

use resp::reply::Protocol;

use crate::clients::Client;
use crate::config::ClientClass;

/// Whether replies are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    Off,
    /// None for the next command.
    SkipNext,
    /// None for this command, then on again.
    Skip,
}

/// See the module.
pub(crate) struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) db: usize,
    pub(crate) protocol: Protocol,
    pub(crate) authenticated: bool,
    pub(crate) reply_mode: ReplyMode,
    /// CLIENT NO-TOUCH.
    pub(crate) no_touch: bool,
    /// Receives every command that is run.
    pub(crate) monitor: bool,
    /// The connection ends once its replies are sent.
    pub(crate) closing: bool,
}

impl Session {
    pub(crate) fn new(client: Arc<Client>, authenticated: bool) -> Session {
        Session {
            client,
            db: 0,
            protocol: Protocol::Resp2,
            authenticated,
            reply_mode: ReplyMode::On,
            no_touch: false,
            monitor: false,
            closing: false,
        }
    }

    /// The kind of client whose output limit applies.
    pub(crate) fn output_class(&self) -> ClientClass {
        ClientClass::Normal
    }
}
