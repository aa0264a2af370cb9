//! ferrite-bench: puts a load on a server that speaks the Redis protocol, and says what came of it.
//!
//! Reading order: [`options`] says what was asked for, [`load`] what is sent, [`wire`] is one
//! connection, [`drive`] puts the load on a server and counts, [`report`] writes down what was counted.
//! [`session`] does so for the tests of a command line. [`side`] starts servers and compares them,
//! [`floor`] is the one that costs nothing. [`verify`] looks whether a server keeps what it said it has.

#![forbid(unsafe_code)]

mod drive;
mod floor;
mod limits;
mod load;
mod machine;
mod options;
mod report;
mod session;
mod side;
mod verify;
mod wire;

use floor::Floor;
use options::Mode;
use report::document::Document;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match start() {
        Ok(true) => ExitCode::SUCCESS,
        // What went wrong is in the report.
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the command line says; false if requests failed.
fn start() -> Result<bool, String> {
    let options = options::parse(std::env::args_os().skip(1))?;
    if options.wants_help {
        print!("{}", options::help(options.mode));
        return Ok(true);
    }
    if options.wants_version {
        println!("{}", options::version());
        return Ok(true);
    }
    if let Some(old) = &options.compare {
        return compare(old, &options.words);
    }
    if let Some(path) = &options.verify_check {
        return verify::check_file(&options, path);
    }
    match options.mode {
        Mode::Load if options.verify => verify::run(&options),
        Mode::Load => session::start(&options),
        Mode::SideBySide => side::run(&options),
        Mode::Floor => floor::serve(&Floor {
            port: Some(options.port),
            socket: options.socket.clone(),
            reply_bytes: options.reply_bytes,
        })
        .map(|()| true),
    }
}

fn compare(old: &Path, words: &[Vec<u8>]) -> Result<bool, String> {
    let [new] = words else {
        return Err("--compare needs two files that --json wrote".into());
    };
    let new = Path::new(OsStr::from_bytes(new));
    let (old, new) = (Document::read(old)?, Document::read(new)?);
    print!("{}", report::compare::text(&old, &new));
    Ok(true)
}
