//! Collections in one string, made by hand as the format says: what old servers wrote, and what the one at
//! hand does not write.

#![allow(dead_code, reason = "every test uses a part")]

pub(crate) mod stream;

/// What goes into a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(Vec<u8>),
    Number(i64),
}

impl Cell {
    /// As an element.
    pub(crate) fn text(&self) -> Vec<u8> {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(number) => number.to_string().into_bytes(),
        }
    }
}

pub(crate) fn text(text: &str) -> Cell {
    Cell::Text(text.as_bytes().to_vec())
}

/// The low bytes of a number, if it fits into so many.
fn fits(number: i64, bytes: u32) -> Option<Vec<u8>> {
    let shift = 64 - 8 * bytes;
    (number << shift >> shift == number).then(|| number.to_le_bytes()[..bytes as usize].to_vec())
}

fn listpack_entry(cell: &Cell, is_wide: bool) -> Vec<u8> {
    let long = |len: usize| [&[0xf0][..], &(len as u32).to_le_bytes()].concat();
    match cell {
        Cell::Text(text) => {
            let head = match text.len() {
                len if is_wide => long(len),
                len @ ..64 => vec![0x80 | len as u8],
                len @ 64..4096 => vec![0xe0 | (len >> 8) as u8, len as u8],
                len => long(len),
            };
            [head, text.clone()].concat()
        }
        Cell::Number(number) => match *number {
            number @ 0..128 if !is_wide => vec![number as u8],
            number @ -4096..4096 if !is_wide => {
                vec![0xc0 | (number >> 8) as u8 & 0x1f, number as u8]
            }
            number => {
                let sizes = [(0xf1, 2), (0xf2, 3), (0xf3, 4), (0xf4, 8)];
                let sizes = if is_wide { &sizes[3..] } else { &sizes[..] };
                let mut forms = sizes.iter();
                let form = forms.find_map(|(code, bytes)| Some((code, fits(number, *bytes)?)));
                let (code, bytes) = form.expect("eight bytes are enough");
                [&[*code][..], &bytes].concat()
            }
        },
    }
}

fn back(len: usize) -> Vec<u8> {
    let count = match len {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    let bits = (0..count)
        .rev()
        .map(|place| (len >> (7 * place)) as u8 & 0x7f);
    let marked = bits
        .enumerate()
        .map(|(place, bits)| if place == 0 { bits } else { bits | 0x80 });
    marked.collect()
}

fn count_of(cells: &[Cell]) -> [u8; 2] {
    (cells.len().min(65_535) as u16).to_le_bytes()
}

/// `is_wide` takes the longest form of every cell.
pub(crate) fn listpack(cells: &[Cell], is_wide: bool) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(count_of(cells));
    for cell in cells {
        let entry = listpack_entry(cell, is_wide);
        bytes.extend(&entry);
        bytes.extend(back(entry.len()));
    }
    bytes.push(0xff);
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    bytes
}

fn ziplist_entry(cell: &Cell, is_wide: bool) -> Vec<u8> {
    let long = |len: usize| [&[0x80][..], &(len as u32).to_be_bytes()].concat();
    match cell {
        Cell::Text(text) => {
            let head = match text.len() {
                len if is_wide => long(len),
                len @ ..64 => vec![len as u8],
                len @ 64..16_384 => vec![0x40 | (len >> 8) as u8, len as u8],
                len => long(len),
            };
            [head, text.clone()].concat()
        }
        Cell::Number(number) => match *number {
            number @ 0..=12 if !is_wide => vec![0xf1 + number as u8],
            number => {
                let sizes = [(0xfe, 1), (0xc0, 2), (0xf0, 3), (0xd0, 4), (0xe0, 8)];
                let sizes = if is_wide { &sizes[4..] } else { &sizes[..] };
                let mut forms = sizes.iter();
                let form = forms.find_map(|(code, bytes)| Some((code, fits(number, *bytes)?)));
                let (code, bytes) = form.expect("eight bytes are enough");
                [&[*code][..], &bytes].concat()
            }
        },
    }
}

/// `is_wide` takes the longest form of every cell.
pub(crate) fn ziplist(cells: &[Cell], is_wide: bool) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    bytes.extend(count_of(cells));
    let (mut last, mut before) = (10, 0_usize);
    for cell in cells {
        last = bytes.len();
        match before {
            ..254 if !is_wide => bytes.push(before as u8),
            _ => {
                bytes.push(254);
                bytes.extend((before as u32).to_le_bytes());
            }
        }
        bytes.extend(ziplist_entry(cell, is_wide));
        before = bytes.len() - last;
    }
    bytes.push(0xff);
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    bytes[4..8].copy_from_slice(&(last as u32).to_le_bytes());
    bytes
}

/// `width` is 2, 4 or 8.
pub(crate) fn intset(numbers: &[i64], width: u32) -> Vec<u8> {
    let mut bytes = width.to_le_bytes().to_vec();
    bytes.extend((numbers.len() as u32).to_le_bytes());
    for number in numbers {
        bytes.extend(fits(*number, width).expect("the width is enough"));
    }
    bytes
}

/// Fields and values in turn, each value with so many spare bytes.
pub(crate) fn zipmap(cells: &[Cell], spare: u8) -> Vec<u8> {
    let mut bytes = vec![(cells.len() / 2).min(254) as u8];
    for (number, cell) in cells.iter().enumerate() {
        let text = cell.text();
        match text.len() {
            len @ ..254 => bytes.push(len as u8),
            len => {
                bytes.push(254);
                bytes.extend((len as u32).to_le_bytes());
            }
        }
        if number % 2 == 1 {
            bytes.push(spare);
            bytes.extend(text);
            bytes.extend(vec![0xee; usize::from(spare)]);
        } else {
            bytes.extend(text);
        }
    }
    bytes.push(0xff);
    bytes
}

/// Cells of every shape, `count` of them, all different.
pub(crate) fn cells(count: usize) -> Vec<Cell> {
    let edges: Vec<i64> = [7, 8, 12, 15, 16, 23, 24, 31, 32, 63]
        .into_iter()
        .flat_map(|bits| {
            let power = 1_i64.checked_shl(bits).unwrap_or(i64::MIN);
            [
                power.wrapping_sub(1),
                power.wrapping_neg(),
                power.wrapping_neg().wrapping_sub(1),
            ]
        })
        .collect();
    let mut cells: Vec<Cell> = (-3..16).chain(edges).map(Cell::Number).collect();
    for len in [
        0, 1, 5, 62, 63, 64, 200, 249, 250, 253, 254, 255, 4095, 4096, 16_383, 16_384,
    ] {
        cells.push(Cell::Text(vec![b'a' + (len % 26) as u8; len]));
    }
    // Lengths whose bytes behind are one more.
    for len in [
        125, 126, 127, 16_376, 16_377, 16_378, 16_379, 16_380, 16_381,
    ] {
        cells.push(Cell::Text(vec![b'A' + (len % 26) as u8; len]));
    }
    let mut unique: Vec<Cell> = Vec::new();
    for cell in cells {
        if !unique.iter().any(|other| other.text() == cell.text()) {
            unique.push(cell);
        }
    }
    for number in 0.. {
        if unique.len() >= count {
            break;
        }
        unique.push(text(&format!("cell {number}")));
    }
    unique.truncate(count);
    unique
}
