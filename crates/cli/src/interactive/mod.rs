//! Everything for a person at a terminal.

pub(crate) mod password;
