//! What one file defines, and what it names.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{Kind, Token};
use crate::uses::{Import, imports};

/// A module inside the file, as the names of the inline modules around; empty: the file itself.
pub type Scope = Vec<String>;

/// What one file holds.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// Modules in files of their own: the scope that declares each, and its name.
    pub modules: Vec<(Scope, String)>,
    /// Modules with a body in this file.
    pub inline_modules: BTreeSet<Scope>,
    /// What `use` brings into each scope, with lines.
    pub imports: Vec<(Scope, Import, usize)>,
    /// Names of items that are defined in a scope itself.
    pub items: BTreeMap<Scope, BTreeSet<String>>,
    /// Types that are visible outside of their module.
    pub public_types: BTreeSet<String>,
    /// All structs, enums and unions of the file.
    pub types: BTreeSet<String>,
    /// All functions, methods too, in the order of their lines.
    pub functions: Vec<Function>,
    /// Paths of two words or more outside of `use`, with lines.
    pub paths: Vec<(Scope, Vec<String>, usize)>,
    /// Names behind a dot and before arguments, with the line of the first of each.
    pub calls: BTreeMap<String, usize>,
}

/// A function with a body, or one that a trait asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The type whose inherent `impl` block it stands in.
    pub of: Option<String>,
    /// Whether it has a `pub`.
    pub is_public: bool,
    /// Where `fn` stands.
    pub line: usize,
    /// From there to the brace that ends it.
    pub lines: usize,
}

/// What a brace has opened.
enum Block {
    Module(String),
    /// The type, if the block is inherent.
    Impl(Option<String>),
    /// The place in `functions`.
    Function(usize),
    Other,
}

/// Reads the tokens of a file.
pub fn outline(tokens: &[Token]) -> Outline {
    let mut reader = Reader {
        tokens,
        at: 0,
        blocks: Vec::new(),
        next: None,
        outline: Outline::default(),
    };
    while reader.at < tokens.len() {
        reader.step();
    }
    reader.outline
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    blocks: Vec<Block>,
    /// What the brace at the place opens.
    next: Option<(usize, Block)>,
    outline: Outline,
}

impl<'a> Reader<'a> {
    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    /// The name behind a keyword.
    fn name(&self) -> Option<String> {
        let token = self.tokens.get(self.at + 1)?;
        (token.kind == Kind::Word).then(|| token.text.to_owned())
    }

    fn scope(&self) -> Scope {
        let modules = self.blocks.iter().filter_map(|block| match block {
            Block::Module(name) => Some(name.clone()),
            _ => None,
        });
        modules.collect()
    }

    fn is_in_module(&self) -> bool {
        self.blocks
            .iter()
            .all(|block| matches!(block, Block::Module(_)))
    }

    fn step(&mut self) {
        let token = self.tokens[self.at];
        match (token.kind, token.text) {
            (Kind::Sign, "{") => self.open(),
            (Kind::Sign, "}") => self.close(),
            (Kind::Word, "mod") => self.module(),
            (Kind::Word, "use") if self.is_at_item() => return self.import(),
            (Kind::Word, "fn") => self.function(),
            (Kind::Word, "impl") if self.is_at_item() => self.implementation(),
            (Kind::Word, "struct" | "enum" | "union" | "trait" | "type" | "const" | "static") => {
                self.item()
            }
            (Kind::Word, "macro_rules") if self.text(self.at + 1) == "!" => {
                let name = self.text(self.at + 2).to_owned();
                self.outline
                    .items
                    .entry(self.scope())
                    .or_default()
                    .insert(name);
            }
            (Kind::Word, _) => return self.word(),
            _ => {}
        }
        self.at += 1;
    }

    /// Whether an item may begin here: `impl` also begins a type.
    fn is_at_item(&self) -> bool {
        let Some(before) = self.at.checked_sub(1) else {
            return true;
        };
        matches!(
            self.text(before),
            "{" | "}" | ";" | "]" | ")" | "pub" | "unsafe"
        )
    }

    fn open(&mut self) {
        let block = match self.next.take() {
            Some((at, block)) if at == self.at => block,
            other => {
                self.next = other;
                Block::Other
            }
        };
        self.blocks.push(block);
        if let Some(Block::Module(_)) = self.blocks.last() {
            let scope = self.scope();
            self.outline.inline_modules.insert(scope);
        }
    }

