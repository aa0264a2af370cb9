//! Figure: a row of the table, and its values.

use super::view::View;
use crate::metrics::Distribution;

/// Kind of a figure.
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
    /// Labels of its values; none if it has one value.
    pub(super) labels: &'static [&'static str],
    source: Source,
}

/// Origin of a figure's values.
#[derive(Clone, Copy)]
enum Source {
    /// A field of INFO. There is no value while INFO has no such field.
    Info(&'static str),
    Read(Read),
}

/// The values of a figure.
#[derive(Default)]
pub(super) struct Samples(Vec<Sample>);

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

/// Reads the values of a figure.
type Read = fn(&View<'_>, &mut Samples);

const fn row(kind: Kind, name: &'static str, help: &'static str, source: Source) -> Figure {
    Figure {
        name,
        kind,
        help,
        labels: &[],
        source,
    }
}

pub(super) const fn counter(name: &'static str, help: &'static str, read: Read) -> Figure {
    row(Kind::Counter, name, help, Source::Read(read))
}

pub(super) const fn gauge(name: &'static str, help: &'static str, read: Read) -> Figure {
    row(Kind::Gauge, name, help, Source::Read(read))
}

pub(super) const fn histogram(name: &'static str, help: &'static str, read: Read) -> Figure {
    row(Kind::Histogram, name, help, Source::Read(read))
}

/// A counter that is a field of INFO.
pub(super) const fn counter_in(
    field: &'static str,
    name: &'static str,
    help: &'static str,
) -> Figure {
    row(Kind::Counter, name, help, Source::Info(field))
}

/// A gauge that is a field of INFO.
pub(super) const fn gauge_in(
    field: &'static str,
    name: &'static str,
    help: &'static str,
) -> Figure {
    row(Kind::Gauge, name, help, Source::Info(field))
}

impl Figure {
    /// The same, with values told apart.
    pub(super) const fn by(self, labels: &'static [&'static str]) -> Figure {
        Figure { labels, ..self }
    }

    /// The field of INFO that it is.
    pub(super) fn info(&self) -> Option<&'static str> {
        match self.source {
            Source::Info(field) => Some(field),
            Source::Read(_) => None,
        }
    }

    /// Its values now.
    pub(super) fn samples(&self, view: &View<'_>) -> Vec<Sample> {
        let mut samples = Samples::default();
        match self.source {
            Source::Read(read) => read(view, &mut samples),
            Source::Info(field) => {
                if let Some(&value) = view.info.get(field) {
                    samples.number(value);
                }
            }
        }
        samples.0
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
