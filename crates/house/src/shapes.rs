//! Searches for code and comments that are hard to read: tuples as parameters, silent arms of a `match`,
//! vague words. Each search returns the numbers of the lines found.

use crate::tokens::Token;

/// The variants of the enum of kinds of values. Other enums of the name `Kind` have none of these names.
const KINDS: [&str; 5] = ["String", "List", "Set", "Hash", "SortedSet"];
/// Words of comments that stand where a noun belongs.
const RIDDLES: [&str; 6] = ["who", "whom", "whose", "what", "whatever", "behind"];

/// Parameters that are tuples taken apart, such as `(a, b): (bool, bool)`: a struct is missing there.
pub fn tuple_parameters(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        if tokens[at].text != "fn" {
            continue;
        }
        let Some(open) = parameters(tokens, at) else {
            continue;
        };
        let mut depth = 0_usize;
        let mut is_first = false;
        for token in &tokens[open..] {
            match token.text {
                "(" if depth == 1 && is_first => found.push(token.line),
                _ => {}
            }
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            is_first = depth == 1 && matches!(token.text, "(" | ",");
            if depth == 0 {
                break;
            }
        }
    }
    found
}

/// The parenthesis that opens the parameters of a function.
fn parameters(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let mut angles = 0_i32;
    for (place, token) in tokens.iter().enumerate().skip(at + 1) {
        match token.text {
            "<" => angles += 1,
            // The `>` of an arrow, as in the bound `F: Fn(u8) -> u8`, closes no list.
            ">" if tokens[place - 1].text != "-" => angles -= 1,
            "(" if angles <= 0 => return Some(place),
            "{" | ";" | "}" if angles <= 0 => return None,
            _ => {}
        }
    }
    None
}

/// Arms `_ =>` of a `match` that has arms for kinds of values: a new kind would take them silently.
pub fn silent_arms(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        if tokens[at].text != "match" {
            continue;
        }
        let Some(body) = (at..tokens.len()).find(|&place| tokens[place].text == "{") else {
            break;
        };
        let mut depth = 0_usize;
        let mut names_kinds = false;
        let mut silent = None;
        let mut in_pattern = true;
        for (place, token) in tokens.iter().enumerate().skip(body) {
            match token.text {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                "Kind" if in_pattern => names_kinds |= is_kind(&tokens[place..]),
                "_" if in_pattern && depth == 1 && is_arrow(&tokens[place + 1..]) => {
                    silent = Some(token.line);
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if depth == 1 && is_arrow(&tokens[place..]) {
                in_pattern = false;
            } else if depth == 1 && matches!(token.text, "," | "}") {
                in_pattern = true;
            }
        }
        found.extend(silent.filter(|_| names_kinds));
    }
    found
}

fn text<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}

fn is_arrow(tokens: &[Token<'_>]) -> bool {
    text(tokens, 0) == "=>" || (text(tokens, 0) == "=" && text(tokens, 1) == ">")
}

/// `Kind::List`, in one token for the colons or two.
fn is_kind(tokens: &[Token<'_>]) -> bool {
    (2..=3).any(|at| text(tokens, at - 1).ends_with(':') && KINDS.contains(&text(tokens, at)))
}

/// Words of comments that stand where a noun belongs, each with its line.
pub fn riddle_words(source: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, line) in source.lines().enumerate() {
        let Some((_, comment)) = line.split_once("//") else {
            continue;
        };
        let words = comment.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let riddles = words.filter(|word| RIDDLES.contains(&word.to_lowercase().as_str()));
        found.extend(riddles.map(|_| at + 1));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    #[test]
    fn tuples_among_parameters() {
        let source = "fn a(x: (u8, u8)) {}\n\
            fn b(&self, (x, y): (u8, u8), z: u8) {}\n\
            fn c<F: Fn(u8) -> u8>((x, y): (u8, u8), [(p, q)]: [(u8, u8); 1]) {}\n\
            fn d() { let e = |(a, b): (u8, u8)| f((a, b)); }\n";
        assert_eq!(tuple_parameters(&tokens(source)), [2, 3]);
    }

    #[test]
    fn arms_that_a_new_kind_would_take() {
        let source = "match kind {\n Kind::List => 1,\n _ => 2,\n}\n\
            match kind {\n Kind::List => 1,\n Kind::Hash => match x { _ => 1 },\n}\n\
            match row {\n Kind::Flag => 1,\n _ => 2,\n}\n\
            match x {\n 1 => f(Kind::List),\n _ => 2,\n}\n\
            match (a, b) {\n (Kind::Set, 1) | (Kind::Hash, _) => 1,\n _ => 2,\n}\n";
        assert_eq!(silent_arms(&tokens(source)), [3, 19]);
    }

    #[test]
    fn words_in_comments_alone() {
        let source = "let what = 1; // who is `what`\nlet whatever = 2;\n/// Behind\n";
        assert_eq!(riddle_words(source), [1, 1, 3]);
    }
}
