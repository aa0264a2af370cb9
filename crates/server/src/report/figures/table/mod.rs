//! Every figure, once: its name as Prometheus knows it, what it means, and where it is read.
//!
//! Names are in base units, seconds and bytes, and say so. A counter only grows, but for CONFIG RESETSTAT and
//! a restart. A figure whose part of the server does not exist yet has no row. `activity` is what the server
//! does, `state` what it holds, `offload` what of that is on the disk alone.

mod activity;
mod offload;
mod state;

use super::figure::Samples;
use super::figure::{Chapter, Figure};
use super::view::{DatabaseView, View};
use crate::metrics::Distribution;

/// All figures, in the order in which they are told.
pub(super) const CHAPTERS: &[Chapter] = &[
    Chapter {
        title: "Server",
        figures: activity::SERVER,
    },
    Chapter {
        title: "Clients and network",
        figures: activity::CLIENTS,
    },
    Chapter {
        title: "Commands",
        figures: activity::COMMANDS,
    },
    Chapter {
        title: "Workers",
        figures: activity::WORKERS,
    },
    Chapter {
        title: "Memory",
        figures: state::MEMORY,
    },
    Chapter {
        title: "Keys",
        figures: state::KEYS,
    },
    Chapter {
        title: "Values on the disk alone",
        figures: offload::OFFLOAD,
    },
    Chapter {
        title: "Log",
        figures: state::LOG,
    },
    Chapter {
        title: "Snapshots",
        figures: state::SNAPSHOTS,
    },
];

/// All figures.
pub(super) fn all() -> impl Iterator<Item = &'static Figure> {
    CHAPTERS.iter().flat_map(|chapter| chapter.figures)
}

/// A value of each database.
fn by_database(view: &View<'_>, samples: &mut Samples, of: fn(&DatabaseView) -> usize) {
    for one in &view.databases {
        samples.labelled(&[&one.db.to_string()], of(one) as f64);
    }
}

/// A sum of ticks in seconds.
fn seconds(times: &Distribution) -> f64 {
    sys::clock::ticks_to_ns(times.sum() as u64) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figures::figure::Kind;
    use std::collections::HashSet;

    #[test]
    fn names_follow_the_rules_of_the_field() {
        let mut names = HashSet::new();
        for figure in all() {
            let name = figure.name;
            assert!(names.insert(name), "{name} twice");
            assert!(
                name.starts_with("ferrite_") || name.starts_with("process_"),
                "{name}"
            );
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{name}"
            );
            assert_eq!(
                figure.kind == Kind::Counter,
                name.ends_with("_total"),
                "{name}"
            );
            assert!(
                figure.help.ends_with('.') && !figure.help.contains('|'),
                "{name}"
            );
            assert!(
                figure.info().is_none() || figure.labels.is_empty(),
                "{name}"
            );
            if figure.kind == Kind::Histogram {
                assert!(name.ends_with("_seconds"), "{name}");
            }
        }
    }
}
