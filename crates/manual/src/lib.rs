//! Shell completions and manual pages, made from the programs' own tables of flags.
//!
//! A program says in a [`Program`] what its tables hold; [`keep`] compares what is made of it with the files
//! in `deploy`, in a test of the program, so that neither can be changed without the other. With
//! `UPDATE_DOCS=1` it writes the files instead.
//!
//! ```text
//!   deploy/completions/NAME.bash  _NAME  NAME.fish
//!   deploy/man/NAME.1
//! ```
//!
//! No program depends on this crate, only their tests do. What a flag means is not known here.

#![forbid(unsafe_code)]

mod completion;
mod families;
mod keep;
mod page;
mod program;

pub use keep::keep;
pub use program::{Family, Flag, Group, Member, Program, Section};
