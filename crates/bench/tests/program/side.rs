//! Servers side by side: they are started, compared, written down and gone afterwards.

use super::support::{bench_words, failed, ferrite_server, fresh_dir, printed, words};
use serde_json::Value;

#[test]
fn servers_are_compared_and_written_down() {
    // Where the program looks for it.
    ferrite_server();
    let dir = fresh_dir();
    let json = dir.join("side.json").display().to_string();
    let docs = dir.display().to_string();
    let line = "side-by-side --quick --cells set-p1,get-1k,set-unix,two-hot --test-time 100ms \
                --warmup 0 --memory-keys 3000 --json";
    let mut words = words(line);
    let again = "again=redis-server --port {port} --dir {dir} --save '' --appendonly no";
    words.extend([&json, "--docs", &docs, again]);
    let text = printed(&bench_words(&words));
    for expected in [
        "SET, P1  (-t set",
        "GET of 1,000 B",
        "ferrite, 2 workers",
        "after overwriting",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let report = std::fs::read_to_string(&json).expect("it was written");
    let report: Value = serde_json::from_str(&report).expect("it is JSON");
    let cells = report["cells"].as_array().expect("a list");
    let servers = |cell: &str| -> Vec<&str> {
        let rows = cells.iter().filter(|row| row["cell"] == cell);
        rows.filter_map(|row| row["server"].as_str()).collect()
    };
    assert_eq!(servers("set-p1"), ["redis", "floor", "ferrite", "again"]);
    // This one was not told to make a socket file.
    assert_eq!(servers("set-unix"), ["redis", "floor", "ferrite"]);
    assert_eq!(
        servers("two-hot"),
        ["redis", "floor", "ferrite", "ferrite, 2 workers", "again"]
    );
    for row in cells {
        assert!(row["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{row}");
        assert!(
            row["server_cpu_us_per_request"]
                .as_f64()
                .is_some_and(|us| us > 0.0),
            "{row}"
        );
    }
    assert_eq!(report["memory"].as_array().map(Vec::len), Some(15));
    let page = std::fs::read_to_string(dir.join("benchmarks.md")).expect("it was written");
    assert!(
        page.contains("| ferrite | Ferrite ") && page.contains("| redis | Redis 7.0.15 |"),
        "{page}"
    );
    for chart in ["cpu", "own", "rate", "memory"] {
        let path = dir.join(format!("benchmarks/{chart}.svg"));
        let svg = std::fs::read_to_string(path).expect("it was written");
        assert!(svg.contains("ferrite"), "{chart}");
        assert!(
            page.contains(&format!("(benchmarks/{chart}.svg)")),
            "{chart}"
        );
    }
    std::fs::remove_dir_all(&dir).expect("it is ours");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let text = failed(&bench_words(&words("side-by-side --cells nonsense")));
    assert!(text.contains("there is no cell 'nonsense'"), "{text}");
    let text = failed(&bench_words(&words("side-by-side x")));
    assert!(text.contains("'x' is no NAME=COMMAND"), "{text}");
    let text = failed(&bench_words(&[
        "side-by-side",
        "--quick",
        "--cells",
        "set-p1",
        "redis=/nonexistent/server {port}",
    ]));
    assert!(
        text.contains("/nonexistent/server cannot be started"),
        "{text}"
    );
}
