//! Several running servers side by side (`--target`): the medians of the rounds and what they are of the
//! first server's.

use super::numbers::median;
use crate::drive::counts::percentile_ns;
use crate::drive::outcome::Outcome;
use std::fmt::Write as _;

/// What one run showed of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) rate: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) p999_ms: f64,
    /// Microseconds of the server's processor time per request, where it is known.
    pub(crate) cpu_us: Option<f64>,
}

impl Figures {
    /// The figures of a run.
    pub(crate) fn of(outcome: &Outcome) -> Figures {
        let total = outcome.total();
        let ms = |percent| percentile_ns(&total.latency, percent) as f64 / 1e6;
        Figures {
            rate: outcome.rate(),
            p50_ms: ms(50.0),
            p99_ms: ms(99.0),
            p999_ms: ms(99.9),
            cpu_us: outcome.server_us_per_request(),
        }
    }
}

/// One server in one test, round by round.
type Rounds = (String, Vec<Figures>);

/// The figures of all servers, by test, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sides {
    tests: Vec<(String, Vec<Rounds>)>,
}

impl Sides {
    /// Adds a run.
    pub(crate) fn add(&mut self, test: &str, server: &str, figures: Figures) {
        let servers = entry(&mut self.tests, test);
        entry(servers, server).push(figures);
    }

    /// A table for each test.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (test, servers) in &self.tests {
            let _ = writeln!(
                text,
                "\n{test}\n{:<24} {:>12} {:>6} {:>9} {:>9} {:>9} {:>10} {:>6}",
                "server", "ops/s", "ratio", "p50 ms", "p99 ms", "p99.9 ms", "CPU us/op", "ratio"
            );
            let medians: Vec<_> = servers.iter().map(|(_, rounds)| medians(rounds)).collect();
            for ((name, _), figures) in servers.iter().zip(&medians) {
                row(name, figures, &medians[0], &mut text);
            }
        }
        text
    }
}

fn entry<'a, T: Default>(list: &'a mut Vec<(String, T)>, name: &str) -> &'a mut T {
    let found = list.iter().position(|(known, _)| known == name);
    let index = found.unwrap_or(list.len());
    if index == list.len() {
        list.push((name.to_owned(), T::default()));
    }
    &mut list[index].1
}

fn medians(rounds: &[Figures]) -> Figures {
    let of = |figure: fn(&Figures) -> f64| median(rounds.iter().map(figure));
    let cpus: Vec<f64> = rounds.iter().filter_map(|figures| figures.cpu_us).collect();
    Figures {
        rate: of(|figures| figures.rate),
        p50_ms: of(|figures| figures.p50_ms),
        p99_ms: of(|figures| figures.p99_ms),
        p999_ms: of(|figures| figures.p999_ms),
        cpu_us: (!cpus.is_empty()).then(|| median(cpus.into_iter())),
    }
}

fn row(name: &str, own: &Figures, first: &Figures, text: &mut String) {
    let shown = |value: Option<f64>, digits: usize| match value {
        Some(value) => format!("{value:.digits$}"),
        None => "-".to_owned(),
    };
    let cpu_ratio = own.cpu_us.zip(first.cpu_us).map(|(own, first)| own / first);
    let _ = writeln!(
        text,
        "{name:<24} {:>12.0} {:>6.2} {:>9.3} {:>9.3} {:>9.3} {:>10} {:>6}",
        own.rate,
        own.rate / first.rate,
        own.p50_ms,
        own.p99_ms,
        own.p999_ms,
        shown(own.cpu_us, 3),
        shown(cpu_ratio, 2)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(rate: f64, cpu_us: Option<f64>) -> Figures {
        Figures {
            rate,
            p50_ms: 0.1,
            p99_ms: 0.2,
            p999_ms: 0.3,
            cpu_us,
        }
    }

    #[test]
    fn medians_are_held_against_the_first_server() {
        let mut sides = Sides::default();
        for (one, other) in [(100.0, 200.0), (110.0, 500.0), (90.0, 100.0)] {
            sides.add("SET", "one", figures(one, Some(8.0)));
            sides.add("SET", "other", figures(other, Some(2.0)));
        }
        sides.add("GET", "one", figures(1.0, None));
        let text = sides.text();
        let words = |name: &str| -> Vec<Vec<&str>> {
            let lines = text.lines().filter(|line| line.starts_with(name));
            lines
                .map(|line| line.split_whitespace().skip(1).collect())
                .collect()
        };
        assert_eq!(
            words("other"),
            [["200", "2.00", "0.100", "0.200", "0.300", "2.000", "0.25"]]
        );
        assert_eq!(words("one")[0][..2], ["100", "1.00"]);
        assert_eq!(words("one")[1][5..], ["-", "-"]);
    }
}
