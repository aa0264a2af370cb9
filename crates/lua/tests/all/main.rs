//! Tests of scripts from outside: replies as redis-server gives them, scripts that mean harm, and one run
//! after another.

mod hostile;
mod libraries;
mod mutations;
mod patterns;
mod replies;
mod runs;
mod vectors;

mod support;
