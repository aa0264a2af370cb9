//! The arguments of a command as text, and which of them a line has already.
//!
//! ```text
//!   key value [NX|XX] [EX seconds|PX milliseconds]      text
//!   SET k v EX                                          a line
//!              seconds [NX|XX]                          what may follow
//! ```
//!
//! Arguments in brackets may come in any order up to the next one that has to be there. Where a line could be
//! read in several ways, tokens count more than words, and what repeats takes whatever comes.

use super::command::{Arg, ArgKind};

/// What may follow the words of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Following {
    /// As text.
    pub(crate) rest: String,
    /// Tokens that may be the next word.
    pub(crate) tokens: Vec<String>,
    /// A key may be the next word.
    pub(crate) key: bool,
    /// The line has words that belong to no argument.
    pub(crate) is_lost: bool,
}

/// Arguments as text.
pub(crate) fn text(args: &[Arg]) -> String {
    join(args.iter(), " ")
}

/// What may follow `words`, which are all words behind the command's name.
pub(crate) fn progress<W: AsRef<[u8]>>(args: &[Arg], words: &[W]) -> Following {
    let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
    let mut found = read_list(args, &words);
    found.expected.is_lost = found.used < words.len();
    found.expected
}

fn join<'a>(args: impl Iterator<Item = &'a Arg>, separator: &str) -> String {
    let texts: Vec<String> = args.map(arg_text).collect();
    texts.join(separator)
}

fn arg_text(arg: &Arg) -> String {
    let token = token_text(arg);
    let value = value_text(arg);
    let space = if token.is_empty() || value.is_empty() {
        ""
    } else {
        " "
    };
    let mut text = format!("{token}{space}{value}");
    if arg.is_multiple {
        text = format!("{text} {}", repeat_text(arg));
    }
    if arg.is_optional {
        text = format!("[{text}]");
    }
    text
}

fn token_text(arg: &Arg) -> &str {
    match arg.token.as_deref() {
        Some("") => "\"\"",
        Some(token) => token,
        None => "",
    }
}

/// What stands behind the token.
fn value_text(arg: &Arg) -> String {
    match arg.kind {
        ArgKind::PureToken => String::new(),
        ArgKind::OneOf => join(arg.args.iter(), "|"),
        ArgKind::Block => join(arg.args.iter(), " "),
        ArgKind::Word | ArgKind::Key => arg.name.clone(),
    }
}

/// That more of the same may follow.
fn repeat_text(arg: &Arg) -> String {
    match (arg.repeats_token, token_text(arg)) {
        (true, token) if !token.is_empty() => format!("[{token} {} ...]", value_text(arg)),
        _ => format!("[{} ...]", value_text(arg)),
    }
}

/// What a list of arguments, or one of them, has taken of the words.
struct Reading {
    used: usize,
    /// The words ended before it did.
    is_partial: bool,
    /// Only where the words ended within or behind it.
    expected: Following,
}

/// Reads words as a list of arguments, as many as belong to it.
fn read_list(args: &[Arg], words: &[&[u8]]) -> Reading {
    let mut open = vec![true; args.len()];
    // Arguments before this one have had their turn.
    let mut start = 0;
    // One that may be repeated.
    let mut again: Option<usize> = None;
    let mut used = 0;
    while used < words.len() {
        let rest = &words[used..];
        let Some((at, reading)) = choose(args, &open, start, again, rest) else {
            break;
        };
        used += reading.used;
        open[at] = false;
        if !args[at].is_optional {
            start = at + 1;
        }
        again = args[at].is_multiple.then_some(at);
        if reading.is_partial {
            let mut expected = reading.expected;
            if args[at].is_multiple {
                append(&mut expected.rest, &repeat_text(&args[at]));
            }
            let behind = remainder(args, &open, start, None);
            append(&mut expected.rest, &behind.rest);
            return Reading {
                used,
                is_partial: true,
                expected,
            };
        }
    }
    let is_partial = (start..args.len()).any(|at| open[at] && !args[at].is_optional);
    Reading {
        used,
        is_partial,
        expected: remainder(args, &open, start, again),
    }
}

