//! Forms made by hand: every shape of a cell is read, and nothing that was changed is read as something else
//! unnoticed.

use super::*;

use crate::forms::{self, cells, intset, listpack, text, ziplist, zipmap};

/// All cells as elements.
fn read(form: Form, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Flaw> {
    let mut cursor = Cursor::new(form, bytes)?;
    let (claimed, mut all) = (cursor.claimed(), Vec::new());
    while let Some(cell) = cursor.next(bytes)? {
        all.push(match cell {
            Cell::Bytes(range) => bytes[range].to_vec(),
            Cell::Number(number) => number.to_string().into_bytes(),
        });
    }
    assert!(claimed.is_none_or(|claimed| claimed == all.len() as u64));
    Ok(all)
}

fn texts(cells: &[forms::Cell]) -> Vec<Vec<u8>> {
    cells.iter().map(forms::Cell::text).collect()
}

#[test]
fn cells_of_every_shape_are_read() {
    for count in [
        0, 1, 2, 40, 74, 253, 254, 255, 256, 1000, 65_534, 65_535, 65_536,
    ] {
        let cells = cells(count);
        let wanted = texts(&cells);
        for is_wide in [false, true] {
            assert!(read(Form::Listpack, &listpack(&cells, is_wide)) == Ok(wanted.clone()));
            assert!(read(Form::Ziplist, &ziplist(&cells, is_wide)) == Ok(wanted.clone()));
        }
        if count % 2 == 0 {
            for spare in [0, 3, 255] {
                assert!(read(Form::Zipmap, &zipmap(&cells, spare)) == Ok(wanted.clone()));
            }
        }
    }
}

#[test]
fn integers_of_every_width_are_read() {
    for (width, numbers) in [
        (2, vec![]),
        (2, vec![-32_768, -1, 0, 1, 32_767]),
        (4, vec![-2_147_483_648, -32_769, 5, 2_147_483_647]),
        (8, vec![i64::MIN, -1, 0, i64::MAX]),
    ] {
        let texts: Vec<Vec<u8>> = numbers.iter().map(|n| n.to_string().into_bytes()).collect();
        assert_eq!(read(Form::Intset, &intset(&numbers, width)), Ok(texts));
        assert_eq!(intset_of(&numbers), intset(&numbers, width));
    }
    for numbers in [[1, 1], [2, 1]] {
        assert!(read(Form::Intset, &intset(&numbers, 4)).is_err());
    }
    let mut bytes = intset(&[1, 2, 3], 2);
    for width in [0, 1, 3, 16, 0x0100] {
        bytes[0] = width as u8;
        bytes[1] = (width >> 8) as u8;
        assert!(read(Form::Intset, &bytes).is_err());
    }
}

/// A small one of each form.
fn samples() -> Vec<(Form, Vec<u8>)> {
    let mut small = cells(34);
    small.push(text("a longer text"));
    small.push(forms::Cell::Text(vec![b'x'; 300]));
    vec![
        (Form::Listpack, listpack(&small, false)),
        (Form::Listpack, listpack(&small, true)),
        (Form::Ziplist, ziplist(&small, false)),
        (Form::Ziplist, ziplist(&small, true)),
        (Form::Intset, intset(&[-70_000, 3, 4, 90_000], 4)),
        (Form::Zipmap, zipmap(&small, 2)),
    ]
}

#[test]
fn no_beginning_is_a_whole() {
    for (form, bytes) in samples() {
        assert!(read(form, &bytes).is_ok());
        for len in 0..bytes.len() {
            assert!(read(form, &bytes[..len]).is_err(), "{form:?}: {len} bytes");
            // Even if the number of bytes is right.
            if matches!(form, Form::Listpack | Form::Ziplist) && len > 4 {
                let mut shorter = bytes[..len].to_vec();
                shorter[..4].copy_from_slice(&(len as u32).to_le_bytes());
                assert!(read(form, &shorter).is_err(), "{form:?}: {len} bytes");
            }
        }
        for more in [0, 0xff] {
            assert!(
                read(form, &[&bytes[..], &[more]].concat()).is_err(),
                "{form:?}"
            );
        }
    }
}

#[test]
fn a_changed_byte_is_noticed_or_changes_one_cell() {
    for (form, bytes) in samples() {
        let before = read(form, &bytes).expect("it is whole");
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let Ok(after) = read(form, &changed) else {
                    continue;
                };
                assert_eq!(after.len(), before.len(), "{form:?}: byte {at}");
                let differ = before
                    .iter()
                    .zip(&after)
                    .filter(|(one, other)| one != other);
                // A length and the spare bytes behind a value can make up for each other.
                assert!(differ.count() <= 1, "{form:?}: byte {at}");
            }
        }
    }
}

#[test]
fn lengths_that_are_claimed_are_not_believed() {
    let huge = [0xf0, 0xff, 0xff, 0xff, 0xff];
    let listpack = [&[17, 0, 0, 0, 1, 0][..], &huge, &[5, 0, 0, 0, 0, 0xff]].concat();
    assert!(read(Form::Listpack, &listpack).is_err());
    let ziplist = [
        &[17, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0][..],
        &[0x80, 255, 255, 255, 255, 0xff],
    ];
    assert!(read(Form::Ziplist, &ziplist.concat()).is_err());
    assert!(read(Form::Intset, &[8, 0, 0, 0, 255, 255, 255, 255]).is_err());
    assert!(read(Form::Zipmap, &[1, 254, 255, 255, 255, 255, 255]).is_err());
    let flaw = read(Form::Zipmap, &[1, 9, b'a', 0xff]).expect_err("it goes on");
    assert_eq!(
        flaw.to_string(),
        "at byte 1 is a string that goes on behind the end"
    );
}

#[test]
fn listpacks_that_are_made_read_back() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut builder = ListpackBuilder::default();
    for count in [0, 1, 2, 7, 300, 66_000] {
        builder.clear();
        let mut wanted = Vec::new();
        for _ in 0..count {
            let number = random.i64(..) >> random.u32(..64);
            let edge = (1_i64 << random.u32(..64)).wrapping_sub(random.i64(0..2));
            let len = [0, 1, 62, 63, 64, 65, 125, 126, 127, 4093, 4096, 20_000];
            let most = if count > 10 { 9 } else { len.len() };
            let text = match random.u8(..4) {
                0 => number.to_string().into_bytes(),
                1 => edge.to_string().into_bytes(),
                2 => b"007".to_vec(),
                _ => vec![b'a'; len[random.usize(..most)]],
            };
            builder.push(&text);
            wanted.push(text);
        }
        let bytes = builder.listpack().to_vec();
        let mut cursor = Cursor::new(Form::Listpack, &bytes).expect("it begins right");
        let claimed = (count < 65_535).then_some(count as u64);
        assert_eq!(cursor.claimed(), claimed);
        for text in wanted {
            let cell = cursor.next(&bytes).expect("a cell").expect("one more");
            match cell {
                Cell::Bytes(range) => assert_eq!(bytes[range], text),
                Cell::Number(number) => assert_eq!(number.to_string().as_bytes(), text),
            }
        }
        assert_eq!(cursor.next(&bytes), Ok(None));
    }
}
