//! docs/config.md, made from the table. The test fails when they differ; with `UPDATE_DOCS=1` it writes the
//! file instead.

mod files;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::foreign::Foreign;
use super::table::{Row, Section, TABLE};
use super::value::allowed;

const INTRODUCTION: &str = "\
# Configuration

<!-- Made from crates/server/src/config/table.rs by `UPDATE_DOCS=1 cargo test -p ferrite-server docs`. -->

`ferrite-server` takes its settings from a configuration file and from flags:

```
ferrite-server [FILE | -] [--NAME VALUE...]...
ferrite-server /etc/ferrite.conf --port 7000 --bind 127.0.0.1 -::1
```

The file counts first, then the standard input (if `-` is given), then the flags; of several values for one setting
the last counts. A flag takes all words up to the next flag; `--NAME=VALUE` takes exactly that. Without any argument the
server runs with the defaults below.

## The file

The syntax is that of redis.conf. A line is blank, a comment if `#` comes first, or a name and its values:

```
# Everything behind the name is the value, so a comment needs a line of its own.
port 7000
requirepass \"two words\"
include limits.conf
```

White space separates words. Between double quotes `\\n`, `\\r`, `\\t`, `\\a`, `\\b`, `\\xHH`, `\\\"` and `\\\\` are escapes;
between single quotes only `\\'` is. `include PATH` stands for the lines of another file, or of all files that match
if its name has the wildcards `*`, `?` or `[...]`; a relative path begins at the directory of the file that includes it.

A name that is unknown or a value that is not allowed stops the start. The message lists every problem with its file and
line.

A redis.conf can be used as it is. A directive of redis-server that asks for what Ferrite does anyway, or that only tunes
the inside of redis-server, is accepted and changes nothing; the log names those directives in one line. A directive that
would change what clients or operators see is refused with the reason. The list is [below](#directives-of-redis-server).

`ferrite-server --check-config FILE` starts nothing. It prints a line for each directive that is ignored or refused, with
its line number and the reason, and ends with 0 if a server would start with the file, with 1 if not. Flags behind FILE are
checked with it. With `cluster-enabled yes` the map is read too: all its mistakes with their lines, and whether this node is in it.

Sizes are bytes, or have a unit: `k`, `m`, `g` are powers of 1000, `kb`, `mb`, `gb` are powers of 1024.

## At run time

`CONFIG GET pattern...` shows settings, `CONFIG SET name value...` changes several of them together or none; the column
*CONFIG SET* says which. `CONFIG REWRITE` puts the current values into the configuration file: comments, order and
lines that are still true stay as they are, and what the file did not say goes to its end.
";

const FOREIGN_INTRODUCTION: &str = "
## Directives of redis-server

Directives of redis-server 7.0 to 7.4 and of Valkey 8 that are no settings here. A value in the column *Accepted* is
accepted and changes nothing, any other stops the start; *any* is whatever redis-server takes. `CONFIG GET` shows the value that was given, or the default of
redis-server; `CONFIG SET` accepts the same values as the file.

| Directive | Accepted | Why |
| --- | --- | --- |
";

fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    for section in Section::ALL {
        let _ = write!(
            text,
            "\n## {}\n\n\
             | Setting | Default | Allowed | CONFIG SET | Meaning |\n\
             | --- | --- | --- | --- | --- |\n",
            section.title()
        );
        for row in TABLE.iter().filter(|row| row.section == *section) {
            let _ = writeln!(text, "{}", line(row));
        }
    }
    text.push_str(FOREIGN_INTRODUCTION);
    for (reason, rows) in Foreign::groups() {
        for row in rows {
            let names: Vec<String> = row.names().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(
                text,
                "| {} | {} | {reason} |",
                names.join(", "),
                row.accepted()
            );
        }
    }
    text
}

fn line(row: &Row) -> String {
    let short = row.short.map(|letter| format!(", `-{letter}`"));
    let default = match row.default {
        "" => "`\"\"`".to_owned(),
        default => format!("`{default}`"),
    };
    let mutable = if row.mutable { "yes" } else { "no" };
    format!(
        "| `{}`{} | {default} | {} | {mutable} | {} |",
        row.name,
        short.unwrap_or_default(),
        allowed(row.kind),
        // An asterisk alone would be read as emphasis.
        row.summary.replace('*', "\\*")
    )
}

#[test]
fn the_documentation_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
    let text = markdown();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, text).expect("the documentation can be written");
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/config.md is not what the table says; run this test with UPDATE_DOCS=1"
    );
}
