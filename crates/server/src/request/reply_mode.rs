//! CLIENT REPLY.

/// Mode of CLIENT REPLY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    Off,
    /// No reply to the next command.
    SkipNext,
    /// No replies. If replies are turned on in the same transaction, the next command still has none.
    OffSkipNext,
    /// No reply to this command, then on again.
    Skip,
}

impl ReplyMode {
    /// Whether the current reply is dropped.
    pub(crate) fn is_silent(self) -> bool {
        matches!(
            self,
            ReplyMode::Off | ReplyMode::OffSkipNext | ReplyMode::Skip
        )
    }

    /// Mode after a command.
    pub(crate) fn behind_a_command(self) -> ReplyMode {
        match self {
            ReplyMode::SkipNext => ReplyMode::Skip,
            ReplyMode::Skip => ReplyMode::On,
            ReplyMode::OffSkipNext => ReplyMode::Off,
            mode => mode,
        }
    }
}
