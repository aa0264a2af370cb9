//! What the targets of the packed forms share: bytes as they come, bytes behind a right beginning, and cells in a form that is
//! right, with changes. Whatever is read lies within the bytes and is not more than there is; what is right is read as it is.

#[allow(dead_code, reason = "each target uses one form")]
#[path = "../../crates/rdb/tests/forms/mod.rs"]
mod forms;

use forms::Cell as Made;
use rdb::packed::{Cell, Cursor, Form};

/// All cells, if the bytes are of the form.
fn read(form: Form, bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut cursor = Cursor::new(form, bytes).ok()?;
    let (claimed, mut cells, mut text) = (cursor.claimed(), Vec::new(), 0);
    while let Some(cell) = cursor.next(bytes).ok()? {
        cells.push(match cell {
            Cell::Bytes(range) => {
                text += range.len();
                bytes[range].to_vec()
            }
            Cell::Number(number) => number.to_string().into_bytes(),
        });
        assert!(cells.len() + text <= bytes.len());
    }
    assert!(claimed.is_none_or(|claimed| claimed == cells.len() as u64));
    Some(cells)
}

/// Cells as the bytes say.
fn cells(mut data: &[u8], form: Form) -> Vec<Made> {
    let mut cells = Vec::new();
    while let [kind, rest @ ..] = data {
        data = rest;
        if kind % 2 == 0 && form != Form::Zipmap || form == Form::Intset {
            let (number, rest) = data.split_at(data.len().min(usize::from(kind / 2 % 8) + 1));
            let mut wide = [0; 8];
            wide[8 - number.len()..].copy_from_slice(number);
            cells.push(Made::Number(i64::from_le_bytes(wide) >> (64 - 8 * number.len().max(1))));
            data = rest;
        } else {
            let (text, rest) = data.split_at(data.len().min(usize::from(kind / 2)));
            // Lengths around which the form changes.
            cells.push(Made::Text(text.repeat(if kind & 0x80 == 0 { 1 } else { 4 })));
            data = rest;
        }
    }
    cells
}

fn made(form: Form, data: &[u8], how: u8) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut cells = cells(data, form);
    let is_wide = how & 4 != 0;
    let bytes = match form {
        Form::Listpack => forms::listpack(&cells, is_wide),
        Form::Ziplist => forms::ziplist(&cells, is_wide),
        Form::Zipmap => {
            cells.truncate(cells.len() / 2 * 2);
            forms::zipmap(&cells, how >> 4)
        }
        Form::Intset => {
            let number = |cell: &Made| match cell {
                Made::Number(number) => *number,
                Made::Text(_) => 0,
            };
            let mut numbers: Vec<i64> = cells.iter().map(number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            cells = numbers.iter().map(|number| Made::Number(*number)).collect();
            forms::intset(&numbers, 8)
        }
    };
    (bytes, cells.iter().map(Made::text).collect())
}

pub(crate) fn look(form: Form, data: &[u8]) {
    let [how, data @ ..] = data else {
        return;
    };
    match how & 3 {
        0 => drop(read(form, data)),
        1 => {
            let mut bytes = data.to_vec();
            let len = bytes.len();
            if let (Form::Listpack | Form::Ziplist, Some(said)) = (form, bytes.first_chunk_mut()) {
                *said = (len as u32).to_le_bytes();
            }
            let cells = read(form, &bytes);
            // Nothing less is of the form.
            if cells.is_some() && len < 200 {
                assert!((0..len).all(|len| read(form, &bytes[..len]).is_none()));
            }
        }
        2 => {
            let (bytes, cells) = made(form, data, *how);
            assert_eq!(read(form, &bytes), Some(cells));
        }
        _ => {
            let (changes, data) = data.split_at(data.len().min(usize::from(how >> 5) * 3));
            let (mut bytes, _) = made(form, data, *how);
            for change in changes.chunks_exact(3) {
                let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
                bytes[at] ^= change[2];
            }
            read(form, &bytes);
        }
    }
}
