//! Files of large values with every kind of damage: what is read is what was written, or an error names the
//! piece.

use sys::file::Disk;

use super::*;

/// A directory that goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let directory = format!("ferrite-sums-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        std::fs::create_dir_all(&directory).expect("there is space");
        Scratch(directory)
    }

    /// A file with these bytes.
    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.join("value");
        std::fs::write(&path, bytes).expect("there is space");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Numbers without a pattern.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % most
    }
}

const ID: u64 = 0x0001_2345_6789_abc8;

fn value(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 253) as u8).collect()
}

/// The file of a value, of which so many bytes arrive at a time, and what a record says of it.
fn written(id: u64, value: &[u8], step: usize) -> (Vec<u8>, BlobRef) {
    let mut sums = Sums::new(id);
    value.chunks(step).for_each(|part| sums.add(part));
    let blob = BlobRef {
        id,
        len: value.len() as u64,
        checksum: sums.whole(),
    };
    let mut file = value.to_vec();
    let (at, table) = sums.table(blob.len);
    file.resize(at as usize, 0);
    file.extend_from_slice(&table);
    assert_eq!(file.len() as u64, file_bytes(blob.len));
    (file, blob)
}

/// Reads pieces `first..until` as the server does.
fn read(file: &mut BlobFile, first: u64, until: u64) -> Result<Vec<u8>> {
    let (at, end) = (first * PIECE, (until * PIECE).min(file.place.blob.len));
    let mut bytes = vec![0; (end - at) as usize];
    let filled = file.file().read_exact_at(&mut bytes, at);
    filled.map_err(|error| Error::io("cannot read", &file.place.path, error))?;
    file.verify(&bytes, at)?;
    Ok(bytes)
}

const P: usize = BLOB_PIECE_BYTES;

#[test]
fn every_piece_is_checked_by_itself() {
    let scratch = Scratch::new("pieces");
    for (len, step) in [
        (2 * P, P),
        (2 * P + 1, 1000),
        (3 * P - 1, 3 * P),
        (5 * P + 777, 4096),
    ] {
        let value = value(len);
        let (bytes, blob) = written(ID, &value, step);
        let pieces = blob.len.div_ceil(PIECE);
        let open = |bytes: &[u8]| BlobFile::open(&Disk, &scratch.file(bytes), blob);
        let mut file = open(&bytes).expect("it is whole");
        for first in (0..pieces).rev() {
            for until in first + 1..=pieces {
                let found = read(&mut file, first, until).expect("it is whole");
                assert!(value[first as usize * P..].starts_with(&found));
            }
        }
        for number in 0..pieces {
            for at in [number as usize * P, (number as usize * P + P).min(len) - 1] {
                let mut broken = bytes.clone();
                broken[at] ^= 0x10;
                let path = scratch.file(&broken);
                let mut file = BlobFile::open(&Disk, &path, blob).expect("its size is right");
                for piece in 0..pieces {
                    let found = read(&mut file, piece, piece + 1);
                    assert_eq!(found.is_err(), piece == number);
                }
                let damage = damage_of(&Disk, &path, blob).expect("it can be read");
                let damage = damage.expect("it is damaged");
                let named = format!("piece {number} of {pieces} ");
                assert!(damage.reason.contains(&named), "{damage}");
                assert_eq!((damage.offset, &damage.file), (number * PIECE, &path));
                assert!(!is_whole(&Disk, &path, blob).expect("it can be read"));
            }
        }
    }
}

#[test]
fn a_piece_of_another_place_or_file_does_not_pass() {
    let scratch = Scratch::new("places");
    // All pieces have the same bytes.
    let value = vec![7; 3 * P];
    let (bytes, blob) = written(ID, &value, P);
    let (other, other_blob) = written(ID + 8, &value, P);
    assert_eq!(blob.checksum, other_blob.checksum);
    let path = scratch.file(&other);
    let damage = damage_of(&Disk, &path, blob).expect("it can be read");
    assert!(damage.is_some_and(|damage| damage.reason.contains("the checksums of its pieces")));
    // Checksums of two pieces that changed places.
    let mut swapped = bytes.clone();
    let at = table_at(blob.len) as usize + BLOCK_HEADER;
    swapped[at..at + 8].rotate_left(4);
    let sum = block_checksum(ID, 0, &swapped[at - BLOCK_HEADER..]).to_le_bytes();
    swapped[at - 4..at].copy_from_slice(&sum);
    let path = scratch.file(&swapped);
    let mut file = BlobFile::open(&Disk, &path, blob).expect("its size is right");
    assert!(read(&mut file, 0, 1).is_err() && read(&mut file, 1, 2).is_err());
    read(&mut file, 2, 3).expect("it is in its place");
    // The value is whole, and gets new ones.
    assert!(is_whole(&Disk, &path, blob).expect("it can be read"));
    write_anew(&Disk, &path, blob).expect("there is space");
    assert_eq!(std::fs::read(&path).expect("it is there"), bytes);
}

