//! One request of the stream: its words, how it is built, and how it is printed.

use std::fmt;

/// How much of one word a report shows.
const SHOWN_BYTES: usize = 120;

/// A command with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) words: Vec<Vec<u8>>,
}

/// Starts a request with the words of `text`, which are separated by single spaces.
pub(crate) fn request(text: &str) -> Request {
    let words = text.split(' ').map(|word| word.as_bytes().to_vec());
    Request {
        words: words.collect(),
    }
}

impl Request {
    /// Appends one word.
    pub(crate) fn word(mut self, word: impl Into<Vec<u8>>) -> Self {
        self.words.push(word.into());
        self
    }

    /// Appends several words.
    pub(crate) fn words(mut self, words: impl IntoIterator<Item = Vec<u8>>) -> Self {
        self.words.extend(words);
        self
    }

    /// The word at `index` in upper case; empty where there is none.
    pub(crate) fn upper(&self, index: usize) -> Vec<u8> {
        self.words
            .get(index)
            .map(|word| word.to_ascii_uppercase())
            .unwrap_or_default()
    }

    /// The command's name in upper case, for a report.
    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.upper(0)).into_owned()
    }

    /// The size of its words in bytes.
    pub(crate) fn len(&self) -> usize {
        self.words.iter().map(Vec::len).sum()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.words.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            match index == 1 && self.words[0].eq_ignore_ascii_case(b"eval") {
                true => write!(f, " {}", String::from_utf8_lossy(word))?,
                false => write!(f, "{space}{}", shown(word))?,
            }
        }
        Ok(())
    }
}

/// Bytes as a report shows them: bare where a shell would take them so, else quoted, cut where they are long.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\".contains(byte);
    if !bytes.is_empty() && bytes.len() <= SHOWN_BYTES && bytes.iter().all(is_plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let quoted = bytes[..bytes.len().min(SHOWN_BYTES)].escape_ascii();
    if bytes.len() > SHOWN_BYTES {
        return format!("\"{quoted}\"...({} bytes)", bytes.len());
    }
    format!("\"{quoted}\"")
}
