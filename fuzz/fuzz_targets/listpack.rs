//! Any bytes as a listpack: see `form`.

#![no_main]

mod form;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| form::look(rdb::packed::Form::Listpack, data));
