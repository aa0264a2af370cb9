//! No bytes make the reader of HyperLogLogs panic. Both of their forms have the same registers, and what is added
//! to one is in the other.

#![no_main]

use keyspace::hyperloglog::{self, Element, Density, REGISTERS, Union};
use libfuzzer_sys::fuzz_target;

const MOST: usize = 3000;

fn registers(dense: &[u8]) -> Vec<u8> {
    (0..REGISTERS).map(|index| hyperloglog::register(dense, index)).collect()
}

fuzz_target!(|data: &[u8]| {
    let (element, runs) = data.split_at(data.len().min(3));
    let mut value = hyperloglog::empty();
    value.truncate(hyperloglog::COUNT.end);
    value.extend_from_slice(runs);
    for value in [data, &value] {
        let Some(encoding) = hyperloglog::density(value) else {
            continue;
        };
        let count = hyperloglog::count(value);
        let mut union = Union::default();
        assert_eq!(union.add(value).is_ok(), count.is_ok());
        let _ = hyperloglog::known_count(value);
        assert!(hyperloglog::stretches_of(value).count() <= value.len());
        let element = Element::of(element);
        let (mut added, mut dense) = (value.to_vec(), value.to_vec());
        let is_added = hyperloglog::add(&mut added, element, MOST);
        if hyperloglog::make_dense(&mut dense).is_err() {
            continue;
        }
        assert_eq!(hyperloglog::count(&dense), count);
        assert_eq!(Ok(union.count()), count);
        if encoding == Density::Sparse && hyperloglog::changes_sparse(value, element).is_err() {
            continue;
        }
        let is_changed = hyperloglog::changes(&dense, [element].into_iter()).is_some();
        assert_eq!(is_added, Ok(is_changed));
        hyperloglog::add_to_dense(&mut dense, [element].into_iter());
        hyperloglog::make_dense(&mut added).expect("it was whole");
        assert_eq!(registers(&added), registers(&dense));
    }
});