/// The argument that the next words are, tokens first.
fn choose(
    args: &[Arg],
    open: &[bool],
    start: usize,
    again: Option<usize>,
    words: &[&[u8]],
) -> Option<(usize, Reading)> {
    let turn = turn(args, open, start);
    for by_token in [true, false] {
        for at in again.into_iter().chain(turn.iter().copied()) {
            let is_repetition = again == Some(at);
            if let Some(reading) = read_arg(&args[at], words, by_token, is_repetition) {
                return Some((at, reading));
            }
        }
    }
    None
}

/// The arguments whose turn it is: all optional ones up to the next that has to be there, and that.
fn turn(args: &[Arg], open: &[bool], start: usize) -> Vec<usize> {
    let mut turn = Vec::new();
    for at in (start..args.len()).filter(|&at| open[at]) {
        turn.push(at);
        if !args[at].is_optional {
            break;
        }
    }
    turn
}

/// Reads words as one argument: either by its token, or as a word that may be anything.
fn read_arg(arg: &Arg, words: &[&[u8]], by_token: bool, is_repetition: bool) -> Option<Reading> {
    let needs_token = arg.token.is_some() && (!is_repetition || arg.repeats_token);
    if !needs_token {
        return read_value(arg, words, by_token);
    }
    let token = arg.token.as_deref().unwrap_or_default();
    if !by_token || !words.first()?.eq_ignore_ascii_case(token.as_bytes()) {
        return None;
    }
    let whole = |used| Reading {
        used,
        is_partial: false,
        expected: Following::default(),
    };
    if arg.kind == ArgKind::PureToken {
        return Some(whole(1));
    }
    if words.len() == 1 {
        return Some(Reading {
            used: 1,
            is_partial: true,
            expected: Following {
                rest: value_text(arg),
                ..firsts_of_value(arg)
            },
        });
    }
    let value = [true, false]
        .into_iter()
        .find_map(|by_token| read_value(arg, &words[1..], by_token));
    match value {
        Some(value) => Some(Reading {
            used: value.used + 1,
            ..value
        }),
        // The token alone is right; what follows is not what should.
        None => Some(whole(1)),
    }
}

/// Reads what stands behind a token, or an argument without one.
fn read_value(arg: &Arg, words: &[&[u8]], by_token: bool) -> Option<Reading> {
    match arg.kind {
        ArgKind::PureToken => None,
        ArgKind::Word | ArgKind::Key => (!by_token && !words.is_empty()).then(|| Reading {
            used: 1,
            is_partial: false,
            expected: Following::default(),
        }),
        ArgKind::OneOf => arg
            .args
            .iter()
            .find_map(|choice| read_arg(choice, words, by_token, false)),
        ArgKind::Block => {
            let first = turn(&arg.args, &vec![true; arg.args.len()], 0);
            let begins = first
                .into_iter()
                .any(|at| read_arg(&arg.args[at], words, by_token, false).is_some());
            begins.then(|| read_list(&arg.args, words))
        }
    }
}

/// What may follow when the words have ended between arguments.
fn remainder(args: &[Arg], open: &[bool], start: usize, again: Option<usize>) -> Following {
    let mut expected = Following::default();
    if let Some(at) = again {
        append(&mut expected.rest, &repeat_text(&args[at]));
        let firsts = if args[at].repeats_token {
            firsts(&args[at])
        } else {
            firsts_of_value(&args[at])
        };
        add(&mut expected, firsts);
    }
    for at in turn(args, open, start) {
        add(&mut expected, firsts(&args[at]));
    }
    let left = (start..args.len()).filter(|&at| open[at]);
    append(&mut expected.rest, &join(left.map(|at| &args[at]), " "));
    expected
}