    fn close(&mut self) {
        if let Some(Block::Function(place)) = self.blocks.pop() {
            let function = &mut self.outline.functions[place];
            function.lines = self.tokens[self.at].line - function.line + 1;
        }
    }

    /// The next brace or semicolon outside of brackets.
    fn end_of_head(&self) -> usize {
        let mut depth = 0_usize;
        for (offset, token) in self.tokens[self.at..].iter().enumerate() {
            match token.text {
                "(" | "[" if token.kind == Kind::Sign => depth += 1,
                ")" | "]" if token.kind == Kind::Sign => depth = depth.saturating_sub(1),
                "{" | ";" if token.kind == Kind::Sign && depth == 0 => return self.at + offset,
                _ => {}
            }
        }
        self.tokens.len()
    }

    fn module(&mut self) {
        let Some(name) = self.name() else { return };
        match self.text(self.at + 2) {
            "{" => self.next = Some((self.at + 2, Block::Module(name))),
            ";" => self.outline.modules.push((self.scope(), name)),
            _ => {}
        }
    }

    fn import(&mut self) {
        let line = self.tokens[self.at].line;
        let start = self.at + 1;
        let length = self.tokens[start..]
            .iter()
            .take_while(|token| !token.is(";"))
            .count();
        let scope = self.scope();
        for import in imports(&self.tokens[start..start + length]) {
            self.outline.imports.push((scope.clone(), import, line));
        }
        self.at = start + length;
    }

    fn function(&mut self) {
        let Some(name) = self.name() else { return };
        if self.is_in_module() {
            self.outline
                .items
                .entry(self.scope())
                .or_default()
                .insert(name.clone());
        }
        let of = match self.blocks.last() {
            Some(Block::Impl(of)) => of.clone(),
            _ => None,
        };
        let line = self.tokens[self.at].line;
        let end = self.end_of_head();
        let lines = self
            .tokens
            .get(end)
            .map_or(1, |token| token.line - line + 1);
        if self.text(end) == "{" {
            self.next = Some((end, Block::Function(self.outline.functions.len())));
        }
        let is_public = self.is_public();
        self.outline.functions.push(Function {
            name,
            of,
            is_public,
            line,
            lines,
        });
    }

    /// Whether `pub` stands before the keyword here, and what may stand between.
    fn is_public(&self) -> bool {
        let mut at = self.at;
        while let Some(before) = at.checked_sub(1) {
            at = before;
            match self.text(at) {
                "const" | "async" | "unsafe" | "extern" => {}
                ")" => {
                    while at > 0 && self.text(at) != "(" {
                        at -= 1;
                    }
                    return at > 0 && self.text(at - 1) == "pub";
                }
                text => return text == "pub",
            }
        }
        false
    }

    fn implementation(&mut self) {
        let end = self.end_of_head();
        if self.text(end) == "{" {
            let of = inherent(&self.tokens[self.at + 1..end]);
            self.next = Some((end, Block::Impl(of)));
        }
    }

    fn item(&mut self) {
        let keyword = self.text(self.at);
        let Some(mut name) = self.name() else { return };
        if name == "mut" {
            name = self.text(self.at + 2).to_owned();
        }
        // `const fn`, `*const T`, and a variable that is called `union`.
        if ["fn", "unsafe", "async", "extern"].contains(&name.as_str()) || !self.is_in_module() {
            return;
        }
        if matches!(keyword, "struct" | "enum" | "union") {
            self.outline.types.insert(name.clone());
        }
        if !matches!(keyword, "const" | "static") && self.is_public() {
            self.outline.public_types.insert(name.clone());
        }
        self.outline
            .items
            .entry(self.scope())
            .or_default()
            .insert(name);
    }

    /// A path, or the name of a method that is called.
    fn word(&mut self) {
        let start = self.at;
        let line = self.tokens[start].line;
        let mut path = vec![self.text(start).to_owned()];
        self.at += 1;
        while self.text(self.at) == "::" {
            match self.tokens.get(self.at + 1) {
                Some(next) if next.kind == Kind::Word => {
                    path.push(next.text.to_owned());
                    self.at += 2;
                }
                _ => break,
            }
        }
        let is_behind = |sign| {
            start
                .checked_sub(1)
                .is_some_and(|before| self.text(before) == sign)
        };
        if is_behind(".") && path.len() == 1 && ["(", "::"].contains(&self.text(self.at)) {
            let name = path.swap_remove(0);
            self.outline.calls.entry(name).or_insert(line);
        } else if path.len() > 1 && !is_behind("::") {
            self.outline.paths.push((self.scope(), path, line));
        }
    }
}

