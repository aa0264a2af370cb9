//! For tests: whether what a shard counts is what there is.

use super::guard::{Guard, place_of};
use crate::hash::Place;

impl Guard<'_> {
    /// Checks the counters, and what they count, against the entries themselves.
    pub(crate) fn verify(&mut self) {
        let (mut len, mut volatile, mut bytes, mut unused) = (0, 0, 0, 0);
        let mut expiring = 0;
        let mut cold = (0, 0);
        let mut place = Some(Place(0));
        let shared = self.shared;
        while let Some(at) = place {
            let index = self.index();
            let mut marked = Vec::new();
            index.visit_volatile(at, |_, entry| marked.push(entry));
            place = index.visit_home(at, |slot, entry| {
                len += 1;
                bytes += entry.memory();
                volatile += usize::from(entry.expiry().is_some());
                expiring += usize::from(entry.is_expiring());
                assert_eq!(entry.is_expiring(), entry.next_due().is_some());
                unused += usize::from(!crate::evict::is_used(index.heat(slot)));
                if entry.is_cold() {
                    cold = (cold.0 + 1, cold.1 + entry.value_len());
                }
                assert!(entry.expiry().is_none() || marked.contains(&entry));
                let found = index.find(place_of(shared, entry), |other| other == entry);
                assert!(found.is_some_and(|found| index.entry(found) == index.entry(slot)));
            });
        }
        assert_eq!(self.cell.len(), len);
        assert_eq!(self.index().unused(), unused);
        assert_eq!(self.cell.volatile(), volatile);
        assert_eq!(self.cell.expiring(), expiring);
        assert_eq!(self.cell.cold(), cold);
        assert_eq!(self.cell.memory(), bytes + self.overhead().bytes());
    }
}
