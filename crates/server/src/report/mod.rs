//! The server's figures as people and machines read them.

pub(crate) mod figures;
pub(crate) mod http;
