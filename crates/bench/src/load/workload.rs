//! A workload: the kinds of requests that one test sends, in which proportions, and what is counted
//! together.

use super::data::Data;
use super::home::Home;
use super::numbers::{Numbers, Share, Spec};
use super::outgoing::Outgoing;
use super::template::{Draw, Template};
use fastrand::Rng;

/// What one test sends.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// As the reports and `-q` show it: `SET`, `MSET (10 keys)`.
    pub(crate) title: String,
    /// What is counted apart, by name; one for most.
    pub(crate) rows: Vec<String>,
    pub(crate) shapes: Vec<Shape>,
    /// Where the shapes take their keys from.
    pub(crate) numbers: Vec<Spec>,
    /// Bytes of a value in the mean, for the reports.
    pub(crate) payload_bytes: f64,
}

/// A kind of request.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// The row that it counts in.
    pub(crate) row: usize,
    /// How often it is sent, in proportion to the others.
    pub(crate) weight: u64,
    pub(crate) template: Template,
    /// How many replies answer it: as many as it has commands.
    pub(crate) replies: u32,
    /// Which of the workload's numbers it draws from.
    pub(crate) numbers: usize,
}

/// One thread's source of requests.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    workload: &'a Workload,
    data: &'a Data,
    /// The sum of the weights up to and including each shape.
    bounds: Vec<u64>,
    numbers: Vec<Numbers>,
    /// One for each connection, or one for all.
    rngs: Vec<Rng>,
}

impl<'a> Source<'a> {
    /// The source of a thread; `rngs` has one generator for each of its connections, or one for all.
    pub(crate) fn new(
        workload: &'a Workload,
        data: &'a Data,
        share: &Share,
        rngs: Vec<Rng>,
    ) -> Self {
        let mut total = 0;
        let bound = |shape: &Shape| {
            total += shape.weight;
            total
        };
        Source {
            workload,
            data,
            bounds: workload.shapes.iter().map(bound).collect(),
            numbers: workload
                .numbers
                .iter()
                .enumerate()
                .map(|(own, spec)| Numbers::new(spec, share, own))
                .collect(),
            rngs,
        }
    }

    /// Appends the next request of a connection and says which shape it has; in a cluster its keys are at
    /// home at the connection's
    /// node.
    #[inline]
    pub(crate) fn write(
        &mut self,
        out: &mut Outgoing,
        connection: usize,
        home: Option<&Home>,
    ) -> usize {
        let own = if self.rngs.len() == 1 { 0 } else { connection };
        let index = if self.bounds.len() == 1 {
            0
        } else {
            self.choose(own)
        };
        let shape = &self.workload.shapes[index];
        let mut draw = Draw {
            rng: &mut self.rngs[own],
            numbers: &mut self.numbers[shape.numbers],
            data: self.data,
            connection,
        };
        match home {
            None => shape.template.write(out, &mut draw),
            Some(home) => {
                draw.numbers.sequence = home.lane * self.workload.numbers.len();
                shape.template.write_at(home, out, &mut draw);
            }
        }
        index
    }

    fn choose(&mut self, own: usize) -> usize {
        let total = self.bounds.last().copied().unwrap_or(0).max(1);
        let point = self.rngs[own].u64(..total);
        self.bounds.partition_point(|&bound| bound <= point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_connections_own_requests_do_not_depend_on_the_others() {
        let shape = |row: usize, weight| Shape {
            row,
            weight,
            template: Template::raw(b"x"),
            replies: 1,
            numbers: 0,
        };
        let workload = Workload {
            title: String::new(),
            rows: vec![String::new(); 2],
            shapes: vec![shape(0, 1), shape(1, 1)],
            numbers: vec![Spec::uniform(0, 1)],
            payload_bytes: 0.0,
        };
        let data = Data::new(1);
        let share = Share {
            first_client: 0,
            own_clients: 2,
            clients: 2,
            appended: Arc::default(),
            cursors: Arc::new([]),
        };
        let rngs = |seeds: &[u64]| seeds.iter().map(|&seed| Rng::with_seed(seed)).collect();
        let drawn = |rngs: Vec<Rng>, others: usize| -> Vec<usize> {
            let mut source = Source::new(&workload, &data, &share, rngs);
            let mut out = Outgoing::default();
            let mut next = || {
                (0..others).for_each(|_| {
                    source.write(&mut out, 1, None);
                });
                source.write(&mut out, 0, None)
            };
            (0..64).map(|_| next()).collect()
        };
        assert_eq!(drawn(rngs(&[1, 2]), 0), drawn(rngs(&[1, 2]), 3));
        assert_ne!(drawn(rngs(&[1, 2]), 0), drawn(rngs(&[3, 2]), 0));
        // What they share is drawn from by all.
        assert_ne!(drawn(rngs(&[1]), 0), drawn(rngs(&[1]), 3));
    }

    #[test]
    fn shapes_are_sent_in_proportion_to_their_weights() {
        let shape = |row: usize, weight| Shape {
            row,
            weight,
            template: Template::raw(&[b'a' + row as u8]),
            replies: 1,
            numbers: 0,
        };
        let workload = Workload {
            title: String::new(),
            rows: vec![String::new(); 3],
            shapes: vec![shape(0, 1), shape(1, 0), shape(2, 9)],
            numbers: vec![Spec::uniform(0, 1)],
            payload_bytes: 0.0,
        };
        let data = Data::new(1);
        let share = Share {
            first_client: 0,
            own_clients: 1,
            clients: 1,
            appended: Arc::default(),
            cursors: Arc::new([]),
        };
        let mut source = Source::new(&workload, &data, &share, vec![Rng::with_seed(1)]);
        let mut out = Outgoing::default();
        let mut seen = [0; 3];
        for _ in 0..10_000 {
            seen[source.write(&mut out, 0, None)] += 1;
        }
        let count = |byte| out.bytes.iter().filter(|&&b| b == byte).count();
        assert_eq!(seen, [count(b'a'), 0, count(b'c')]);
        assert!((850..1_150).contains(&seen[0]), "{seen:?}");
    }
}
