//! What a request means to the program that sends it: which replies are text, which never end, which words
//! are secret.
//!
//! Only commands whose meaning changes what this program does are named here; everything else a program at
//! this end knows about commands is in `commands`.

/// How the reply of a request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// One reply.
    Reply,
    /// One reply, which is a text with lines of its own.
    Text,
    /// Messages, until somebody interrupts.
    Monitor,
    /// The same, for a subscription.
    Subscription,
    /// The connection ends.
    End,
    /// The connection becomes something that this program cannot follow.
    Replication,
}

/// Whether a word is this one, in any case.
pub(crate) fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

/// Whether a request begins with these words, separated by spaces.
pub(crate) fn begins(words: &[Vec<u8>], names: &str) -> bool {
    let mut words = words.iter();
    names
        .split(' ')
        .all(|name| words.next().is_some_and(|word| is(word, name)))
}

/// How the reply of a request comes.
pub(crate) fn answer(words: &[Vec<u8>]) -> Answer {
    const TEXTS: &[&str] = &[
        "info",
        "lolwut",
        "debug htstats",
        "debug htstats-key",
        "debug client-eviction",
        "memory malloc-stats",
        "memory doctor",
        "client list",
        "client info",
        "proxy info",
    ];
    // These are text only when they have exactly so many words.
    const EXACT_TEXTS: &[(&str, usize)] = &[
        ("cluster nodes", 2),
        ("cluster info", 2),
        ("latency graph", 3),
        ("latency doctor", 2),
    ];
    let begin = |names: &str| begins(words, names);
    let is_exact = |&(names, count): &(&str, usize)| words.len() == count && begin(names);
    if TEXTS.iter().any(|names| begin(names)) || EXACT_TEXTS.iter().any(is_exact) {
        Answer::Text
    } else if begin("monitor") {
        Answer::Monitor
    } else if begin("subscribe") || begin("psubscribe") || begin("ssubscribe") {
        Answer::Subscription
    } else if begin("shutdown") {
        Answer::End
    } else if begin("sync") || begin("psync") {
        Answer::Replication
    } else {
        Answer::Reply
    }
}

/// The words of a request that nobody else should see, as a range of indices; empty if there are none.
///
/// Asked about every line that is kept, and while it is typed, so it also finds what is not complete yet.
pub(crate) fn secret_words(words: &[Vec<u8>]) -> std::ops::Range<usize> {
    let end = words.len();
    let none = end..end;
    let Some(name) = words.first() else {
        return none;
    };
    if is(name, "auth") {
        1..end
    } else if begins(words, "acl setuser") {
        3.min(end)..end
    } else if begins(words, "config set") {
        let is_secret = |word: &&Vec<u8>| {
            [
                "masterauth",
                "masteruser",
                "requirepass",
                "tls-key-file-pass",
                "tls-client-key-file-pass",
            ]
            .iter()
            .any(|name| is(word, name))
        };
        // Parameters and values in turn; whatever follows a secret one is hidden with it.
        match words
            .iter()
            .skip(2)
            .step_by(2)
            .position(|word| is_secret(&word))
        {
            Some(at) => (3 + 2 * at).min(end)..end,
            None => none,
        }
    } else if is(name, "hello") {
        behind(words, 1, &["auth"])
    } else if is(name, "migrate") {
        behind(words, 6, &["auth", "auth2"])
    } else {
        none
    }
}

/// Everything behind one of some words, looked for from `first` on.
fn behind(words: &[Vec<u8>], first: usize, names: &[&str]) -> std::ops::Range<usize> {
    let end = words.len();
    let is_one = |word: &Vec<u8>| names.iter().any(|name| is(word, name));
    match words.iter().skip(first).position(is_one) {
        Some(at) => (first + at + 1).min(end)..end,
        None => end..end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::split;

    fn of(line: &str) -> Vec<Vec<u8>> {
        split(line.as_bytes()).expect("well formed")
    }

    #[test]
    fn answers_are_told_by_the_words_of_the_request() {
        for (line, expected) in [
            ("get k", Answer::Reply),
            ("INFO", Answer::Text),
            ("info all", Answer::Text),
            ("client list type normal", Answer::Text),
            ("client kill", Answer::Reply),
            ("cluster info", Answer::Text),
            ("cluster info x", Answer::Reply),
            ("latency graph", Answer::Reply),
            ("latency graph command", Answer::Text),
            ("Monitor", Answer::Monitor),
            ("psubscribe *", Answer::Subscription),
            ("shutdown nosave", Answer::End),
            ("psync ? -1", Answer::Replication),
        ] {
            assert_eq!(answer(&of(line)), expected, "{line}");
        }
        assert_eq!(answer(&[]), Answer::Reply);
    }

    #[test]
    fn secrets_are_found_also_in_what_is_not_complete() {
        for (line, expected) in [
            ("", 0..0),
            ("get k", 2..2),
            ("auth", 1..1),
            ("AUTH p", 1..2),
            ("auth user p", 1..3),
            ("acl setuser", 2..2),
            ("acl setuser u", 3..3),
            ("acl setuser u on >p", 3..5),
            ("config set maxmemory 1", 4..4),
            ("config set requirepass", 3..3),
            ("config set maxmemory 1 requirepass p", 5..6),
            ("config set maxmemory requirepass", 4..4),
            ("hello 3 setname x", 4..4),
            ("hello 3 auth u p", 3..5),
            ("migrate h 1 k 0 10 copy auth p", 8..9),
            ("migrate h 1 k 0 10 AUTH2 u p", 7..9),
            ("migrate h 1 auth 0 10", 6..6),
        ] {
            assert_eq!(secret_words(&of(line)), expected, "{line}");
        }
    }
}
