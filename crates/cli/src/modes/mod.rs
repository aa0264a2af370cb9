//! What the program does instead of running commands: one file per mode.
//!
//! | file | flags |
//! |---|---|
//! | `stat` | `--stat` |
//! | `latency`, `spectrum` | `--latency`, `--latency-history`; `--latency-dist` |
//! | `intrinsic` | `--intrinsic-latency` |
//! | `scan` | `--scan` |
//! | `big_keys`, `hot_keys`, `key_stats` | `--bigkeys` and `--memkeys`; `--hotkeys`; `--keystats` |
//! | `walk`, `types` | what these share: going through all keys, asking for their types and sizes |
//! | `sampled` | how many keys were looked at |
//! | `pipe` | `--pipe` |
//! | `cache_test` | `--lru-test` |
//! | `script` | `--eval` |
//! | `peek` | the command `peek` |
//! | `check` | the command `check` |
//! | `import`, `export`, `replicate` | the commands of these names, `--rdb`, `--functions-rdb`, `--replica` |
//! | `run` | from the mode to its file |
//! | `countdown` | how many lines a mode prints |
//! | `file` | what these share: the file that is being written, the bar of progress |

mod big_keys;
mod cache_test;
pub(crate) mod check;
mod countdown;
mod export;
mod file;
mod hot_keys;
mod import;
mod intrinsic;
mod key_stats;
mod latency;
pub(crate) mod peek;
mod pipe;
mod replicate;
mod run;
mod sampled;
mod scan;
mod script;
mod spectrum;
mod stat;
mod types;
mod walk;

pub(crate) use countdown::Countdown;
pub(crate) use run::run;
