//! Keys that were seen lately: in commands, and in what commands found.

use resp::Value;

use crate::commands::Catalog;
use crate::limits::SEEN_KEYS;
use crate::request::is;

/// See the module.
#[derive(Default)]
pub(super) struct SeenKeys {
    /// The latest last.
    keys: Vec<Vec<u8>>,
}

impl SeenKeys {
    /// Notes the keys of a command.
    pub(super) fn note_command(&mut self, words: &[Vec<u8>], catalog: &Catalog) {
        if is(&words[0], "peek") {
            words.iter().skip(1).for_each(|key| self.note(key));
        }
        if let Some((command, _)) = catalog.find(words) {
            for at in command.keys.indices(words.len()) {
                self.note(&words[at]);
            }
        }
    }

    /// Notes the keys of a reply, if the command looks for keys.
    pub(super) fn note_reply(&mut self, words: &[Vec<u8>], reply: &Value) {
        let name = &words[0];
        match reply {
            Value::Bulk(key) if is(name, "randomkey") => self.note(key),
            Value::Array(items) if is(name, "keys") => self.note_all(items),
            Value::Array(items) if is(name, "scan") => {
                if let Some(Value::Array(items)) = items.get(1) {
                    self.note_all(items);
                }
            }
            _ => {}
        }
    }

    /// The latest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().rev().map(Vec::as_slice)
    }

    fn note_all(&mut self, items: &[Value]) {
        // Of more than there is room for, the first are as good as the last.
        for item in items.iter().take(SEEN_KEYS) {
            if let Value::Bulk(key) = item {
                self.note(key);
            }
        }
    }

    fn note(&mut self, key: &[u8]) {
        self.keys.retain(|its| its != key);
        if self.keys.len() == SEEN_KEYS {
            self.keys.remove(0);
        }
        self.keys.push(key.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::split;

    fn words(line: &str) -> Vec<Vec<u8>> {
        split(line.as_bytes()).expect("well formed")
    }

    #[test]
    fn keys_are_kept_in_the_order_in_which_they_were_seen_last() {
        let catalog = Catalog::builtin();
        let mut keys = SeenKeys::default();
        for line in ["set a 1", "mget b c a", "echo x", "peek d", "nonsense y"] {
            keys.note_command(&words(line), &catalog);
        }
        let found = |items: &[&str]| {
            let bulk = |item: &&str| Value::Bulk(item.as_bytes().to_vec());
            Value::Array(items.iter().map(bulk).collect())
        };
        keys.note_reply(&words("keys *"), &found(&["e"]));
        let scan = Value::Array(vec![Value::Bulk(b"0".to_vec()), found(&["f", "b"])]);
        keys.note_reply(&words("scan 0"), &scan);
        keys.note_reply(&words("mget x"), &found(&["value"]));
        let order: Vec<u8> = keys.iter().map(|key| key[0]).collect();
        assert_eq!(String::from_utf8_lossy(&order), "bfedac");
    }

    #[test]
    fn there_is_a_limit() {
        let mut keys = SeenKeys::default();
        for number in 0..SEEN_KEYS + 5 {
            keys.note(number.to_string().as_bytes());
        }
        assert_eq!(keys.iter().count(), SEEN_KEYS);
        let oldest = keys.iter().last().map(<[u8]>::to_vec);
        assert_eq!(oldest.as_deref(), Some(&b"5"[..]));
    }
}
