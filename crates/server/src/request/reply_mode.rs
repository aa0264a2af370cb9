//! CLIENT REPLY: whether replies are sent.

/// Whether replies are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    Off,
    /// None for the next command.
    SkipNext,
    /// None; and if they are turned on in the same transaction, none for the next command all the same.
    OffSkipNext,
    /// None for this command, then on again.
    Skip,
}

impl ReplyMode {
    /// Whether what is answered now is not sent.
    pub(crate) fn is_silent(self) -> bool {
        matches!(
            self,
            ReplyMode::Off | ReplyMode::OffSkipNext | ReplyMode::Skip
        )
    }

    /// The mode for what follows a command.
    pub(crate) fn behind_a_command(self) -> ReplyMode {
        match self {
            ReplyMode::SkipNext => ReplyMode::Skip,
            ReplyMode::Skip => ReplyMode::On,
            ReplyMode::OffSkipNext => ReplyMode::Off,
            mode => mode,
        }
    }
}
