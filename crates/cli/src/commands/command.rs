//! A command and its arguments.

/// A command, or a subcommand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// In lower case; a subcommand's is two words.
    pub(crate) name: String,
    /// Words, its name included; negative: at least as many. 0 if nobody said.
    pub(crate) arity: i64,
    pub(crate) group: String,
    pub(crate) since: String,
    pub(crate) summary: String,
    pub(crate) complexity: String,
    /// Since which version it should not be used, and what to use instead.
    pub(crate) deprecated: Option<(String, String)>,
    pub(crate) keys: KeyRange,
    pub(crate) args: Vec<Arg>,
}

/// Where the keys of a command are: from `first` on (0: none), every `step`-th, to `last` (negative: from the
/// end).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) step: i64,
}

impl KeyRange {
    /// The indices of the keys among so many words.
    pub(crate) fn indices(self, words: usize) -> impl Iterator<Item = usize> {
        let count = i64::try_from(words).unwrap_or(i64::MAX);
        let last = if self.last < 0 {
            count + self.last
        } else {
            self.last.min(count - 1)
        };
        let last = if self.first > 0 { last } else { -1 };
        (self.first.max(0)..=last)
            .step_by(usize::try_from(self.step).unwrap_or(0).max(1))
            .filter_map(|at| usize::try_from(at).ok())
    }
}

/// An argument, as COMMAND DOCS describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arg {
    pub(crate) name: String,
    pub(crate) kind: ArgKind,
    /// The word that introduces it.
    pub(crate) token: Option<String>,
    pub(crate) is_optional: bool,
    pub(crate) is_multiple: bool,
    /// Each of several has the token in front.
    pub(crate) repeats_token: bool,
    /// Of a choice or a block.
    pub(crate) args: Vec<Arg>,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ArgKind {
    /// One word of whatever kind.
    #[default]
    Word,
    Key,
    /// Nothing but its token.
    PureToken,
    OneOf,
    Block,
}

impl ArgKind {
    /// From the name that COMMAND DOCS has for it. What is not known is a word.
    pub(super) fn named(name: &str) -> ArgKind {
        match name {
            "key" => ArgKind::Key,
            "pure-token" => ArgKind::PureToken,
            "oneof" => ArgKind::OneOf,
            "block" => ArgKind::Block,
            _ => ArgKind::Word,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_they_are() {
        let keys = |first, last, step, words| -> Vec<usize> {
            KeyRange { first, last, step }.indices(words).collect()
        };
        assert_eq!(keys(0, 0, 0, 3), []);
        assert_eq!(keys(1, 1, 1, 1), []);
        assert_eq!(keys(1, 1, 1, 3), [1]);
        assert_eq!(keys(1, -1, 1, 4), [1, 2, 3]);
        assert_eq!(keys(1, -1, 2, 5), [1, 3]);
        assert_eq!(keys(2, -1, 1, 2), []);
        assert_eq!(keys(1, -2, 1, 4), [1, 2]);
        assert_eq!(keys(1, 2, 1, 2), [1]);
    }
}
