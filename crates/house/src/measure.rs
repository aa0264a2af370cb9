//! The numbers of one crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::cut::without_tests;
use crate::graph::Graph;
use crate::outline::outline;
use crate::shapes::{riddle_words, silent_arms, tuple_parameters};
use crate::tokens::tokens;
use crate::tree::{Edge, Tree};

/// Lines are at most this wide, in characters.
const WIDEST_LINE: usize = 110;
/// Files have at most so many lines; longer ones count by each line beyond.
const LONGEST_FILE: usize = 600;
/// Functions have at most so many lines, from `fn` to the brace that ends them; longer ones count by each
/// line beyond.
const LONGEST_FUNCTION: usize = 80;

/// A number that may not grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Number {
    /// `crate.what`.
    pub name: String,
    /// How it is today.
    pub value: usize,
    /// What it is made of.
    pub parts: BTreeMap<String, Part>,
}

/// A part of a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// What it adds to the number.
    pub count: usize,
    /// What helps to find it.
    pub hint: String,
}

impl Number {
    fn of(name: String, parts: BTreeMap<String, Part>) -> Self {
        let value = parts.values().map(|part| part.count).sum();
        Self { name, value, parts }
    }
}

/// All numbers about the text of a crate's files, its tests and examples too: by path, and what is written
/// there.
pub fn texts(name: &str, files: &BTreeMap<String, String>) -> Vec<Number> {
    let mut wide = BTreeMap::new();
    let mut long = BTreeMap::new();
    let mut functions: BTreeMap<String, Part> = BTreeMap::new();
    let mut tuples = BTreeMap::new();
    let mut silent = BTreeMap::new();
    let mut riddles = BTreeMap::new();
    for (path, text) in files {
        let lines: Vec<_> = text
            .lines()
            .enumerate()
            .filter(|(_, line)| is_wide(line))
            .map(|(at, _)| at + 1)
            .collect();
        if !lines.is_empty() {
            wide.insert(
                path.clone(),
                Part {
                    count: lines.len(),
                    hint: list(&lines, "lines"),
                },
            );
        }
        let length = text.lines().count();
        if length > LONGEST_FILE {
            long.insert(
                path.clone(),
                Part {
                    count: length - LONGEST_FILE,
                    hint: format!("{length} lines"),
                },
            );
        }
        let tokens = tokens(text);
        add(&mut tuples, path, tuple_parameters(&tokens));
        add(&mut silent, path, silent_arms(&tokens));
        add(&mut riddles, path, riddle_words(text));
        for function in outline(&tokens).functions {
            if function.lines > LONGEST_FUNCTION {
                let part = functions
                    .entry(format!("{path} {}", function.name))
                    .or_default();
                part.count += function.lines - LONGEST_FUNCTION;
                part.hint = format!("line {}, {} lines", function.line, function.lines);
            }
        }
    }
    vec![
        Number::of(format!("{name}.wide_lines"), wide),
        Number::of(format!("{name}.long_files"), long),
        Number::of(format!("{name}.long_functions"), functions),
        Number::of(format!("{name}.tuple_parameters"), tuples),
        Number::of(format!("{name}.silent_arms_over_kinds"), silent),
        Number::of(format!("{name}.riddle_words"), riddles),
    ]
}

/// Lines of code of a crate's product, without comments and without tests in the same files.
pub fn product_lines(files: &BTreeMap<String, String>) -> usize {
    let product = files.iter().filter(|(path, _)| path.starts_with("src/"));
    let lines = product.map(|(_, text)| {
        let tokens = without_tests(&tokens(text));
        let lines: BTreeSet<_> = tokens.iter().map(|token| token.line).collect();
        lines.len()
    });
    lines.sum()
}

/// Adds a file's part of a number, if there is any.
fn add(parts: &mut BTreeMap<String, Part>, path: &str, lines: Vec<usize>) {
    if !lines.is_empty() {
        let part = Part {
            count: lines.len(),
            hint: list(&lines, "lines"),
        };
        parts.insert(path.to_owned(), part);
    }
}

fn is_wide(line: &str) -> bool {
    line.chars().count() > WIDEST_LINE
}

fn list(lines: &[usize], what: &str) -> String {
    let shown: Vec<_> = lines.iter().take(12).map(ToString::to_string).collect();
    let rest = if lines.len() > shown.len() {
        ", ..."
    } else {
        ""
    };
    format!("{what} {}{rest}", shown.join(", "))
}

