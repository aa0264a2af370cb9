//! What happened before a page was loaded.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::browser::Site;
use super::support::PATIENCE;

fn history(site: &Site) -> Json {
    let answer = site.get("/history.json");
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/json"))
    );
    serde_json::from_str(&answer.body).expect("it is JSON")
}

/// The points of a row as maps from field to value.
fn points(history: &Json, row: &str) -> Vec<Vec<(String, Json)>> {
    let fields = history["fields"].as_array().expect("it is a list");
    let points = history[row]["points"].as_array().expect("it is a list");
    let read = |point: &Json| -> Vec<(String, Json)> {
        let values = point.as_array().expect("it is a list");
        assert_eq!(values.len(), fields.len());
        let names = fields
            .iter()
            .map(|name| name.as_str().expect("it is a name").to_owned());
        names.zip(values.iter().cloned()).collect()
    };
    points.iter().map(read).collect()
}

fn value(point: &[(String, Json)], name: &str) -> f64 {
    let found = point.iter().find(|(field, _)| field == name);
    found
        .and_then(|(_, value)| value.as_f64())
        .unwrap_or(f64::NAN)
}

#[test]
fn history_survives_a_reload_and_says_what_happened() {
    let site = Site::start(&[]);
    let mut client = site.server.client();
    let began = Instant::now();
    let before = loop {
        for at in 0..50 {
            client.ask(&format!("SET key:{at} v"));
            client.ask(&format!("GET key:{}", at * 2));
        }
        client.ask("INCR key:1");
        let history = history(&site);
        if points(&history, "fine").len() >= 3 {
            break history;
        }
        assert!(began.elapsed() < PATIENCE, "{history}");
        sleep(Duration::from_millis(100));
    };
    let busy = points(&before, "fine");
    let all = |name: &str| {
        busy.iter()
            .map(|point| value(point, name))
            .collect::<Vec<_>>()
    };
    assert!(all("ops").iter().any(|&ops| ops > 1.0), "{:?}", all("ops"));
    assert!(
        all("errors").iter().any(|&errors| errors > 0.0),
        "{:?}",
        all("errors")
    );
    assert!(
        all("hits").iter().any(|&part| part > 0.0 && part < 1.0),
        "{:?}",
        all("hits")
    );
    let known: Vec<f64> = all("p99").into_iter().filter(|us| us.is_finite()).collect();
    assert!(
        !known.is_empty() && known.iter().all(|&us| us > 0.0),
        "{known:?}"
    );
    assert_eq!(all("keys").last(), Some(&50.0));
    let times = all("at_ms");
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    // Somebody who comes later gets what the first has got.
    sleep(Duration::from_millis(150));
    let later = points(&history(&site), "fine");
    assert_eq!(later[..busy.len()], busy);
    let bytes = before["bytes"].as_u64().expect("it is a number");
    assert!((1..200_000).contains(&bytes), "{bytes}");
    assert_eq!(before["coarse"]["step_ms"], 10_000);
}

#[test]
fn statistics_that_are_reset_leave_no_fall_in_the_history() {
    let site = Site::start(&[]);
    let mut client = site.server.client();
    let began = Instant::now();
    loop {
        for _ in 0..200 {
            client.ask("PING");
        }
        client.ask("CONFIG RESETSTAT");
        let fine = points(&history(&site), "fine");
        for point in &fine {
            assert!(
                value(point, "ops") >= 0.0 && value(point, "input") >= 0.0,
                "{point:?}"
            );
        }
        if fine.len() >= 2 || began.elapsed() > Duration::from_secs(4) {
            break;
        }
        sleep(Duration::from_millis(50));
    }
}
