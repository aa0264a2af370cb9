//! Directives as typed, first half: from configuration files and from the standard input.
//!
//! A line is blank, a comment (`#` first), or a directive: a name in any case and its words. `include PATH`
//! stands for the lines of another file, or of several if the name of the file has wildcards; a relative path
//! begins at the directory of the file that includes it. The meaning of a directive is decided elsewhere, so
//! that all mistakes of a start are reported at once.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::foreign;
use super::syntax;
use super::table::Row;
use crate::names::glob::{self, Case};

/// The most that is read of one file, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// How deep files may include one another, which also ends a file that includes itself.
const MAX_INCLUDE_DEPTH: usize = 16;

/// The directive that stands for the lines of another file.
pub(super) const INCLUDE: &str = "include";

/// Where something was typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    File { path: Rc<Path>, line: usize },
    StandardInput { line: usize },
    CommandLine,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { path, line } => write!(f, "{}:{line}", path.display()),
            Place::StandardInput { line } => write!(f, "standard input:{line}"),
            Place::CommandLine => f.write_str("command line"),
        }
    }
}

/// A setting's name and words, as typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Directive {
    pub(super) name: String,
    pub(super) words: Vec<String>,
    pub(super) place: Place,
}

impl fmt::Display for Directive {
    /// As it would be typed where it comes from, without anything that may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place == Place::CommandLine {
            f.write_str("--")?;
        }
        f.write_str(&self.name)?;
        if is_secret(&self.name) {
            return f.write_str(if self.words.is_empty() { "" } else { " ..." });
        }
        for word in &self.words {
            write!(f, " {}", syntax::quote(word))?;
        }
        Ok(())
    }
}

/// Whether the words of a directive must not be shown: a password, or something that looks like one
/// misspelled.
fn is_secret(name: &str) -> bool {
    let row = Row::find(name.as_bytes()).or_else(|| foreign::closest(name));
    let name = name.to_ascii_lowercase();
    row.is_some_and(Row::is_secret)
        || ["pass", "auth", "user"]
            .iter()
            .any(|part| name.contains(part))
}

/// Something that stops the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Problem {
    pub(super) place: String,
    /// Text of the mistake; empty if the place is enough.
    pub(super) typed: String,
    pub(super) wrong: String,
}

impl Problem {
    pub(super) fn with(directive: &Directive, wrong: impl Into<String>) -> Problem {
        Problem {
            place: directive.place.to_string(),
            typed: directive.to_string(),
            wrong: wrong.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.typed.is_empty() {
            write!(f, "{}: {}", self.place, self.wrong)
        } else {
            write!(f, "{}: '{}'\n  {}", self.place, self.typed, self.wrong)
        }
    }
}

/// Collects directives in the order in which they count.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) directives: Vec<Directive>,
    pub(super) problems: Vec<Problem>,
}

impl Collector {
    /// Takes the directives of a file and of those that it includes.
    pub(super) fn file(&mut self, path: &Path) {
        match read_limited(File::open(path)) {
            Ok(bytes) => self.text(&bytes, Some(path), 0),
            Err(error) => self.unreadable(path.display(), &error),
        }
    }

    /// Takes the directives of the standard input.
    pub(super) fn standard_input(&mut self, input: impl Read) {
        match read_limited(Ok(input)) {
            Ok(bytes) => self.text(&bytes, None, 0),
            Err(error) => self.unreadable("standard input", &error),
        }
    }

    /// Takes a directive, or what it includes. A relative path begins at the directory of the file that the
    /// directive comes `from`, if it comes from one.
    pub(super) fn directive(&mut self, directive: Directive, from: Option<&Path>) {
        self.expand(directive, from, 0);
    }

    fn unreadable(&mut self, what: impl fmt::Display, error: &io::Error) {
        self.problems.push(Problem {
            place: what.to_string(),
            typed: String::new(),
            wrong: format!("cannot be read: {error}"),
        });
    }

