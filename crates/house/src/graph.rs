//! A directed graph, and the cycles in it.

use std::collections::{BTreeMap, BTreeSet};

/// Nodes and arrows by name.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    arrows: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Adds a node.
    pub fn add_node(&mut self, node: &str) {
        self.arrows.entry(node.to_owned()).or_default();
    }

    /// Adds an arrow and its nodes. An arrow from a node to itself is none.
    pub fn add(&mut self, from: &str, to: &str) {
        self.add_node(from);
        self.add_node(to);
        if from != to {
            self.arrows
                .entry(from.to_owned())
                .or_default()
                .insert(to.to_owned());
        }
    }

    /// The nodes, sorted.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.arrows.keys().map(String::as_str)
    }

    /// The arrows, sorted.
    pub fn arrows(&self) -> impl Iterator<Item = (&str, &str)> {
        self.arrows
            .iter()
            .flat_map(|(from, all)| all.iter().map(move |to| (from.as_str(), to.as_str())))
    }

    /// The sets of two nodes or more in which each can be reached from each: the largest first, equal ones by
    /// name.
    pub fn cycles(&self) -> Vec<BTreeSet<String>> {
        let mut search = Search {
            graph: self,
            numbers: BTreeMap::new(),
            path: Vec::new(),
            cycles: Vec::new(),
        };
        for node in self.nodes() {
            if !search.numbers.contains_key(node) {
                search.visit(node);
            }
        }
        let mut cycles = search.cycles;
        cycles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        cycles
    }
}

/// Tarjan's search for strongly connected components.
struct Search<'a> {
    graph: &'a Graph,
    /// In the order of the visits; none: the component of the node is complete.
    numbers: BTreeMap<&'a str, Option<usize>>,
    path: Vec<&'a str>,
    cycles: Vec<BTreeSet<String>>,
}

impl<'a> Search<'a> {
    /// The lowest number on the path that can be reached from the node.
    fn visit(&mut self, node: &'a str) -> usize {
        let number = self.numbers.len();
        self.numbers.insert(node, Some(number));
        let depth = self.path.len();
        self.path.push(node);
        let mut lowest = number;
        for next in &self.graph.arrows[node] {
            match self.numbers.get(next.as_str()) {
                None => lowest = lowest.min(self.visit(next)),
                Some(Some(other)) => lowest = lowest.min(*other),
                Some(None) => {}
            }
        }
        if lowest == number {
            let component: BTreeSet<_> = self.path.drain(depth..).collect();
            for &node in &component {
                self.numbers.insert(node, None);
            }
            if component.len() > 1 {
                let component = component.into_iter().map(str::to_owned).collect();
                self.cycles.push(component);
            }
        }
        lowest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(arrows: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut graph = Graph::default();
        for (from, to) in arrows {
            graph.add(from, to);
        }
        let sorted = |cycle: BTreeSet<String>| cycle.into_iter().collect();
        graph.cycles().into_iter().map(sorted).collect()
    }

    #[test]
    fn a_graph_without_cycles() {
        assert!(cycles(&[("a", "b"), ("a", "c"), ("b", "c"), ("c", "c")]).is_empty());
        assert!(cycles(&[]).is_empty());
    }

    #[test]
    fn the_larger_of_two_cycles_is_first() {
        let arrows = [
            ("a", "b"),
            ("b", "a"),
            ("b", "c"),
            ("c", "d"),
            ("d", "e"),
            ("e", "c"),
            ("e", "f"),
        ];
        assert_eq!(cycles(&arrows), [vec!["c", "d", "e"], vec!["a", "b"]]);
    }

    #[test]
    fn equal_cycles_are_in_the_order_of_their_names() {
        assert_eq!(
            cycles(&[("c", "d"), ("d", "c"), ("b", "a"), ("a", "b"), ("a", "c")]),
            [["a", "b"], ["c", "d"]]
        );
    }

    #[test]
    fn cycles_that_share_a_node_are_one() {
        assert_eq!(
            cycles(&[("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")]),
            [["a", "b", "c"]]
        );
    }

    /// All graphs of four nodes, against the definition.
    #[test]
    fn all_small_graphs() {
        let names = ["a", "b", "c", "d"];
        for bits in 0_u32..1 << 12 {
            let mut graph = Graph::default();
            let mut reach = [[false; 4]; 4];
            let pairs = (0..4).flat_map(|a| (0..4).filter(move |&b| a != b).map(move |b| (a, b)));
            for (bit, (a, b)) in pairs.enumerate() {
                graph.add_node(names[a]);
                if bits >> bit & 1 == 1 {
                    graph.add(names[a], names[b]);
                    reach[a][b] = true;
                }
            }
            for middle in 0..4 {
                for a in 0..4 {
                    for b in 0..4 {
                        reach[a][b] |= reach[a][middle] && reach[middle][b];
                    }
                }
            }
            let size = |a: usize| {
                (0..4)
                    .filter(|&b| a == b || (reach[a][b] && reach[b][a]))
                    .count()
            };
            let cycles = graph.cycles();
            let largest = cycles.first().map_or(1, BTreeSet::len);
            assert_eq!(Some(largest), (0..4).map(size).max(), "{bits:b}");
            let expected = (0..4).filter(|&node| size(node) > 1).count();
            let in_any: usize = cycles.iter().map(BTreeSet::len).sum();
            assert_eq!(in_any, expected, "{bits:b}");
        }
    }
}
