//! What Tab offers: commands, subcommands, tokens, keys, settings, topics of help.
//!
//! Names are offered in the case in which the word was begun.

use super::keys::SeenKeys;
use super::line::bar;
use super::local;
use crate::commands::{Catalog, progress};
use crate::format::quoted;
use crate::request::is;
use crate::words::{Ending, Word, scan};

/// What may stand where the cursor is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Completion {
    /// Where in the line it begins.
    pub(super) start: usize,
    pub(super) candidates: Vec<String>,
}

/// Completes the word before `pos`.
pub(super) fn complete(line: &str, pos: usize, catalog: &Catalog, keys: &SeenKeys) -> Completion {
    let typed = &line[..pos];
    let mut words = scan(typed.as_bytes());
    let partial = match words.last() {
        Some(word) if word.end == pos => words.pop(),
        _ => None,
    };
    let start = partial.as_ref().map_or(pos, |word| word.start);
    if words.iter().any(|word| word.ending != Ending::Proper) || bar(&words).is_some() {
        return Completion::default();
    }
    // `5 INCR` begins behind the number.
    if words.first().is_some_and(is_number) {
        words.remove(0);
    }
    let words: Vec<Vec<u8>> = words.into_iter().map(|word| word.bytes).collect();
    let begun = partial.as_ref().map_or(&[][..], |word| &word.bytes);
    let mut candidates = match words.first() {
        None => names(catalog, begun),
        Some(name) if is(name, "help") => topics(catalog, &words[1..], begun),
        Some(name) if name.starts_with(b":") => local::preference_words(&words)
            .iter()
            .filter(|word| starts(word.as_bytes(), begun))
            .map(|&word| word.to_owned())
            .collect(),
        Some(_) => arguments(catalog, keys, &words, partial.as_ref()),
    };
    if let [only] = &mut candidates[..] {
        only.push(' ');
    }
    Completion { start, candidates }
}

fn is_number(word: &Word) -> bool {
    !word.quoted && !word.bytes.is_empty() && word.bytes.iter().all(u8::is_ascii_digit)
}

/// Whether a name begins like this, in any case.
fn starts(name: &[u8], begun: &[u8]) -> bool {
    name.len() >= begun.len() && name[..begun.len()].eq_ignore_ascii_case(begun)
}

/// A name in the case in which it was begun: upper case unless there are small letters and no capitals.
fn cased(name: &str, begun: &[u8]) -> String {
    let is_small = begun.iter().any(u8::is_ascii_lowercase);
    if is_small && !begun.iter().any(u8::is_ascii_uppercase) {
        name.to_ascii_lowercase()
    } else {
        name.to_ascii_uppercase()
    }
}

/// Commands, and the words that only have a meaning here.
fn names(catalog: &Catalog, begun: &[u8]) -> Vec<String> {
    let own = local::NAMES
        .iter()
        .filter(|name| starts(name.as_bytes(), begun));
    let mut found: Vec<String> = catalog
        .all()
        .map(|command| command.name.as_str())
        .filter(|name| !name.contains(' ') && starts(name.as_bytes(), begun))
        .map(|name| cased(name, begun))
        .collect();
    // Nothing begun means everything, and these are the least of it.
    if !begun.is_empty() {
        found.extend(own.map(|&name| name.to_owned()));
    }
    found
}

/// Groups, and commands of one word or two.
fn topics(catalog: &Catalog, words: &[Vec<u8>], begun: &[u8]) -> Vec<String> {
    match words {
        [] if begun.starts_with(b"@") => catalog
            .groups()
            .iter()
            .map(|group| format!("@{group}"))
            .filter(|group| starts(group.as_bytes(), begun))
            .collect(),
        [] => catalog
            .all()
            .map(|command| command.name.as_str())
            .filter(|name| !name.contains(' ') && starts(name.as_bytes(), begun))
            .map(|name| cased(name, begun))
            .collect(),
        [name] => subcommands(catalog, name, begun),
        _ => Vec::new(),
    }
}

fn subcommands(catalog: &Catalog, name: &[u8], begun: &[u8]) -> Vec<String> {
    let name = String::from_utf8_lossy(name);
    catalog
        .subcommands(&name)
        .filter_map(|command| command.name.split(' ').nth(1))
        .filter(|sub| starts(sub.as_bytes(), begun))
        .map(|sub| cased(sub, begun))
        .collect()
}

/// Subcommands, tokens and keys.
fn arguments(
    catalog: &Catalog,
    keys: &SeenKeys,
    words: &[Vec<u8>],
    partial: Option<&Word>,
) -> Vec<String> {
    let begun = partial.map_or(&[][..], |word| &word.bytes);
    let is_plain = partial.is_none_or(|word| !word.quoted);
    if is(&words[0], "peek") && words.len() == 1 {
        return matching_keys(keys, begun, is_plain);
    }
    let Some((command, used)) = catalog.find(words) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if is_plain && expects_setting(words) {
        let settings = catalog.settings.iter();
        found.extend(
            settings
                .filter(|name| starts(name.as_bytes(), begun))
                .cloned(),
        );
    }
    if words.len() == 1 && is_plain {
        found.extend(subcommands(catalog, &words[0], begun));
    }
    let expected = progress(&command.args, &words[used..]);
    if is_plain {
        let tokens = expected.tokens.iter();
        let tokens = tokens.filter(|token| !token.is_empty() && starts(token.as_bytes(), begun));
        found.extend(tokens.map(|token| cased(token, begun)));
    }
    let is_key = command
        .keys
        .indices(words.len() + 1)
        .any(|at| at == words.len());
    if expected.key || is_key {
        found.extend(matching_keys(keys, begun, is_plain));
    }
    found
}