    /// Takes the lines of a file (the standard input if it has no path) that was included `depth` times over.
    fn text(&mut self, text: &[u8], path: Option<&Path>, depth: usize) {
        let path: Option<Rc<Path>> = path.map(Rc::from);
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line_number = index + 1;
            let place = match &path {
                Some(path) => Place::File {
                    path: path.clone(),
                    line: line_number,
                },
                None => Place::StandardInput { line: line_number },
            };
            match read_line(line, place) {
                Ok(Some(directive)) => self.expand(directive, path.as_deref(), depth),
                Ok(None) => {}
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    fn expand(&mut self, directive: Directive, from: Option<&Path>, depth: usize) {
        if !is_include(&directive.name) {
            self.directives.push(directive);
            return;
        }
        match self.include(&directive, from, depth) {
            Ok(()) => {}
            Err(wrong) => self.problems.push(Problem::with(&directive, wrong)),
        }
    }

    fn include(
        &mut self,
        directive: &Directive,
        from: Option<&Path>,
        depth: usize,
    ) -> Result<(), String> {
        let [path] = directive.words.as_slice() else {
            return Err("wrong number of arguments; include takes the path of one file".into());
        };
        if depth == MAX_INCLUDE_DEPTH {
            return Err(format!(
                "files include one another more than {MAX_INCLUDE_DEPTH} times over"
            ));
        }
        let path: PathBuf = match from.and_then(Path::parent) {
            Some(directory) => directory.join(path),
            None => path.into(),
        };
        for path in matching(&path)? {
            let bytes = read_limited(File::open(&path))
                .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
            self.text(&bytes, Some(&path), depth + 1);
        }
        Ok(())
    }
}

/// The files that a path with wildcards in its last part stands for, by name; there may be none. A path
/// without them stands for itself. Hidden files have to be named.
///
/// # Errors
/// The directory cannot be read.
fn matching(path: &Path) -> Result<Vec<PathBuf>, String> {
    let is_pattern = |name: &&OsStr| name.as_bytes().iter().any(|byte| b"*?[".contains(byte));
    let Some(pattern) = path.file_name().filter(is_pattern) else {
        return Ok(vec![path.to_owned()]);
    };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let unreadable = |error| format!("{} cannot be read: {error}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let is_hidden = name.as_bytes().starts_with(b".");
        if !is_hidden && glob::matches(pattern.as_bytes(), name.as_bytes(), Case::Sensitive) {
            files.push(directory.join(name));
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a directive of this name stands for a file.
pub(super) fn is_include(name: &str) -> bool {
    name.eq_ignore_ascii_case(INCLUDE)
}

/// Reads one line; nothing if it is blank or a comment.
///
/// # Errors
/// It is no sequence of words, or no text.
pub(super) fn read_line(line: &[u8], place: Place) -> Result<Option<Directive>, Problem> {
    let line = line.trim_ascii();
    if line.is_empty() || line[0] == b'#' {
        return Ok(None);
    }
    let refuse = |wrong: &str| Problem {
        place: place.to_string(),
        typed: shown(line),
        wrong: wrong.into(),
    };
    let words =
        syntax::split(line).map_err(|_| refuse("Unbalanced quotes in configuration line"))?;
    let words: Result<Vec<String>, _> = words.into_iter().map(String::from_utf8).collect();
    let mut words = words
        .map_err(|_| refuse("text must be valid UTF-8"))?
        .into_iter();
    let name = words.next().unwrap_or_default();
    Ok(Some(Directive {
        name,
        words: words.collect(),
        place,
    }))
}

/// A line that could not be read, for a message: its first word alone if the rest may be secret.
fn shown(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let name = line.split_whitespace().next().unwrap_or_default();
    if is_secret(name) {
        format!("{name} ...")
    } else {
        line.into_owned()
    }
}

fn read_limited(source: io::Result<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!(
            "it has more than {} MiB",
            MAX_FILE_BYTES >> 20
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::load::tests::Scratch;
    use super::*;

    fn collect(text: &str) -> Collector {
        let mut collector = Collector::default();
        collector.standard_input(text.as_bytes());
        collector
    }

    /// Name and words of each directive, and each problem.
    fn summary(collector: &Collector) -> (Vec<String>, Vec<String>) {
        let directives = collector.directives.iter();
        let problems = collector.problems.iter();
        (
            directives
                .map(|directive| format!("{} {directive}", directive.place))
                .collect(),
            problems.map(Problem::to_string).collect(),
        )
    }

    #[test]
    fn blank_lines_and_comments_are_no_directives() {
        let text = "# one\n\n   \t\n  # two 'three\nport 1\r\n#\n  Timeout   \"5\"  \nbind";
        let (directives, problems) = summary(&collect(text));
        assert_eq!(
            directives,
            [
                "standard input:5 port 1",
                "standard input:7 Timeout 5",
                "standard input:8 bind"
            ]
        );
        assert!(problems.is_empty());
    }

    #[test]
    fn a_comment_behind_a_directive_is_words() {
        let collector = collect("port 6379 # the port");
        assert_eq!(collector.directives[0].words.len(), 4);
    }

    #[test]
    fn lines_that_are_no_words_are_reported_with_the_others_kept() {
        let mut collector = Collector::default();
        collector.standard_input(&b"port 1\nbind \"a\ndir '\xff'\ntimeout 2\n# \xff\n"[..]);
        let (directives, problems) = summary(&collector);
        assert_eq!(
            directives,
            ["standard input:1 port 1", "standard input:4 timeout 2"]
        );
        assert_eq!(
            problems,
            [
                "standard input:2: 'bind \"a'\n  Unbalanced quotes in configuration line",
                "standard input:3: 'dir '\u{fffd}''\n  text must be valid UTF-8"
            ]
        );
    }

    #[test]
    fn passwords_are_not_shown() {
        for line in [
            "requirepass hidden",
            "REQUIREPASS hidden hidden",
            "requirpass hidden",
            "masterauth hidden",
            "user default on >hidden",
            "tls-key-file-pass hidden",
        ] {
            let collector = collect(line);
            let shown = collector.directives[0].to_string();
            assert!(
                shown.ends_with(" ...") && !shown.contains("hidden"),
                "{shown}"
            );
        }
        let collector = collect("requirepass \"hidden");
        let shown = collector.problems[0].to_string();
        assert!(!shown.contains("hidden"), "{shown}");
    }

    #[test]
    fn a_file_includes_others_relative_to_itself() {
        let scratch = Scratch::new();
        scratch.write(
            "sub/inner.conf",
            "timeout 2\ninclude deeper.conf\ntimeout 3\n",
        );
        scratch.write("sub/deeper.conf", "timeout 4");
        let path = scratch.write(
            "main.conf",
            "timeout 1\nInclude sub/inner.conf\ntimeout 5\n",
        );
        let mut collector = Collector::default();
        collector.file(&path);
        let timeouts: Vec<&str> = collector
            .directives
            .iter()
            .map(|directive| directive.words[0].as_str())
            .collect();
        assert_eq!(timeouts, ["1", "2", "4", "3", "5"]);
        let place = collector.directives[2].place.to_string();
        assert!(place.ends_with("/sub/deeper.conf:1"), "{place}");
    }

    #[test]
    fn wildcards_include_the_files_that_match_by_name() {
        let scratch = Scratch::new();
        for (name, timeout) in [("b.conf", 2), ("a.conf", 1), (".c.conf", 3), ("d.other", 4)] {
            scratch.write(&format!("conf.d/{name}"), &format!("timeout {timeout}\n"));
        }
        let text = "include conf.d/*.conf\ninclude conf.d/none*\ninclude nothing/*\n";
        let path = scratch.write("main.conf", text);
        let mut collector = Collector::default();
        collector.file(&path);
        let timeouts: Vec<&str> = collector
            .directives
            .iter()
            .map(|directive| directive.words[0].as_str())
            .collect();
        assert_eq!(timeouts, ["1", "2"]);
        assert_eq!(collector.problems.len(), 1);
        assert!(
            collector.problems[0]
                .wrong
                .contains("/nothing cannot be read")
        );
    }

    #[test]
    fn includes_that_cannot_be_are_reported() {
        let scratch = Scratch::new();
        let path = scratch.write("main.conf", "include a b\ninclude missing.conf\nport 1");
        let mut collector = Collector::default();
        collector.file(&path);
        let (directives, problems) = summary(&collector);
        assert_eq!(directives.len(), 1);
        assert!(problems[0].contains("main.conf:1: 'include a b'\n  wrong number of arguments"));
        assert!(problems[1].contains("main.conf:2: 'include missing.conf'"));
        assert!(problems[1].contains("missing.conf cannot be read: No such file"));

        let path = scratch.write("loop.conf", "port 1\ninclude loop.conf\n");
        let mut collector = Collector::default();
        collector.file(&path);
        assert_eq!(collector.directives.len(), MAX_INCLUDE_DEPTH + 1);
        assert_eq!(collector.problems.len(), 1);
        assert!(collector.problems[0].wrong.contains("include one another"));

        let mut collector = Collector::default();
        collector.file(&scratch.path("nothing.conf"));
        let problem = collector.problems[0].to_string();
        assert!(
            problem.contains("nothing.conf: cannot be read: No such file"),
            "{problem}"
        );
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let mut collector = Collector::default();
        collector.standard_input(io::repeat(b'#'));
        assert_eq!(
            collector.problems[0].to_string(),
            "standard input: cannot be read: it has more than 16 MiB"
        );
    }
}
