//! Leaves out what only tests are built of: each item, field or statement below `#[cfg(test)]`, and no more.

use crate::tokens::{Kind, Token};

/// What starts an item that ends with its block or a semicolon, not with a comma.
const ITEMS: &[&str] = &[
    "pub",
    "fn",
    "mod",
    "use",
    "struct",
    "enum",
    "union",
    "trait",
    "impl",
    "type",
    "const",
    "static",
    "let",
    "unsafe",
    "async",
    "extern",
    "macro_rules",
];

/// The tokens without those of tests.
pub fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        match attribute(&tokens[at..]) {
            Some(length) if is_of_tests(&tokens[at..at + length]) => {
                at += length;
                at += item(&tokens[at..]);
            }
            Some(length) => {
                kept.extend_from_slice(&tokens[at..at + length]);
                at += length;
            }
            None => {
                kept.push(tokens[at]);
                at += 1;
            }
        }
    }
    kept
}

/// The length of the attribute at the start: `#[...]`.
fn attribute(tokens: &[Token]) -> Option<usize> {
    let is_one = tokens.first()?.is("#") && tokens.get(1)?.is("[");
    is_one.then(|| 1 + group(&tokens[1..]))
}

/// The length of what a bracket opens, with both brackets.
fn group(tokens: &[Token]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        depth = depth_after(depth, token);
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

fn depth_after(depth: usize, token: &Token) -> usize {
    if token.kind != Kind::Sign {
        return depth;
    }
    match token.text {
        "(" | "[" | "{" => depth + 1,
        ")" | "]" | "}" => depth.saturating_sub(1),
        _ => depth,
    }
}

/// `#[cfg(test)]` and `#[cfg(all(test, ...))]`; what `any(..., test)` marks is in the program too.
fn is_of_tests(attribute: &[Token]) -> bool {
    let words: Vec<_> = attribute.iter().map(|token| token.text).collect();
    matches!(
        words.as_slice(),
        ["#", "[", "cfg", "(", "test", ..] | ["#", "[", "cfg", "(", "all", "(", "test", ..]
    )
}

/// The length of the item at the start, with further attributes.
fn item(tokens: &[Token]) -> usize {
    let mut at = 0;
    while let Some(length) = attribute(&tokens[at..]) {
        at += length;
    }
    let ends_with_comma = tokens
        .get(at)
        .is_some_and(|first| !ITEMS.contains(&first.text));
    while let Some(token) = tokens.get(at) {
        if token.is("{") {
            return at + group(&tokens[at..]);
        }
        if token.is("(") || token.is("[") {
            at += group(&tokens[at..]);
            continue;
        }
        // The end of what holds the item.
        if token.is("}") || token.is(")") || token.is("]") {
            return at;
        }
        at += 1;
        if token.is(";") || (token.is(",") && ends_with_comma) {
            return at;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    fn kept(source: &str) -> String {
        let tokens = tokens(source);
        let texts: Vec<_> = without_tests(&tokens)
            .iter()
            .map(|token| token.text)
            .collect();
        texts.join(" ")
    }

    #[test]
    fn modules_of_tests_are_cut_and_what_follows_stays() {
        assert_eq!(
            kept("a; #[cfg(test)] mod tests { fn b() { '}'; } } c;"),
            "a ; c ;"
        );
        assert_eq!(
            kept("#[cfg(test)] mod tests; use crate::x;"),
            "use crate :: x ;"
        );
        assert_eq!(
            kept("#[cfg(all(test, unix))] #[path = \"x\"] mod a; b"),
            "b"
        );
    }

    #[test]
    fn functions_with_generics_are_cut_whole() {
        assert_eq!(
            kept("#[cfg(test)] pub fn a<B, C>(d: [u8; 2]) -> E { f } g"),
            "g"
        );
    }

    #[test]
    fn fields_and_statements_are_cut_alone() {
        assert_eq!(
            kept("struct A { #[cfg(test)] b: u8, c: u8 }"),
            "struct A { c : u8 }"
        );
        assert_eq!(
            kept("struct A { c: u8, #[cfg(test)] b: u8 }"),
            "struct A { c : u8 , }"
        );
        assert_eq!(kept("{ #[cfg(test)] A.set(b, c); d }"), "{ d }");
    }

    #[test]
    fn what_is_in_the_program_stays() {
        let source = "#[cfg(any(unix, test))] mod a;";
        assert_eq!(kept(source).replace(' ', ""), source.replace(' ', ""));
        assert_eq!(kept("#[cfg(not(test))] b"), "# [ cfg ( not ( test ) ) ] b");
    }
}