/// Whether the name of a setting is next: CONFIG SET has a value behind each.
fn expects_setting(words: &[Vec<u8>]) -> bool {
    let [config, sub, arguments @ ..] = words else {
        return false;
    };
    let is_name = is(sub, "get") || is(sub, "set") && arguments.len() % 2 == 0;
    is(config, "config") && is_name
}

/// Keys that begin like this, as they can be typed.
fn matching_keys(keys: &SeenKeys, begun: &[u8], is_plain: bool) -> Vec<String> {
    let matching = keys.iter().filter(|key| key.starts_with(begun));
    matching.map(|key| typed_key(key, is_plain)).collect()
}

/// A key as it can be typed: plain if that is possible, and if it was begun like that.
fn typed_key(key: &[u8], is_plain: bool) -> String {
    let is_harmless = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'');
    let can_be_plain = !key.is_empty() && key.iter().all(is_harmless) && !key.starts_with(b"|");
    if is_plain && can_be_plain {
        String::from_utf8_lossy(key).into_owned()
    } else {
        quoted(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(line: &str) -> String {
        let mut catalog = Catalog::builtin();
        catalog.settings = vec!["maxmemory".to_owned(), "maxmemory-policy".to_owned()];
        let mut keys = SeenKeys::default();
        let key_words: Vec<Vec<u8>> = ["mget", "user:1", "user 2", "other"]
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect();
        keys.note_command(&key_words, &catalog);
        let completion = complete(line, line.len(), &catalog, &keys);
        assert!(completion.candidates.is_empty() || completion.start <= line.len());
        completion.candidates.join(",")
    }

    #[test]
    fn commands_are_completed_in_the_case_in_which_they_were_begun() {
        assert_eq!(offered("strl"), "strlen ");
        assert_eq!(offered("STRL"), "STRLEN ");
        assert_eq!(offered("Strl"), "STRLEN ");
        assert_eq!(offered("getr"), "getrange ");
        assert_eq!(offered("INCR"), "INCR,INCRBY,INCRBYFLOAT");
        assert_eq!(offered("5 STRL"), "STRLEN ");
        assert_eq!(offered("pee"), "peek ");
        assert_eq!(offered(":s"), ":set ");
        assert_eq!(offered("nosuch"), "");
    }

    #[test]
    fn subcommands_and_tokens_are_completed() {
        assert_eq!(offered("config res"), "resetstat ");
        assert_eq!(offered("CONFIG RE"), "RESETSTAT,REWRITE");
        assert_eq!(offered("set a b N"), "NX ");
        assert_eq!(offered("set a b nx ge"), "get ");
        assert_eq!(offered("set a b ex 5 P"), "");
        assert_eq!(offered("scan 0 ma"), "match ");
    }

    #[test]
    fn keys_are_completed_and_quoted_where_they_have_to_be() {
        assert_eq!(offered("get o"), "other ");
        assert_eq!(offered("get us"), "\"user 2\",user:1");
        assert_eq!(offered("get \"us"), "\"user 2\",\"user:1\"");
        assert_eq!(offered("mget a b o"), "other ");
        assert_eq!(offered("set o"), "other ");
        assert_eq!(offered("set a o"), "");
        assert_eq!(offered("peek us"), "\"user 2\",user:1");
        assert_eq!(offered("get "), "other,\"user 2\",user:1");
    }

    #[test]
    fn settings_are_completed() {
        assert_eq!(offered("config set maxm"), "maxmemory,maxmemory-policy");
        assert_eq!(offered("CONFIG SET MAXMEMORY-"), "maxmemory-policy ");
        assert_eq!(offered("config set maxmemory maxm"), "");
        assert_eq!(
            offered("config set maxmemory 0 maxmemory-"),
            "maxmemory-policy "
        );
        assert_eq!(offered("config get port maxmemory-"), "maxmemory-policy ");
        assert_eq!(offered("config set \"maxm"), "");
        assert_eq!(offered("config resetstat maxm"), "");
    }

    #[test]
    fn help_and_preferences_have_words_of_their_own() {
        assert_eq!(offered("help @str"), "@stream,@string");
        assert_eq!(offered("help @stri"), "@string ");
        assert_eq!(offered("help strl"), "strlen ");
        assert_eq!(offered("HELP CONFIG RES"), "RESETSTAT ");
        assert_eq!(offered(":set no"), "nohints,nopager");
        assert_eq!(offered(":set output r"), "raw ");
    }

    #[test]
    fn a_program_behind_a_bar_is_the_shells() {
        assert_eq!(offered("get k | g"), "");
        assert_eq!(offered("get \"k\"x g"), "");
    }

    #[test]
    fn the_word_begins_where_it_begins() {
        let catalog = Catalog::builtin();
        let line = "set k v nx and more";
        let completion = complete(line, 10, &catalog, &SeenKeys::default());
        assert_eq!(completion.start, 8);
        assert_eq!(completion.candidates, ["nx "]);
    }
}
