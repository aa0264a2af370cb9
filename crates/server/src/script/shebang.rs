//! The first line of a script: `#!lua flags=no-writes,allow-oom`.
//!
//! A script without it runs as in redis-server before version 7: it may do anything.

use crate::request::Failure;

/// Properties that a script declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// It has such a line.
    pub(crate) is_declared: bool,
    /// It writes nothing.
    pub(crate) no_writes: bool,
    /// It may run though memory is short.
    pub(crate) allow_oom: bool,
    /// It does not run on a node of a cluster.
    pub(crate) no_cluster: bool,
    /// Its keys may be in several slots.
    pub(crate) cross_slot: bool,
}

impl Flags {
    /// Sets the flag of a name. Returns whether there is one.
    pub(super) fn set(&mut self, name: &[u8]) -> bool {
        match name {
            b"no-writes" => self.no_writes = true,
            b"allow-oom" => self.allow_oom = true,
            // No server here has data that is old.
            b"allow-stale" => {}
            b"no-cluster" => self.no_cluster = true,
            b"allow-cross-slot-keys" => self.cross_slot = true,
            _ => return false,
        }
        true
    }
}

/// Reads the first line, if it is one of these.
///
/// # Errors
/// An engine, an option or a flag that is unknown.
pub(crate) fn flags_of(text: &[u8]) -> Result<Flags, Failure> {
    let mut flags = Flags::default();
    if !text.starts_with(b"#!") {
        return Ok(flags);
    }
    let Some(end) = text.iter().position(|&byte| byte == b'\n') else {
        return Err(Failure::of("ERR Invalid script shebang"));
    };
    flags.is_declared = true;
    let mut words = text[..end]
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    let engine = words.next().unwrap_or_default();
    if engine != b"#!lua" {
        return Err(Failure::about(
            "ERR Unexpected engine in script shebang: ",
            engine,
            "",
        ));
    }
    for word in words {
        let Some(list) = word.strip_prefix(b"flags=") else {
            return Err(Failure::about("ERR Unknown lua shebang option: ", word, ""));
        };
        for flag in list
            .split(|&byte| byte == b',')
            .filter(|flag| !flag.is_empty())
        {
            if !flags.set(flag) {
                return Err(Failure::about(
                    "ERR Unexpected flag in script shebang: ",
                    flag,
                    "",
                ));
            }
        }
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_from_the_first_line() {
        let flags = |text: &str| flags_of(text.as_bytes()).expect("a right line");
        assert_eq!(flags("return 1"), Flags::default());
        assert!(flags("#!lua\nreturn 1").is_declared);
        let both = flags("#!lua  flags=no-writes,,allow-oom \nreturn 1");
        assert!(both.no_writes && both.allow_oom && !both.no_cluster);
        assert!(flags("#!lua flags=no-cluster flags=allow-cross-slot-keys\n").cross_slot);
    }

    #[test]
    fn what_is_unknown_is_named() {
        let failure = |text: &str| {
            let failure = flags_of(text.as_bytes()).expect_err("a wrong line");
            String::from_utf8_lossy(&failure.0).into_owned()
        };
        assert_eq!(
            failure("#!python\n"),
            "ERR Unexpected engine in script shebang: #!python"
        );
        assert_eq!(
            failure("#!lua name=x\n"),
            "ERR Unknown lua shebang option: name=x"
        );
        assert_eq!(
            failure("#!lua flags=no-writes,bad\n"),
            "ERR Unexpected flag in script shebang: bad"
        );
        assert_eq!(
            failure("#!lua flags=no-writes"),
            "ERR Invalid script shebang"
        );
    }
}
