//! One request and its reply, independent of commands: arguments in a buffer, failures, replies.

mod args;
pub(crate) mod failure;
mod pieces;
pub(crate) mod reply;
mod reply_mode;

pub(crate) use args::Args;
pub(crate) use failure::Failure;
pub(crate) use pieces::{Chunk, Pieces};
pub(crate) use reply::{Apart, FilePart, Output, Pinned, Reply};
pub(crate) use reply_mode::ReplyMode;
