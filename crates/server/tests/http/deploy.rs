//! What `deploy` ships for Prometheus and Grafana: it parses, its alerts do what they say, and it names figures that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The names of figures in a text, without what histograms add to theirs.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
    let figures = words.filter(|word| word.starts_with("ferrite_") || word.starts_with("process_"));
    figures
        .map(|word| {
            let endings = ["_seconds_bucket", "_seconds_sum", "_seconds_count"];
            let ending = endings.iter().find(|ending| word.ends_with(**ending));
            ending.map_or(word.to_owned(), |ending| {
                format!("{}_seconds", word.trim_end_matches(ending))
            })
        })
        .collect()
}

fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn what_is_deployed_names_figures_that_exist() {
    let documented = names(&read("docs/metrics.md"));
    assert!(documented.len() > 40, "{documented:?}");
    for path in [
        "deploy/grafana/ferrite.json",
        "deploy/prometheus/alerts.yml",
        "deploy/prometheus/alerts_test.yml",
    ] {
        let used = names(&read(path));
        assert!(used.len() > 5, "{path}");
        let unknown: Vec<&String> = used.difference(&documented).collect();
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
}

#[test]
fn the_dashboard_of_grafana_is_whole() {
    let json: serde_json::Value =
        serde_json::from_str(&read("deploy/grafana/ferrite.json")).expect("it is JSON");
    let panels = json["panels"].as_array().expect("it has panels");
    let ids: BTreeSet<u64> = panels
        .iter()
        .filter_map(|panel| panel["id"].as_u64())
        .collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().expect("it asks for something");
        assert!(
            !targets.is_empty() && targets.iter().all(|target| target["expr"].is_string()),
            "{}",
            panel["title"]
        );
    }
}

#[test]
fn alerts_are_valid_and_do_what_they_say() {
    for arguments in [
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts_test.yml"],
    ] {
        let output = Command::new("promtool")
            .args(arguments)
            .current_dir(root().join("deploy/prometheus"))
            .output()
            .unwrap_or_else(|error| panic!("promtool cannot be started ({error}): install Debian's package prometheus (`make setup` does it)"));
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
}
