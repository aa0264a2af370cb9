//! Classes of keyspace events, and the letters of `notify-keyspace-events` that name them.

/// Publish to the channel of the key.
pub(crate) const KEYSPACE: u32 = 1;
/// Publish to the channel of the event.
pub(crate) const KEYEVENT: u32 = 1 << 1;
/// Commands of no type.
pub(crate) const GENERIC: u32 = 1 << 2;
pub(crate) const STRING: u32 = 1 << 3;
pub(crate) const LIST: u32 = 1 << 4;
pub(crate) const SET: u32 = 1 << 5;
pub(crate) const HASH: u32 = 1 << 6;
pub(crate) const SORTED_SET: u32 = 1 << 7;
pub(crate) const EXPIRED: u32 = 1 << 8;
pub(crate) const EVICTED: u32 = 1 << 9;
pub(crate) const STREAM: u32 = 1 << 10;
/// A read found no key.
pub(crate) const MISSED: u32 = 1 << 11;
pub(crate) const MODULE: u32 = 1 << 12;
/// A key was made.
pub(crate) const NEW: u32 = 1 << 13;
/// Classes of the letter A: all but NEW and MISSED.
const ALL: u32 =
    GENERIC | STRING | LIST | SET | HASH | SORTED_SET | EXPIRED | EVICTED | STREAM | MODULE;

/// In the order in which CONFIG GET prints them.
const LETTERS: &[(char, u32)] = &[
    ('A', ALL),
    ('g', GENERIC),
    ('$', STRING),
    ('l', LIST),
    ('s', SET),
    ('h', HASH),
    ('z', SORTED_SET),
    ('x', EXPIRED),
    ('e', EVICTED),
    ('t', STREAM),
    ('d', MODULE),
    ('n', NEW),
    ('K', KEYSPACE),
    ('E', KEYEVENT),
    ('m', MISSED),
];

/// The classes that letters name.
pub(crate) fn parse(text: &str) -> Option<u32> {
    text.chars().try_fold(0, |classes, letter| {
        let (_, class) = LETTERS.iter().find(|(known, _)| *known == letter)?;
        Some(classes | class)
    })
}

/// The letters that name classes.
pub(crate) fn letters(classes: u32) -> String {
    let mut left = classes;
    let mut text = String::new();
    for &(letter, class) in LETTERS {
        if left & class == class {
            text.push(letter);
            left &= !class;
        }
    }
    text
}
