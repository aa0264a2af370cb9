//! The integration tests of the server: one program, so that it is linked once, and its tests fill all
//! processors.
//!
//! `cargo test -p ferrite-server --test all golden` runs those of one module.

mod backup;
mod blobs;
mod check_log;
mod cluster;
mod command_table;
mod connections;
mod damaged_trees;
mod defaults;
mod differential;
mod disk;
mod durable;
mod field_expiry;
mod flows;
mod gather;
mod golden;
mod hash_files;
mod http;
mod hyperloglogs;
mod import;
mod inbox_model;
mod large_hashes;
mod large_values;
mod limits;
mod lists;
mod log_start;
mod logins;
mod memory;
mod names;
mod offload;
mod pubsub;
mod service;
mod sessions;
mod sets;
mod signals;
mod slow;
mod snapshots;
mod sorted_sets;
mod split;
mod stock;
mod support;
mod takeover;
mod torture;
mod transactions;
