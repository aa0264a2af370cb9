//! The modules of one crate, and which file names what of which other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use crate::cut::without_tests;
use crate::outline::{Outline, Scope, outline};
use crate::tokens::tokens;
use crate::uses::Import;

/// The files of a crate that are in the program: those that `mod` reaches from `main.rs` or `lib.rs`, without
/// tests.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// By path below `src`.
    files: BTreeMap<String, File>,
    /// Which file holds a module, and in which scope.
    modules: BTreeMap<Vec<String>, (String, Scope)>,
}

#[derive(Clone, Debug)]
struct File {
    module: Vec<String>,
    outline: Outline,
}

/// One file names something of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The file that names.
    pub from: String,
    /// The file that defines.
    pub to: String,
    /// What is defined there: an item, `Type::method` for a method, or `self` for the module.
    pub item: String,
    /// Where it is named.
    pub line: usize,
    /// Whether it is a method of an `impl` block that stands in another file than its type: nothing is
    /// imported then.
    pub is_method: bool,
}

impl Tree {
    /// Reads a crate's `src`.
    pub fn read(src: &Path) -> io::Result<Self> {
        let root = if src.join("main.rs").exists() {
            "main.rs"
        } else {
            "lib.rs"
        };
        Self::from_files(root, |path| fs::read_to_string(src.join(path)))
    }

    /// A crate of these files, whose root is `main.rs`.
    #[cfg(test)]
    pub(crate) fn of_texts(files: &[(&str, &str)]) -> Self {
        let text = |path: &str| files.iter().find(|(name, _)| *name == path);
        let read = |path: &str| match text(path) {
            Some((_, text)) => Ok((*text).to_owned()),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        Self::from_files("main.rs", read).expect("all files are there")
    }

    /// Reads a crate from its root file on.
    pub fn from_files(root: &str, read: impl Fn(&str) -> io::Result<String>) -> io::Result<Self> {
        let mut tree = Self::default();
        let mut waiting = vec![(root.to_owned(), Vec::new())];
        while let Some((path, module)) = waiting.pop() {
            let source = read(&path)?;
            let outline = outline(&without_tests(&tokens(&source)));
            let folder = folder_of(&path);
            tree.modules
                .insert(module.clone(), (path.clone(), Scope::new()));
            for scope in &outline.inline_modules {
                tree.modules.insert(
                    [module.as_slice(), scope].concat(),
                    (path.clone(), scope.clone()),
                );
            }
            for (scope, name) in &outline.modules {
                let place: String = folder
                    .iter()
                    .chain(scope)
                    .map(|part| format!("{part}/"))
                    .collect();
                let mut file = format!("{place}{name}.rs");
                if read(&file).is_err() {
                    file = format!("{place}{name}/mod.rs");
                }
                waiting.push((
                    file,
                    [module.as_slice(), scope, std::slice::from_ref(name)].concat(),
                ));
            }
            tree.files.insert(path, File { module, outline });
        }
        Ok(tree)
    }

    /// The files, sorted.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The names of all functions.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        let all = self.files.values().flat_map(|file| &file.outline.functions);
        all.map(|function| function.name.as_str())
    }

    /// Public types, and the files that define one of the name.
    pub fn public_types(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut types: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (path, file) in &self.files {
            for name in &file.outline.public_types {
                types.entry(name).or_default().push(path);
            }
        }
        types
    }

    /// Who names what of whom, sorted. A module that is imported is none where its items are named through
    /// it: an item belongs to the file that defines it, however many `pub use` it went through.
    ///
    /// `taken` holds names of functions of other crates: a call of such a name says nothing about the crate's
    /// own methods.
    pub fn edges(&self, taken: &BTreeSet<String>) -> Vec<Edge> {
        let mut edges = BTreeSet::new();
        for (path, file) in &self.files {
            for (scope, import, line) in &file.outline.imports {
                self.add(&mut edges, path, (scope, import.path.as_slice(), *line));
            }
            for (scope, words, line) in &file.outline.paths {
                self.add(&mut edges, path, (scope, words.as_slice(), *line));
            }
        }
        self.add_methods(&mut edges, taken);
        let room_pairs: BTreeSet<(String, String)> = edges
            .iter()
            .filter(|edge| edge.item != "self")
            .map(|edge| (edge.from.clone(), room(&edge.to).to_owned()))
            .collect();
        edges
            .into_iter()
            .filter(|edge| {
                edge.item != "self"
                    || !room_pairs.contains(&(edge.from.clone(), room(&edge.to).to_owned()))
            })
            .collect()
    }

