//! `cluster bench`, and `cluster local --bench`.

use std::fs;

use super::{Local, cluster};

/// The numbers of requests in the tables of nodes: of each test those of the nodes, and the sum.
fn tables(text: &str) -> Vec<Vec<u64>> {
    let mut tables = Vec::new();
    let mut lines = text.lines();
    while lines.by_ref().any(|line| line.starts_with("  node ")) {
        let rows = lines.by_ref().take(4);
        let requests = rows.map(|line| {
            let number = line.split_whitespace().nth(1);
            number
                .and_then(|number| number.parse().ok())
                .expect("a number")
        });
        tables.push(requests.collect());
    }
    tables
}

#[test]
fn all_nodes_are_loaded_at_once() {
    let local = Local::start(3, &[]);
    let [json, html] = ["run.json", "run.html"].map(|name| local.home.join(name));
    let [json_text, html_text] = [&json, &html].map(|path| path.display().to_string());
    let files = ["--json", &json_text, "--html", &html_text];
    let own = [
        "bench",
        local.path(),
        "3000",
        "6",
        "-t",
        "set,mset",
        "-r",
        "500",
    ];
    let (text, told, code) = cluster(&[&own[..], &files].concat());
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    let tables = tables(&text);
    assert_eq!(tables.len(), 2, "{text}");
    for requests in tables {
        assert_eq!(requests[..3].iter().sum::<u64>(), 3000, "{text}");
        assert_eq!(requests[3], 3000);
        assert!(requests.iter().all(|count| *count > 0));
    }
    let [json, html] = [json, html].map(|path| fs::read_to_string(path).expect("it was written"));
    for node in 0..3 {
        let name = format!("127.0.0.1:{}", local.first + node);
        assert!(json.contains(&format!("\"name\": \"{name}\"")), "{json}");
        assert!(html.contains(&format!("{name}</td>")), "{html}");
        assert_ne!(local.ask(node, &["DBSIZE"]), "0");
    }

    // Of itself it sends SET and GET; what the load generator says of wrong options is told.
    let (text, told, code) = cluster(&["bench", local.path(), "90", "3", "-q"]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    for test in ["SET: ", "GET: "] {
        assert!(text.lines().any(|line| line.starts_with(test)), "{text}");
    }
    let (_, told, code) = cluster(&["bench", local.path(), "30", "1"]);
    assert_eq!(code, 1);
    assert!(told.contains("nodes"), "{told}");
    let (_, told, code) = cluster(&["bench", local.path(), "many", "3"]);
    assert_eq!(code, 1);
    assert!(told.contains("many"), "{told}");

    local.end(1);
    let (text, told, code) = cluster(&["bench", local.path(), "90", "3"]);
    assert_eq!((text.as_str(), code), ("", 1));
    let expected = format!("{} is down: connection refused\n", local.name(1));
    assert_eq!(told, expected);
}

#[test]
fn a_cluster_is_started_loaded_and_stopped() {
    let (local, text) = Local::start_and_tell(2, &["--bench", "--", "--requirepass", "x"]);
    for line in ["====== SET ======", "====== GET ======"] {
        assert!(text.lines().any(|its| its == line), "{text}");
    }
    assert_eq!(text.lines().last(), Some("2 servers stopped."));
    assert_eq!(local.pids(), [None, None]);
}