/// The numbers about names and files of a crate.
pub fn files(name: &str, tree: &Tree, edges: &[Edge]) -> Vec<Number> {
    let mut types = BTreeMap::new();
    for (of, files) in tree.public_types() {
        if files.len() > 1 {
            types.insert(
                of.to_owned(),
                Part {
                    count: files.len() - 1,
                    hint: files.join(", "),
                },
            );
        }
    }
    let all: Vec<_> = edges
        .iter()
        .map(|edge| (edge.from.as_str(), edge.to.as_str(), edge))
        .collect();
    let mut graph = Graph::default();
    for node in tree.files() {
        graph.add_node(node);
    }
    for (from, to, _) in &all {
        graph.add(from, to);
    }
    let cycles = graph.cycles();
    let largest = cycles.first().map_or(&[][..], std::slice::from_ref);
    vec![
        cycle(format!("{name}.cycle_of_files"), largest, &all),
        cycle(format!("{name}.files_in_cycles"), &cycles, &all),
        Number::of(format!("{name}.types_of_one_name"), types),
    ]
}

/// The files of cycles, each with an arrow into its cycle and one out of it.
fn cycle(name: String, cycles: &[BTreeSet<String>], arrows: &[(&str, &str, &Edge)]) -> Number {
    let mut parts = BTreeMap::new();
    for (members, member) in cycles
        .iter()
        .flat_map(|cycle| cycle.iter().map(move |member| (cycle, member)))
    {
        let inside =
            |from: &str, to: &str| from != to && members.contains(from) && members.contains(to);
        let out = arrows
            .iter()
            .find(|(from, to, _)| from == member && inside(from, to));
        let back = arrows
            .iter()
            .find(|(from, to, _)| to == member && inside(from, to));
        let edges: Vec<_> = back
            .into_iter()
            .chain(out)
            .map(|(_, _, edge)| *edge)
            .collect();
        parts.insert(
            member.clone(),
            Part {
                count: 1,
                hint: show(&edges),
            },
        );
    }
    Number::of(name, parts)
}

fn show(edges: &[&Edge]) -> String {
    let show = |edge: &&Edge| {
        format!(
            "{}:{} names {} of {}",
            edge.from, edge.line, edge.item, edge.to
        )
    };
    let mut shown: Vec<_> = edges.iter().take(3).map(show).collect();
    if edges.len() > shown.len() {
        shown.push(format!("{} more", edges.len() - shown.len()));
    }
    shown.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(numbers: &'a [Number], name: &str) -> &'a Number {
        numbers
            .iter()
            .find(|number| number.name == name)
            .expect("the number is made")
    }

    #[test]
    fn lines_files_and_functions_at_their_bounds() {
        let function = |lines: usize| format!("fn f{lines}() {{\n{}}}\n", "\n".repeat(lines - 2));
        let files = BTreeMap::from([
            (
                "wide".to_owned(),
                format!("{}\n{}\n", "é".repeat(110), "e".repeat(111)),
            ),
            ("long".to_owned(), "\n".repeat(601)),
            ("short".to_owned(), "\n".repeat(600)),
            ("functions".to_owned(), function(80) + &function(81)),
        ]);
        let numbers = texts("a", &files);
        let parts = |name| {
            value(&numbers, name)
                .parts
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(parts("a.wide_lines"), ["wide"]);
        assert_eq!(
            value(&numbers, "a.wide_lines").parts["wide"].hint,
            "lines 2"
        );
        assert_eq!(parts("a.long_files"), ["long"]);
        assert_eq!(parts("a.long_functions"), ["functions f81"]);
        let values: Vec<_> = numbers.iter().map(|number| number.value).collect();
        assert_eq!(values, [1, 1, 1, 0, 0, 0]);
    }

    #[test]
    fn lines_of_the_product() {
        let files = [
            (
                "src/a.rs",
                "// a\nfn f() {\n\n    g();\n}\n#[cfg(test)]\nmod tests {\n}\n",
            ),
            ("tests/b.rs", "fn g() {}\n"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        assert_eq!(product_lines(&BTreeMap::from(files)), 3);
    }

    #[test]
    fn cycles_between_files() {
        let files = [
            ("main.rs", "mod low; mod high;"),
            (
                "low.rs",
                "use crate::high::deep::H; pub struct L; pub struct Same;",
            ),
            (
                "high/mod.rs",
                "pub mod deep; use crate::low::L; impl L { pub fn m(&self) {} }",
            ),
            (
                "high/deep.rs",
                "pub struct H; pub(crate) struct Same; struct L2; fn f(l: X) { l.m() }",
            ),
        ];
        let tree = Tree::of_texts(&files);
        let edges = tree.edges(&BTreeSet::new());
        let numbers = files_of(&tree, &edges);
        let values: Vec<_> = numbers
            .iter()
            .map(|number| (number.name.as_str(), number.value))
            .collect();
        let expected = [
            // high/mod.rs -> low.rs -> high/deep.rs, and from there back by the method.
            ("a.cycle_of_files", 3),
            ("a.files_in_cycles", 3),
            ("a.types_of_one_name", 1),
        ];
        assert_eq!(values, expected);
    }

    fn files_of(tree: &Tree, edges: &[Edge]) -> Vec<Number> {
        files("a", tree, edges)
    }
}
