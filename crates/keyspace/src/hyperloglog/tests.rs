use super::*;

/// A dense value and one that is sparse as long as it may, with the same elements.
fn both(elements: u64, most: usize) -> [Vec<u8>; 2] {
    let [mut dense, mut sparse] = [empty(), empty()];
    make_dense(&mut dense).expect("it is whole");
    for number in 0..elements {
        let element = Element::of(&number.to_le_bytes());
        let added = [&mut dense, &mut sparse].map(|value| add(value, element, most));
        assert_eq!(added[0], added[1]);
    }
    [dense, sparse]
}

#[test]
fn both_encodings_have_the_same_registers() {
    for (elements, most, is_sparse) in [
        (0, 3000, true),
        (1, 3000, true),
        (500, 3000, true),
        (5_000, 3000, false),
        (5_000, 100_000, true),
        (1, 0, false),
        (100_000, 100_000, true),
    ] {
        let [dense, mut sparse] = both(elements, most);
        assert_eq!(density(&dense), Some(Density::Dense));
        assert_eq!(
            density(&sparse) == Some(Density::Sparse),
            is_sparse,
            "{elements}"
        );
        assert_eq!(count(&sparse), count(&dense));
        let mut union = Union::default();
        union.add(&sparse).expect("it is whole");
        assert_eq!(Ok(union.count()), count(&dense));
        make_dense(&mut sparse).expect("it is whole");
        assert_eq!(sparse[HEADER..], dense[HEADER..], "{elements}");
    }
}

#[test]
fn estimates_are_near() {
    for elements in [1_u64, 10, 100, 1_000, 10_000, 100_000] {
        let [dense, _] = both(elements, 3000);
        let estimate = count(&dense).expect("it is whole");
        let error = estimate.abs_diff(elements) as f64 / elements as f64;
        assert!(error < 0.03, "{estimate} for {elements}");
    }
    assert_eq!(count(&empty()), Ok(0));
}

#[test]
fn a_count_is_known_until_something_changes() {
    let mut value = empty();
    assert_eq!(known_count(&value), Some(0));
    let element = Element::of(b"a");
    assert_eq!(add(&mut value, element, 3000), Ok(true));
    assert_eq!(known_count(&value), None);
    set_count(&mut value, 1);
    assert_eq!(known_count(&value), Some(1));
    assert_eq!(add(&mut value, element, 3000), Ok(false));
    assert_eq!(known_count(&value), Some(1));
}

#[test]
fn changes_of_a_dense_value_are_where_they_are_said_to_be() {
    let [mut value, _] = both(1_000, 3000);
    for number in 1_000_u64..3_000 {
        let elements = [number, number * 7919].map(|number| Element::of(&number.to_le_bytes()));
        let before = value.clone();
        let changes = changes(&value, elements.into_iter());
        add_to_dense(&mut value, elements.into_iter());
        match changes {
            None => assert_eq!(before, value),
            Some(part) => {
                assert_ne!(before[part.clone()], value[part.clone()]);
                assert_eq!(before[..part.start], value[..part.start]);
                assert_eq!(before[part.end..], value[part.end..]);
            }
        }
    }
    let last = Element {
        index: REGISTERS - 1,
        number: 51,
    };
    assert_eq!(
        changes(&value, [last].into_iter()),
        Some(DENSE_BYTES - 1..DENSE_BYTES)
    );
    add_to_dense(&mut value, [last].into_iter());
    assert_eq!(register(&value, REGISTERS - 1), 51);
}

#[test]
fn a_last_run_without_its_second_byte_is_whole_for_all() {
    // 64 registers, 191, and 1 + (0x3f << 8), of which the last byte is missing.
    let mut value = empty();
    value.truncate(HEADER);
    value.extend([0x3f, 0x40, 190, 0x7f]);
    let element = (0..u64::MAX)
        .map(|number| Element::of(&number.to_le_bytes()))
        .find(|element| element.index > 300)
        .expect("nearly all are");
    let [mut sparse, mut dense] = [value.clone(), value.clone()];
    assert_eq!(count(&value), Ok(0));
    make_dense(&mut dense).expect("it is whole");
    assert_eq!(add(&mut dense, element, 3000), Ok(true));
    assert_eq!(changes_sparse(&sparse, element), Ok(true));
    assert_eq!(add(&mut sparse, element, 3000), Ok(true));
    assert_eq!(count(&sparse), count(&dense));
    make_dense(&mut sparse).expect("it is whole");
    assert_eq!(sparse[HEADER..], dense[HEADER..]);
}

#[test]
fn what_is_no_value_is_told_apart() {
    assert_eq!(density(b""), None);
    assert_eq!(density(b"HYLL"), None);
    assert_eq!(density(&[b"HYLL\x02".as_slice(), &[0; 11]].concat()), None);
    assert_eq!(density(&[b"HYLL\x00".as_slice(), &[0; 11]].concat()), None);
    let mut value = [b"HYLL\x01".as_slice(), &[0; 11]].concat();
    assert_eq!(density(&value), Some(Density::Sparse));
    // No registers at all, too few, too many, and a run without its second byte.
    for runs in [&b""[..], b"\x00", b"\x7f\xff\x00", b"\x40"] {
        value.truncate(HEADER);
        value.extend(runs);
        assert_eq!(count(&value), Err(Corrupted));
        assert_eq!(Union::default().add(&value), Err(Corrupted));
        assert_eq!(make_dense(&mut value.clone()), Err(Corrupted));
    }
}

/// The value of `PFADD h a b c` in Redis 7.0.15, in hexadecimal digits.
const HEX: &str = "48594c4c01000000000000000000008060f38050b1844bfb80425a";

#[test]
fn elements_are_hashed_as_in_redis() {
    let mut value = empty();
    for element in ["a", "b", "c"] {
        add(&mut value, Element::of(element.as_bytes()), 3000).expect("it is whole");
    }
    assert_eq!(count(&value), Ok(3));
    let wanted = HEX.as_bytes().chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).expect("it is text");
        u8::from_str_radix(text, 16).expect("it is a number")
    });
    assert!(wanted.eq(value.iter().copied()));
}
