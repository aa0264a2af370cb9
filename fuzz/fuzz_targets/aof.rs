//! No bytes make the readers of append-only files and their manifests panic, or take memory that is not
//! justified. What is read of a file is the same however its bytes come, ends where the reader says, and is
//! read again from what it was made of.

#![no_main]

use std::io::Read;

use aof::{Manifest, Reader};
use libfuzzer_sys::fuzz_target;

const LIMIT: u64 = 1 << 16;

/// A file that comes in pieces whose lengths depend on its bytes.
struct Pieces<'f>(&'f [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = self.0.first().map_or(1, |&byte| 1 + usize::from(byte) % 7);
        let most = buffer.len().min(most);
        self.0.read(&mut buffer[..most])
    }
}

/// The commands of a file, where they end, and whether that is the end of the file.
fn read(mut reader: Reader<impl Read>) -> (Vec<Vec<Vec<u8>>>, u64, bool) {
    let mut commands = Vec::new();
    loop {
        match reader.advance() {
            Ok(Some(_)) => {
                let spans = reader.spans().to_vec();
                // By both ways.
                let bytes = match commands.len() % 2 {
                    0 => reader.bytes().to_vec(),
                    _ => reader.take_bytes(),
                };
                assert!(bytes.len() as u64 <= 2 * LIMIT);
                commands.push(spans.iter().map(|span| span.of(&bytes).to_vec()).collect());
            }
            Ok(None) => return (commands, reader.offset(), true),
            Err(error) => {
                assert!(error.command <= error.offset);
                return (commands, error.command, false);
            }
        }
    }
}

fn encode(commands: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for command in commands {
        bytes.extend(format!("*{}\r\n", command.len()).bytes());
        for argument in command {
            bytes.extend(format!("${}\r\n", argument.len()).bytes());
            bytes.extend_from_slice(argument);
            bytes.extend(b"\r\n");
        }
    }
    bytes
}

fuzz_target!(|data: &[u8]| {
    if let Ok(manifest) = Manifest::parse(data) {
        assert!(manifest.files().all(|file| !file.name.contains(&b'/') && file.seq > 0));
    }
    let (commands, end, is_whole) = read(Reader::new(data, 0, LIMIT));
    assert!(end <= data.len() as u64);
    let again = read(Reader::new(Pieces(data), 0, LIMIT));
    assert_eq!(again, (commands.clone(), end, is_whole));
    let before = read(Reader::new(&data[..end as usize], 0, LIMIT));
    assert_eq!(before, (commands.clone(), end, true));
    let written = encode(&commands);
    let made = read(Reader::new(&written[..], 0, u64::MAX));
    assert_eq!(made, (commands, written.len() as u64, true));
});