/// The type of an inherent `impl` block, from what stands between `impl` and its brace; none: it is a
/// trait's.
fn inherent(head: &[Token]) -> Option<String> {
    let mut depth = 0_usize;
    let mut last = None;
    for (at, token) in head.iter().enumerate() {
        match token.text {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            "where" if depth == 0 => break,
            "for" if depth == 0 && !head.get(at + 1).is_some_and(|next| next.is("<")) => {
                return None;
            }
            _ if depth == 0 && token.kind == Kind::Word => last = Some(token.text.to_owned()),
            _ => {}
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    fn of(source: &str) -> Outline {
        outline(&tokens(source))
    }

    fn lines(source: &str) -> Vec<(String, usize, usize)> {
        of(source)
            .functions
            .into_iter()
            .map(|one| (one.name, one.line, one.lines))
            .collect()
    }

    #[test]
    fn lengths_of_functions() {
        let source = [
            "/// Doc.",
            "#[inline]",
            "fn a(",
            "    b: [u8; 2],",
            ") -> fn(u8) {",
            "    fn c() {}",
            "    \"}\";",
            "}",
            "trait D {",
            "    fn e();",
            "}",
        ]
        .join("\n");
        let expected = [("a", 3, 6), ("c", 6, 1), ("e", 10, 1)];
        assert_eq!(
            lines(&source),
            expected.map(|(name, line, lines)| (name.to_owned(), line, lines))
        );
    }

    #[test]
    fn closures_and_blocks_end_no_function() {
        assert_eq!(lines("fn a() {\n b(|| {\n });\n if c {\n }\n}")[0].2, 6);
    }

    #[test]
    fn methods_know_their_type() {
        let source =
            "impl<'a, T: Fn() -> u8> A<'a, T> where T: B { pub(crate) const fn c() {} fn d() {} }
            impl E for F { fn g() {} } impl h::I { pub fn j(k: impl L) -> impl M {} }";
        let all: Vec<_> = of(source)
            .functions
            .into_iter()
            .map(|one| (one.name, one.of, one.is_public))
            .collect();
        let expected = [
            ("c", "A", true),
            ("d", "A", false),
            ("g", "", false),
            ("j", "I", true),
        ];
        let expected = expected.map(|(name, of, is_public)| {
            (
                name.to_owned(),
                Some(of.to_owned()).filter(|of| !of.is_empty()),
                is_public,
            )
        });
        assert_eq!(all, expected);
    }

    #[test]
    fn items_of_modules() {
        let outline = of("mod a; pub mod b { use super::c; struct D; fn e() { const F: u8 = 0; mod g; } }
            pub(crate) struct H; pub type I = u8; impl H { const J: u8 = 1; } macro_rules! k { () => {} }");
        let names = |scope: &[&str]| -> Vec<_> {
            let scope: Scope = scope.iter().map(|name| (*name).to_owned()).collect();
            outline.items[&scope].iter().cloned().collect()
        };
        assert_eq!(outline.modules[0], (vec![], "a".to_owned()));
        assert_eq!(names(&["b"]), ["D", "e"]);
        assert_eq!(names(&[]), ["H", "I", "k"]);
        assert_eq!(outline.imports[0].0, ["b"]);
        assert_eq!(outline.public_types.iter().collect::<Vec<_>>(), ["H", "I"]);
    }

    #[test]
    fn paths_and_calls() {
        let outline = of(
            "use a::b; fn c() { crate::d::e::<F>(); g.h::<u8>(); i.j(); k.l; super::M::n().o() }",
        );
        let paths: Vec<_> = outline
            .paths
            .iter()
            .map(|(_, path, _)| path.join("::"))
            .collect();
        assert_eq!(paths, ["crate::d::e", "super::M::n"]);
        assert_eq!(outline.calls.keys().collect::<Vec<_>>(), ["h", "j", "o"]);
    }
}
