//! The program against real servers: redis-server as the distribution has it, and Ferrite.
//!
//! Nothing here asserts how fast something is.

mod closed;
mod cluster;
mod listeners;
mod lossy;
mod open;
mod scripted;
mod side;
mod support;
mod verify;
