//! The comparison as one page (`--html`): charts and a table for each cell, everything inside, nothing
//! fetched.

use super::memory::states;
use super::table::{COLUMNS, LEGEND};
use super::write::Report;
use crate::machine::command_line;
use crate::report::html::{escaped, head};
use std::fmt::Write as _;

/// The page.
pub(crate) fn page(report: &Report<'_>, problems: &[String]) -> String {
    let mut page = head("ferrite-bench side-by-side");
    let command = escaped(&command_line().join(" "));
    let _ = writeln!(
        page,
        "<h1>Servers side by side</h1>\n<p><code>{command}</code></p>"
    );
    let (machine, settings) = (report.machine.text(), report.settings.text());
    let _ = writeln!(
        page,
        "<p>{}</p>\n<p>{}</p>",
        escaped(&machine),
        escaped(&settings)
    );
    for problem in problems {
        let _ = writeln!(page, "<p class=\"problem\">{}</p>", escaped(problem));
    }
    let servers = report.settings.recipes.iter().map(|recipe| {
        let version = report
            .versions
            .get(&recipe.name)
            .map_or("-", String::as_str);
        vec![recipe.name.clone(), version.to_owned(), recipe.text()]
    });
    table(
        "words",
        &["server", "version", "command"],
        servers,
        &mut page,
    );
    if !report.tables.is_empty() {
        let _ = writeln!(page, "<pre>{}</pre>", escaped(LEGEND));
    }
    for (_, svg) in report.charts() {
        page.push_str(&svg);
    }
    for one in report.tables {
        let (title, options) = (escaped(&one.cell.title), escaped(&one.cell.options));
        let _ = writeln!(
            page,
            "<h2>{title}</h2>\n<p><code>ferrite-bench {options}</code></p>"
        );
        table(
            "",
            &COLUMNS,
            one.rows.iter().map(|row| row.cells().to_vec()),
            &mut page,
        );
    }
    if !report.memory.is_empty() {
        page.push_str("<h2>Memory</h2>\n<p>Bytes per key beyond key and value.</p>\n");
        let columns = [vec!["server"], states()].concat();
        let rows = report.memory.iter().map(|weight| {
            let bytes = weight
                .overhead_bytes
                .iter()
                .map(|bytes| format!("{bytes:.1}"));
            std::iter::once(weight.name.clone()).chain(bytes).collect()
        });
        table("", &columns, rows, &mut page);
    }
    page.push_str("</body></html>\n");
    page
}

fn table(
    class: &str,
    columns: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    page: &mut String,
) {
    let row = |tag: &str, cells: Vec<String>| {
        let cells = cells
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let _ = write!(page, "<div class=\"table\"><table class=\"{class}\">");
    page.push_str(&row(
        "th",
        columns.iter().map(|&name| name.to_owned()).collect(),
    ));
    for cells in rows {
        page.push_str(&row("td", cells));
    }
    page.push_str("</table></div>\n");
}