    fn add(
        &self,
        edges: &mut BTreeSet<Edge>,
        from: &str,
        (scope, path, line): (&Scope, &[String], usize),
    ) {
        let module = [self.files[from].module.as_slice(), scope].concat();
        let found = self
            .absolute(&module, path)
            .and_then(|absolute| self.locate(&absolute, 0));
        if let Some((to, item)) = found.filter(|(to, _)| to != from) {
            edges.insert(Edge {
                from: from.to_owned(),
                to,
                item,
                line,
                is_method: false,
            });
        }
    }

    /// The words from the crate's root on; none: the path leads out of the crate, or to something of the same
    /// module.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let first = path.first()?;
        match first.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module, &path[1..]].concat()),
            "super" => {
                let levels = path.iter().take_while(|word| *word == "super").count();
                let above = module.len().checked_sub(levels)?;
                Some([&module[..above], &path[levels..]].concat())
            }
            _ => {
                let child = [module, std::slice::from_ref(first)].concat();
                if self.modules.contains_key(&child) {
                    return Some([module, path].concat());
                }
                // A module that was imported. A type that was imported is known from its import.
                if !first.starts_with(char::is_lowercase) || path.len() < 2 {
                    return None;
                }
                let import = self.import(module, first)?;
                if import.path.first() == Some(first) {
                    return None;
                }
                let start = self.absolute(module, &import.path)?;
                Some([&start, &path[1..]].concat())
            }
        }
    }

    fn import(&self, module: &[String], name: &str) -> Option<&Import> {
        let (path, scope) = self.modules.get(module)?;
        let imports = &self.files[path].outline.imports;
        imports
            .iter()
            .find(|(at, import, _)| at == scope && import.name == name)
            .map(|(_, import, _)| import)
    }

    /// The file that defines what the words from the root on name, and the item.
    fn locate(&self, words: &[String], depth: usize) -> Option<(String, String)> {
        let mut length = 0;
        while length < words.len() && self.modules.contains_key(&words[..=length]) {
            length += 1;
        }
        let module = &words[..length];
        let (path, scope) = self.modules.get(module)?;
        let Some(item) = words.get(length) else {
            return Some((path.clone(), "self".to_owned()));
        };
        let is_defined = self.files[path]
            .outline
            .items
            .get(scope)
            .is_some_and(|items| items.contains(item));
        if !is_defined
            && depth < 8
            && let Some(import) = self.import(module, item)
        {
            let start = self.absolute(module, &import.path)?;
            return self.locate(&[&start, &words[length + 1..]].concat(), depth + 1);
        }
        Some((path.clone(), item.clone()))
    }

    /// Calls of public methods that stand in another file than their type. A call is known by the method's
    /// name alone, where one function of the crate has the name.
    fn add_methods(&self, edges: &mut BTreeSet<Edge>, taken: &BTreeSet<String>) {
        let mut homes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut definers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (path, file) in &self.files {
            for name in &file.outline.types {
                homes.entry(name).or_default().insert(path);
            }
            for function in &file.outline.functions {
                definers.entry(&function.name).or_default().insert(path);
            }
        }
        for (path, file) in &self.files {
            for function in file
                .outline
                .functions
                .iter()
                .filter(|function| function.is_public)
            {
                let Some(of) = function.of.as_deref() else {
                    continue;
                };
                let is_foreign = homes
                    .get(of)
                    .is_some_and(|files| !files.contains(path.as_str()));
                let is_known =
                    definers[function.name.as_str()].len() == 1 && !taken.contains(&function.name);
                if !is_foreign || !is_known {
                    continue;
                }
                for (from, caller) in self.files.iter().filter(|(from, _)| *from != path) {
                    if let Some(&line) = caller.outline.calls.get(&function.name) {
                        let item = format!("{of}::{}", function.name);
                        edges.insert(Edge {
                            from: from.clone(),
                            to: path.clone(),
                            item,
                            line,
                            is_method: true,
                        });
                    }
                }
            }
        }
    }
}

