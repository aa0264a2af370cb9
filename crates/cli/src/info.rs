//! What INFO says, by name; and CLUSTER INFO, which has the same form.

use std::collections::HashMap;

/// See the module.
#[derive(Debug)]
pub(crate) struct Info {
    fields: HashMap<String, String>,
}

impl Info {
    pub(crate) fn parse(text: &[u8]) -> Info {
        let text = String::from_utf8_lossy(text);
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Info {
            fields: fields
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    /// A text; empty if the server does not say.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// A number; 0 if the server does not say.
    pub(crate) fn number(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// Of all databases.
    pub(crate) fn keys(&self) -> u64 {
        let databases = self.fields.iter().filter(|(name, _)| {
            let number = name.strip_prefix("db").unwrap_or_default();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        let keys = databases.filter_map(|(_, value)| {
            let keys = value.strip_prefix("keys=")?;
            keys.split(',').next()?.parse::<u64>().ok()
        });
        keys.sum()
    }

    /// What the server does beside answering.
    pub(crate) fn child(&self) -> &'static str {
        let saves = self.number("rdb_bgsave_in_progress") > 0;
        let rewrites = self.number("aof_rewrite_in_progress") > 0;
        match (saves, rewrites, self.number("loading") > 0) {
            (_, _, true) => "LOAD",
            (true, true, _) => "SAVE+AOF",
            (true, false, _) => "SAVE",
            (false, true, _) => "AOF",
            (false, false, _) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read_by_name() {
        let text = b"# Stats\r\nloading:0\r\nused_memory:10\r\nused_memory_peak:20\r\n\
            db0:keys=3,expires=0,avg_ttl=0\r\ndb12:keys=4,expires=1,avg_ttl=5\r\ndbx:keys=9\r\n";
        let info = Info::parse(text);
        assert_eq!(info.number("used_memory"), 10);
        assert_eq!((info.number("missing"), info.keys()), (0, 7));
        assert_eq!(info.child(), "");
        assert_eq!(Info::parse(b"loading:1").child(), "LOAD");
        let both = b"rdb_bgsave_in_progress:1\naof_rewrite_in_progress:1";
        assert_eq!(Info::parse(both).child(), "SAVE+AOF");
    }
}
