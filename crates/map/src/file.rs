//! The map in a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::model::Map;

/// Bytes that the text of a map may have.
pub const MAX_MAP_BYTES: u64 = 4 << 20;

/// Mistakes in a map of which the first are told.
const MOST_PROBLEMS: usize = 20;

impl Map {
    /// The map in a file.
    ///
    /// # Errors
    /// Why there is none, a line for each reason. Each begins with the file, and where it is about a line,
    /// with its number too.
    pub fn read_file(file: &Path) -> Result<Map, Vec<String>> {
        let failed = |problem: String| vec![format!("cannot read {}: {problem}", file.display())];
        let text = read_text(file).map_err(|error| failed(error.to_string()))?;
        if text.len() as u64 > MAX_MAP_BYTES {
            return Err(failed(format!("it has more than {MAX_MAP_BYTES} bytes")));
        }
        let text =
            String::from_utf8(text).map_err(|_| failed("it is no text in UTF-8".to_owned()))?;
        Map::parse(&text).map_err(|problems| {
            let lines = problems.iter().take(MOST_PROBLEMS);
            lines
                .map(|problem| format!("{}:{problem}", file.display()))
                .collect()
        })
    }
}

/// What is in the file, up to one byte more than a map may have.
fn read_text(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(file)?
        .take(MAX_MAP_BYTES + 1)
        .read_to_end(&mut text)?;
    Ok(text)
}
