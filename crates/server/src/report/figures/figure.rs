//! What a figure is: a row of the table, and the values that are read for it.

use super::view::View;
use crate::metrics::Distribution;

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// One row.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// One sentence.
    pub(super) help: &'static str,
    /// What tells its values apart; none where it has one value.
    pub(super) labels: &'static [&'static str],
    /// The field of INFO that says the same.
    pub(super) info: Option<&'static str>,
    pub(super) read: fn(&View<'_>, &mut Samples),
}

/// The values of a figure.
#[derive(Default)]
pub(super) struct Samples(pub(super) Vec<Sample>);

/// One value, and what tells it apart.
pub(super) struct Sample {
    pub(super) labels: Vec<String>,
    pub(super) value: Value,
}

/// See [`Kind`].
pub(super) enum Value {
    Number(f64),
    /// Times in ticks and their sum in seconds.
    Times(Box<Distribution>, f64),
}

impl Samples {
    pub(super) fn number(&mut self, value: f64) {
        self.labelled(&[], value);
    }

    pub(super) fn count(&mut self, value: u64) {
        self.number(value as f64);
    }

    pub(super) fn labelled(&mut self, labels: &[&str], value: f64) {
        self.0.push(Sample {
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            value: Value::Number(value),
        });
    }

    pub(super) fn times(&mut self, labels: &[&str], times: Distribution, sum_s: f64) {
        self.0.push(Sample {
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            value: Value::Times(Box::new(times), sum_s),
        });
    }
}

const fn row(
    kind: Kind,
    name: &'static str,
    help: &'static str,
    read: fn(&View<'_>, &mut Samples),
) -> Figure {
    Figure {
        name,
        kind,
        help,
        labels: &[],
        info: None,
        read,
    }
}

pub(super) const fn counter(
    name: &'static str,
    help: &'static str,
    read: fn(&View<'_>, &mut Samples),
) -> Figure {
    row(Kind::Counter, name, help, read)
}

pub(super) const fn gauge(
    name: &'static str,
    help: &'static str,
    read: fn(&View<'_>, &mut Samples),
) -> Figure {
    row(Kind::Gauge, name, help, read)
}

pub(super) const fn histogram(
    name: &'static str,
    help: &'static str,
    read: fn(&View<'_>, &mut Samples),
) -> Figure {
    row(Kind::Histogram, name, help, read)
}

impl Figure {
    /// The same, with values told apart.
    pub(super) const fn by(self, labels: &'static [&'static str]) -> Figure {
        Figure { labels, ..self }
    }

    /// The same, which a field of INFO says too.
    pub(super) const fn in_info(self, field: &'static str) -> Figure {
        Figure {
            info: Some(field),
            ..self
        }
    }
}

/// A heading of the documentation, and the figures below it.
pub(super) struct Chapter {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "only the documentation has headings")
    )]
    pub(super) title: &'static str,
    pub(super) figures: &'static [Figure],
}
