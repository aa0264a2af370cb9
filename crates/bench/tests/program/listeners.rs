//! Publish and subscribe: whoever listens hears everything, and what is missing is told.

use super::support::{Server, bench, failed, fresh_dir, printed};
use serde_json::Value;

#[test]
fn every_subscriber_hears_every_message() {
    for server in [Server::redis(&[]), Server::ferrite()] {
        for (options, line) in [
            (
                "-n 1000 -c 4 --subscribers 5",
                "5,000 of 5,000 messages came to 5 subscribers of 1 channels",
            ),
            (
                "-n 3000 -c 3 -P 16 -r 7 -d 100 --subscribers 2 -3 -q",
                "6,000 of 6,000 messages came to 2 subscribers of 7 channels",
            ),
            (
                "-n 600 -r 3 --key-digits 0 --key-prefix news: --subscribers 1",
                "600 of 600 messages came to 1 subscribers of 3 channels",
            ),
        ] {
            let text = printed(&bench(&server, &format!("-t pubsub {options}")));
            assert!(text.contains(line), "{options}: {text}");
            assert!(!text.contains("WARNING"), "{options}: {text}");
        }
    }
}

#[test]
fn what_came_is_written_down() {
    let server = Server::ferrite();
    let dir = fresh_dir();
    let (json, html) = (dir.join("run.json"), dir.join("run.html"));
    let (json, html) = (json.display().to_string(), html.display().to_string());
    let line = format!("-t pubsub -n 500 -q -r 2 --subscribers 3 --json {json} --html {html}");
    printed(&bench(&server, &line));
    let text = std::fs::read_to_string(&json).expect("it was written");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    let messages = &document["runs"][0]["messages"];
    for (name, number) in [
        ("subscribers", 3),
        ("channels", 2),
        ("heard", 1500),
        ("expected", 1500),
    ] {
        assert_eq!(messages[name], number, "{messages}");
    }
    let page = std::fs::read_to_string(&html).expect("it was written");
    assert!(
        page.contains("1,500 of 1,500 messages came to 3 subscribers"),
        "{page}"
    );
    std::fs::remove_dir_all(&dir).expect("it is ours");
}

#[test]
fn a_load_that_nobody_could_listen_to_is_refused() {
    let server = Server::redis(&[]);
    let text = failed(&bench(&server, "-t pubsub -r 1m -n 10"));
    assert!(text.contains("at most 10000 channels"), "{text}");
    // A subscriber that is thrown out has lost something.
    server.ask("CONFIG SET maxclients 3");
    let text = failed(&bench(&server, "-t pubsub -n 10 -c 1 --subscribers 20"));
    assert!(text.contains("subscribers: "), "{text}");
}
