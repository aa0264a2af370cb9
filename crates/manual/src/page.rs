//! A manual page.

use roff::{Inline, Roff, bold, italic, roman};

use crate::program::{Flag, Program};

/// The page of a program, in section 1.
pub(crate) fn page(program: &Program) -> String {
    let mut page = Roff::new();
    let source = format!("{} {}", program.name, program.version);
    // No date, for the page changes when the program does; an argument without any letter would be left out.
    page.control("TH", [program.name, "1", " ", &source, "Ferrite"]);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{} - {}", program.name, program.summary))]);
    page.control("SH", ["SYNOPSIS"]);
    for usage in program.usage {
        page.text([bold(program.name), roman(format!(" {usage}"))]);
        page.control("br", []);
    }
    page.control("SH", ["DESCRIPTION"]);
    paragraphs(&mut page, program.description.iter().copied());
    page.control("SH", ["OPTIONS"]);
    for group in &program.groups {
        page.control("SS", [group.title.as_str()]);
        for flag in &group.flags {
            page.control("TP", []);
            page.text(head(flag));
            page.text([roman(&flag.summary)]);
        }
    }
    for section in &program.sections {
        page.control("SH", [section.title]);
        for (term, text) in &section.entries {
            match (term.as_str(), text.as_str()) {
                ("", text) => paragraphs(&mut page, [text].into_iter()),
                (typed, "") => {
                    page.control("PP", []);
                    page.control("nf", []);
                    page.control("RS", ["4"]);
                    page.text([roman(typed)]);
                    page.control("RE", []);
                    page.control("fi", []);
                }
                (term, text) => {
                    page.control("TP", []);
                    page.text([bold(term)]);
                    page.text([roman(text)]);
                }
            }
        }
    }
    page.render()
}

fn paragraphs<'a>(page: &mut Roff, texts: impl Iterator<Item = &'a str>) {
    for text in texts {
        page.control("PP", []);
        page.text([roman(text)]);
    }
}

/// `-p, --port NUMBER`.
fn head(flag: &Flag) -> Vec<Inline> {
    let short = flag.short.map(|letter| format!("-{letter}"));
    let long = flag.names.iter().map(|name| format!("--{name}"));
    let mut line = Vec::new();
    for name in short.into_iter().chain(long) {
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.push(bold(name));
    }
    if !flag.value.is_empty() {
        line.push(roman(" "));
        line.push(italic(&flag.value));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Group, Section};

    #[test]
    fn a_page_has_everything_and_no_macro_by_accident() {
        let program = Program {
            name: "tool",
            version: "1.0",
            summary: "does things",
            usage: &["[FLAG...]", "FILE"],
            description: &[".starts with a dot, and has a \\ in it"],
            groups: vec![Group {
                title: "First".to_owned(),
                flags: vec![Flag {
                    short: Some('p'),
                    names: vec!["port".to_owned(), "number".to_owned()],
                    value: "PORT".to_owned(),
                    summary: "Its port - or not.".to_owned(),
                }],
            }],
            words: Vec::new(),
            families: Vec::new(),
            sections: vec![Section {
                title: "EXAMPLES",
                entries: vec![("tool --port 1".to_owned(), String::new())],
            }],
        };
        let page = page(&program);
        for line in [
            ".TH tool 1 \" \" \"tool 1.0\" Ferrite",
            "tool \\- does things",
            "\\fBtool\\fR [FLAG...]",
            "\\fB\\-p\\fR, \\fB\\-\\-port\\fR, \\fB\\-\\-number\\fR \\fIPORT\\fR",
            "Its port \\- or not.",
            "tool \\-\\-port 1",
        ] {
            assert!(page.lines().any(|its| its == line), "{line} in\n{page}");
        }
        assert!(!page.lines().any(|line| line.starts_with(".starts")));
    }
}
