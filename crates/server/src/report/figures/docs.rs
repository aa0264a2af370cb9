//! docs/metrics.md, made from the table. The test fails when they differ; with `UPDATE_DOCS=1` it writes the
//! file instead.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::figure::Kind;
use super::table::CHAPTERS;

const INTRODUCTION: &str = include_str!("metrics.md");

fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    for chapter in CHAPTERS {
        let _ = write!(
            text,
            "\n## {}\n\n| Metric | Kind | Labels | In INFO | Meaning |\n| --- | --- | --- | --- | --- |\n",
            chapter.title
        );
        for figure in chapter.figures {
            let kind = match figure.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            let labels: Vec<String> = figure
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            let field = figure
                .info()
                .map(|field| format!("`{field}`"))
                .unwrap_or_default();
            let _ = writeln!(
                text,
                "| `{}` | {kind} | {} | {field} | {} |",
                figure.name,
                labels.join(", "),
                figure.help
            );
        }
    }
    text
}

#[test]
fn the_documentation_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let text = markdown();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, text).expect("the documentation can be written");
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/metrics.md is not what the table says; run this test with UPDATE_DOCS=1"
    );
}