/// What an argument may begin with.
fn firsts(arg: &Arg) -> Following {
    match &arg.token {
        Some(token) => Following {
            tokens: vec![token.clone()],
            ..Following::default()
        },
        None => firsts_of_value(arg),
    }
}

fn firsts_of_value(arg: &Arg) -> Following {
    let mut expected = Following::default();
    match arg.kind {
        ArgKind::Key => expected.key = true,
        ArgKind::Word | ArgKind::PureToken => {}
        ArgKind::OneOf => {
            for choice in &arg.args {
                add(&mut expected, firsts(choice));
            }
        }
        ArgKind::Block => {
            for at in turn(&arg.args, &vec![true; arg.args.len()], 0) {
                add(&mut expected, firsts(&arg.args[at]));
            }
        }
    }
    expected
}

fn add(expected: &mut Following, more: Following) {
    expected.key |= more.key;
    expected.tokens.extend(more.tokens);
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(name: &str) -> Arg {
        Arg {
            name: name.to_owned(),
            ..Arg::default()
        }
    }

    fn key(name: &str) -> Arg {
        Arg {
            kind: ArgKind::Key,
            ..word(name)
        }
    }

    fn token(name: &str) -> Arg {
        Arg {
            kind: ArgKind::PureToken,
            token: Some(name.to_owned()),
            ..word(name)
        }
    }

    fn with_token(arg: Arg, token: &str) -> Arg {
        Arg {
            token: Some(token.to_owned()),
            ..arg
        }
    }

    fn of(kind: ArgKind, args: Vec<Arg>) -> Arg {
        Arg {
            kind,
            args,
            ..word("")
        }
    }

    fn optional(arg: Arg) -> Arg {
        Arg {
            is_optional: true,
            ..arg
        }
    }

    fn multiple(arg: Arg) -> Arg {
        Arg {
            is_multiple: true,
            ..arg
        }
    }

    fn set() -> Vec<Arg> {
        vec![
            key("key"),
            word("value"),
            optional(of(ArgKind::OneOf, vec![token("NX"), token("XX")])),
            optional(token("GET")),
            optional(of(
                ArgKind::OneOf,
                vec![
                    with_token(word("seconds"), "EX"),
                    with_token(word("milliseconds"), "PX"),
                    token("KEEPTTL"),
                ],
            )),
        ]
    }

    fn zadd() -> Vec<Arg> {
        vec![
            key("key"),
            optional(of(ArgKind::OneOf, vec![token("NX"), token("XX")])),
            multiple(of(ArgKind::Block, vec![word("score"), word("member")])),
        ]
    }

    fn zunion() -> Vec<Arg> {
        vec![
            word("numkeys"),
            multiple(key("key")),
            optional(multiple(with_token(word("weight"), "WEIGHTS"))),
            optional(with_token(
                of(ArgKind::OneOf, vec![token("SUM"), token("MIN")]),
                "AGGREGATE",
            )),
        ]
    }

    fn sort() -> Vec<Arg> {
        let get = Arg {
            repeats_token: true,
            ..multiple(with_token(word("pattern"), "GET"))
        };
        let limit = of(ArgKind::Block, vec![word("offset"), word("count")]);
        vec![
            key("key"),
            optional(with_token(limit, "LIMIT")),
            optional(get),
            optional(token("ALPHA")),
        ]
    }

    #[test]
    fn arguments_are_written_as_people_know_them() {
        assert_eq!(
            text(&set()),
            "key value [NX|XX] [GET] [EX seconds|PX milliseconds|KEEPTTL]"
        );
        assert_eq!(text(&zadd()), "key [NX|XX] score member [score member ...]");
        assert_eq!(
            text(&zunion()),
            "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN]"
        );
        assert_eq!(
            text(&sort()),
            "key [LIMIT offset count] [GET pattern [GET pattern ...]] [ALPHA]"
        );
        let empty = of(ArgKind::OneOf, vec![key("key"), with_token(token(""), "")]);
        assert_eq!(text(&[empty]), "key|\"\"");
        assert_eq!(text(&[]), "");
    }

    fn rest(args: &[Arg], line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected = progress(args, &words);
        let lost = if expected.is_lost { " LOST" } else { "" };
        format!("{}{lost}", expected.rest)
    }

    #[test]
    fn what_was_typed_is_no_longer_shown() {
        let all = "[NX|XX] [GET] [EX seconds|PX milliseconds|KEEPTTL]";
        for (line, expected) in [
            ("", format!("key value {all}")),
            ("k", format!("value {all}")),
            ("k v", all.to_owned()),
            ("k v ex", "seconds [NX|XX] [GET]".to_owned()),
            ("k v EX 5", "[NX|XX] [GET]".to_owned()),
            ("k v EX 5 nx", "[GET]".to_owned()),
            ("k v nx get keepttl", String::new()),
            ("k v foo", format!("{all} LOST")),
            (
                "k v nx xx",
                "[GET] [EX seconds|PX milliseconds|KEEPTTL] LOST".to_owned(),
            ),
        ] {
            assert_eq!(rest(&set(), line), expected, "SET {line}");
        }
        for (line, expected) in [
            ("k", "[NX|XX] score member [score member ...]"),
            ("k nx", "score member [score member ...]"),
            ("k 1", "member [score member ...]"),
            ("k 1 m", "[score member ...]"),
            ("k 1 m 2", "member [score member ...]"),
            ("k nx 1 m 2 n", "[score member ...]"),
        ] {
            assert_eq!(rest(&zadd(), line), expected, "ZADD {line}");
        }
        for (line, expected) in [
            (
                "2 a",
                "[key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN]",
            ),
            (
                "2 a b",
                "[key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN]",
            ),
            ("2 a b weights", "weight [weight ...] [AGGREGATE SUM|MIN]"),
            ("2 a b weights 1 2", "[weight ...] [AGGREGATE SUM|MIN]"),
            ("2 a b aggregate", "SUM|MIN [WEIGHTS weight [weight ...]]"),
            ("2 a b aggregate min", "[WEIGHTS weight [weight ...]]"),
        ] {
            assert_eq!(rest(&zunion(), line), expected, "ZUNION {line}");
        }
        for (line, expected) in [
            (
                "k limit",
                "offset count [GET pattern [GET pattern ...]] [ALPHA]",
            ),
            ("k limit 0", "count [GET pattern [GET pattern ...]] [ALPHA]"),
            ("k get a", "[GET pattern ...] [LIMIT offset count] [ALPHA]"),
            (
                "k get a get",
                "pattern [GET pattern ...] [LIMIT offset count] [ALPHA]",
            ),
            ("k get a alpha", "[LIMIT offset count]"),
        ] {
            assert_eq!(rest(&sort(), line), expected, "SORT {line}");
        }
    }

    #[test]
    fn the_next_word_is_known() {
        let next = |args: &[Arg], line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let expected = progress(args, &words);
            (expected.tokens.join(" "), expected.key)
        };
        assert_eq!(next(&set(), ""), (String::new(), true));
        assert_eq!(next(&set(), "k"), (String::new(), false));
        assert_eq!(
            next(&set(), "k v"),
            ("NX XX GET EX PX KEEPTTL".to_owned(), false)
        );
        assert_eq!(next(&set(), "k v ex"), (String::new(), false));
        assert_eq!(next(&set(), "k v ex 5"), ("NX XX GET".to_owned(), false));
        assert_eq!(
            next(&zunion(), "2 a"),
            ("WEIGHTS AGGREGATE".to_owned(), true)
        );
        assert_eq!(
            next(&zunion(), "2 a aggregate"),
            ("SUM MIN".to_owned(), false)
        );
        assert_eq!(
            next(&sort(), "k get a"),
            ("GET LIMIT ALPHA".to_owned(), false)
        );
    }
}