/// The top-level module that a file belongs to.
pub fn room(path: &str) -> &str {
    let first = path.split('/').next().unwrap_or(path);
    first.strip_suffix(".rs").unwrap_or(first)
}

/// The folder in which a file's modules lie.
fn folder_of(path: &str) -> Vec<String> {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts: Vec<String> = stem.split('/').map(str::to_owned).collect();
    let is_root = parts.len() == 1 && ["main", "lib"].contains(&parts[0].as_str());
    if is_root || parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The edges of a crate of these files, as `from -> to item`.
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of_texts(files);
        let taken = ["taken".to_owned()].into();
        let edges = tree.edges(&taken);
        edges
            .iter()
            .map(|edge| format!("{} -> {} {}", edge.from, edge.to, edge.item))
            .collect()
    }

    #[test]
    fn paths_of_all_kinds() {
        let files = [
            ("main.rs", "mod a; mod b; mod c;"),
            (
                "a.rs",
                "use crate::{b::{B, deep::{self, D}}, c}; fn x() { deep::f(); c::g(); std::h(); }",
            ),
            ("b/mod.rs", "pub mod deep; pub struct B;"),
            (
                "b/deep.rs",
                "use super::B; pub struct D; pub fn f() { super::super::c::g() }",
            ),
            ("c.rs", "pub fn g() {} fn h() { crate::a::x() }"),
        ];
        let expected = [
            "a.rs -> b/deep.rs D",
            "a.rs -> b/deep.rs f",
            "a.rs -> b/mod.rs B",
            "a.rs -> c.rs g",
            "b/deep.rs -> b/mod.rs B",
            "b/deep.rs -> c.rs g",
            "c.rs -> a.rs x",
        ];
        assert_eq!(edges(&files), expected);
    }

    #[test]
    fn an_item_belongs_to_the_file_that_defines_it() {
        let files = [
            ("main.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::X; fn f(y: crate::b::Z) {}"),
            ("b.rs", "pub use crate::c::{X, Y as Z};"),
            ("c.rs", "pub struct X; pub struct Y;"),
        ];
        assert_eq!(
            edges(&files),
            [
                "a.rs -> c.rs X",
                "a.rs -> c.rs Y",
                "b.rs -> c.rs X",
                "b.rs -> c.rs Y"
            ]
        );
    }

    #[test]
    fn inline_modules_have_scopes_of_their_own() {
        let files = [
            ("main.rs", "mod a; mod b;"),
            (
                "a.rs",
                "mod inner { use super::super::b::B; pub(super) struct C; } use inner::C;",
            ),
            ("b.rs", "pub struct B;"),
        ];
        assert_eq!(edges(&files), ["a.rs -> b.rs B"]);
    }

    #[test]
    fn tests_comments_and_strings_name_nothing() {
        let files = [
            ("main.rs", "mod a; mod b; #[cfg(test)] mod nowhere;"),
            (
                "a.rs",
                "/// [`crate::b::B`]\nconst S: &str = \"crate::b::B\";
                #[cfg(test)] mod tests { use crate::b::B; }",
            ),
            ("b.rs", "pub struct B;"),
        ];
        assert!(edges(&files).is_empty());
    }

    #[test]
    fn methods_of_foreign_blocks() {
        let files = [
            ("main.rs", "mod a; mod b; mod c;"),
            ("a.rs", "pub struct A; impl A { pub fn home(&self) {} }"),
            (
                "b.rs",
                "use crate::a::A; impl A { pub fn far(&self) {} fn own(&self) {} pub fn two(&self) {}
                    pub fn taken(&self) {} }",
            ),
            (
                "c.rs",
                "fn two() {} fn f(a: X) { a.home(); a.far(); a.own(); a.two(); a.taken(); }",
            ),
        ];
        assert_eq!(edges(&files), ["b.rs -> a.rs A", "c.rs -> b.rs A::far"]);
    }

    #[test]
    fn rooms() {
        assert_eq!((room("a.rs"), room("b/c/mod.rs")), ("a", "b"));
        assert_eq!(folder_of("main.rs"), Vec::<String>::new());
        assert_eq!(folder_of("a/mod.rs"), ["a"]);
        assert_eq!(folder_of("a/b.rs"), ["a", "b"]);
    }
}