#[test]
fn a_value_without_a_table_is_checked_as_a_whole() {
    let scratch = Scratch::new("whole");
    for (len, pieces) in [(1, 1), (P - 1, 1), (P, 1), (2 * P + 5, 3)] {
        let (mut bytes, blob) = written(ID, &value(len), P);
        // As earlier versions wrote it.
        bytes.truncate(table_at(blob.len) as usize);
        let mut file = BlobFile::open(&Disk, &scratch.file(&bytes), blob).expect("it is whole");
        for number in 0..pieces {
            read(&mut file, number, number + 1).expect("it is whole");
        }
        bytes[len / 2] ^= 1;
        let path = scratch.file(&bytes);
        let mut file = BlobFile::open(&Disk, &path, blob).expect("its size is right");
        for number in 0..pieces - 1 {
            read(&mut file, number, number + 1).expect("nothing is known of it");
        }
        for _ in 0..2 {
            assert!(read(&mut file, pieces - 1, pieces).is_err());
        }
        assert!(
            damage_of(&Disk, &path, blob)
                .expect("it can be read")
                .is_some()
        );
    }
}

#[test]
fn a_table_has_as_many_blocks_as_it_needs() {
    let scratch = Scratch::new("blocks");
    let len = (PIECES + 2) * PIECE - 100;
    let zeroes = vec![0; P];
    let mut sums = Sums::new(ID);
    for number in 0..PIECES + 2 {
        sums.add(&zeroes[..(len - number * PIECE).min(PIECE) as usize]);
    }
    let blob = BlobRef {
        id: ID,
        len,
        checksum: sums.whole(),
    };
    let (at, table) = sums.table(len);
    assert_eq!((at, table.len()), (table_at(len), 2 * BLOCK));
    let path = scratch.file(&[]);
    let sparse = std::fs::OpenOptions::new().write(true).open(&path);
    let sparse = sparse.expect("it was made");
    std::os::unix::fs::FileExt::write_all_at(&sparse, &table, at).expect("there is space");
    let mut file = BlobFile::open(&Disk, &path, blob).expect("it is whole");
    for first in [PIECES + 1, 0, PIECES - 1, PIECES] {
        read(&mut file, first, (first + 2).min(PIECES + 2)).expect("it is whole");
    }
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"x", len - 1).expect("there is space");
    let error = read(&mut file, PIECES + 1, PIECES + 2).expect_err("it is damaged");
    assert!(error.to_string().contains("piece 1021 of 1022 "), "{error}");
}

/// Random damage: cut, flipped, replaced, grown, at any place. What is read afterwards is right or refused,
/// and nothing panics.
#[test]
fn whatever_happens_to_a_file_what_is_read_is_right_or_refused() {
    let scratch = Scratch::new("random");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..400 {
        let len = 1 + random.below(4 * P);
        let value = value(len);
        let (mut bytes, blob) = written(ID, &value, 1 + random.below(2 * P));
        let table = table_at(blob.len) as usize;
        for _ in 0..1 + random.below(3) {
            let from = match random.below(2) {
                0 => random.below(bytes.len().max(1)),
                // The table is small.
                _ => (table + random.below(64)).min(bytes.len().saturating_sub(1)),
            };
            match random.below(5) {
                0 => bytes.truncate(from),
                1 => bytes.extend(vec![random.below(256) as u8; random.below(9000)]),
                2 => {
                    let until = (from + random.below(9000)).min(bytes.len());
                    bytes[from..until].fill(random.below(256) as u8);
                }
                _ if bytes.is_empty() => {}
                _ => bytes[from] ^= 1 << random.below(8),
            }
        }
        let path = scratch.file(&bytes);
        let is_right = bytes.starts_with(&value);
        assert_eq!(
            is_whole(&Disk, &path, blob).expect("it can be read"),
            is_right
        );
        let damage = damage_of(&Disk, &path, blob).expect("it can be read");
        assert!(is_right || damage.is_some());
        let Ok(mut file) = BlobFile::open(&Disk, &path, blob) else {
            assert!(damage.is_some());
            continue;
        };
        let pieces = blob.len.div_ceil(PIECE);
        let is_as_a_whole = matches!(file.known, Known::Whole { .. });
        let mut all = Vec::new();
        for number in 0..pieces {
            match read(&mut file, number, number + 1) {
                Ok(piece) if is_as_a_whole => all.extend(piece),
                Ok(piece) => assert!(value[number as usize * P..].starts_with(&piece)),
                Err(_) => assert!(damage.is_some()),
            }
        }
        assert!(!is_as_a_whole || all.len() < len || all == value);
        if is_right {
            write_anew(&Disk, &path, blob).expect("there is space");
            assert_eq!(damage_of(&Disk, &path, blob).expect("it can be read"), None);
        }
    }
}

/// FERRITE_UPDATE_DUMP prints the dump that belongs into docs/format.md.
#[test]
fn the_dump_in_the_documentation_is_what_is_written() {
    let (bytes, blob) = written(0x1000, &[b'v'; P + 1], P);
    let block = &bytes[table_at(blob.len) as usize..];
    assert!(block.len() == BLOCK && block[24..].iter().all(|&byte| byte == 0));
    let digits: Vec<String> = block[..24]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let lines: Vec<String> = digits.chunks(16).map(|line| line.join(" ")).collect();
    let dump = lines.join("\n");
    if std::env::var_os("FERRITE_UPDATE_DUMP").is_some() {
        println!("{dump}");
        return;
    }
    let document = include_str!("../../../../docs/format.md");
    assert!(
        document.contains(&dump),
        "docs/format.md has another dump; this is the one of now:\n{dump}"
    );
}
