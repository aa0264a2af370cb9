//! Servers side by side (`ferrite-bench side-by-side`, `make bench`): the same loads on each of them, on
//! the same machine, in rounds, and what they cost.
//!
//! Reading order: `cells` is the table of loads, `launch` starts a server, `settings` says what is compared,
//! `loads` makes loads of cells, `steps` shows how far all of it is, `measure` runs the rounds, `memory`
//! weighs keys, `table`, `write` and `page` make reports of it, `compare` does all of it.

pub(crate) mod cells;
mod compare;
mod launch;
mod loads;
mod measure;
mod memory;
mod page;
mod settings;
mod steps;
mod table;
mod write;

pub(crate) use compare::run;
