//! What `use` declarations name.

use crate::tokens::{Kind, Token};

/// One path of a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Its words; a `self` at the end of a group is left out, a `*` stays.
    pub path: Vec<String>,
    /// How the rest of the module calls it.
    pub name: String,
}

/// The paths of a tree: the tokens between `use` and the semicolon.
pub fn imports(tree: &[Token]) -> Vec<Import> {
    let mut found = Vec::new();
    read(tree, &[], &mut found);
    found
}

/// Reads one tree below a path; returns the number of its tokens.
fn read(tree: &[Token], prefix: &[String], found: &mut Vec<Import>) -> usize {
    let mut path = prefix.to_vec();
    let mut at = 0;
    let mut alias = None;
    while let Some(token) = tree.get(at) {
        match token.text {
            "{" => return at + read_group(&tree[at..], &path, found),
            "," | "}" => break,
            "as" => {
                alias = tree.get(at + 1).map(|name| name.text.to_owned());
                at += 2;
            }
            "self" if path.len() == prefix.len() && !prefix.is_empty() => at += 1,
            "*" => {
                path.push("*".to_owned());
                at += 1;
            }
            _ => {
                if token.kind == Kind::Word {
                    path.push(token.text.to_owned());
                }
                at += 1;
            }
        }
    }
    if let Some(last) = path.last() {
        let name = alias.unwrap_or_else(|| last.clone());
        found.push(Import { path, name });
    }
    at
}

fn read_group(tree: &[Token], path: &[String], found: &mut Vec<Import>) -> usize {
    let mut at = 1;
    while let Some(token) = tree.get(at) {
        match token.text {
            "}" => return at + 1,
            "," => at += 1,
            _ => at += read(&tree[at..], path, found),
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    fn read(source: &str) -> Vec<String> {
        let show = |import: Import| {
            let path = import.path.join("::");
            if import.path.last() == Some(&import.name) {
                path
            } else {
                format!("{path} as {}", import.name)
            }
        };
        imports(&tokens(source)).into_iter().map(show).collect()
    }

    #[test]
    fn a_path() {
        assert_eq!(read("crate::a::B"), ["crate::a::B"]);
        assert_eq!(read("super::a as b"), ["super::a as b"]);
        assert_eq!(read("self::a::*"), ["self::a::*"]);
    }

    #[test]
    fn groups_in_groups() {
        assert_eq!(
            read("crate::{a::{b, c::{self, D as E}}, f::*, g,}"),
            [
                "crate::a::b",
                "crate::a::c",
                "crate::a::c::D as E",
                "crate::f::*",
                "crate::g"
            ]
        );
        assert_eq!(read("{crate::a, super::b}"), ["crate::a", "super::b"]);
    }

    #[test]
    fn comments_in_groups() {
        assert_eq!(read("crate::{a, // b, c}\n d}"), ["crate::a", "crate::d"]);
    }
}
