//! A library: its first line, its text, and the functions that the text registers.
//!
//! `FUNCTION LOAD` runs the text once in a state of its own, which has no commands, to learn the functions.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use lua::{Arguments, Called, Captured, FUNCTION_FLAGS, Host, Interrupt, Level, NotLoaded, State};

use super::Flags;
use super::callbacks::proven_library;
use super::places::FindPlaces;
use super::proof::Proven;
use crate::config::redis_version;
use crate::limits::LIBRARY_TEXT_MOST;
use crate::request::Failure;

/// The name of the only engine.
const ENGINE: &[u8] = b"lua";

/// A library.
pub(crate) struct Library {
    pub(crate) name: String,
    pub(crate) text: Arc<[u8]>,
    /// In order of their names.
    pub(crate) functions: Vec<Listed>,
    proven: OnceLock<Proven>,
}

/// A function of a library.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) description: Option<Vec<u8>>,
    bits: u32,
}

impl Listed {
    /// The names of its flags.
    pub(crate) fn flag_names(&self) -> impl Iterator<Item = &'static [u8]> {
        let bits = self.bits;
        let names = FUNCTION_FLAGS.into_iter().enumerate();
        names.filter_map(move |(at, name)| (bits >> at & 1 != 0).then_some(name))
    }

    pub(crate) fn flags(&self) -> Flags {
        let mut flags = Flags {
            is_declared: true,
            ..Flags::default()
        };
        for name in self.flag_names() {
            flags.set(name);
        }
        flags
    }
}

/// The server of a text that is run to learn its functions: it has no commands.
pub(crate) struct LoadHost<'h> {
    began: Instant,
    most: Duration,
    is_ending: &'h dyn Fn() -> bool,
}

impl LoadHost<'_> {
    /// A run that ends after `most`, or with the server.
    pub(crate) fn new(most: Duration, is_ending: &dyn Fn() -> bool) -> LoadHost<'_> {
        LoadHost {
            began: Instant::now(),
            most,
            is_ending,
        }
    }
}

impl Host for LoadHost<'_> {
    fn call(&mut self, _: &Arguments<'_>, _: &mut Captured) -> Called {
        Called::Stop
    }

    fn interrupt(&mut self) -> Interrupt {
        match self.began.elapsed() > self.most || (self.is_ending)() {
            true => Interrupt::Stop,
            false => Interrupt::Continue,
        }
    }

    fn log(&mut self, level: Level, text: &[u8]) {
        log_line(level, text);
    }
}

/// Writes a line of `redis.log`.
pub(crate) fn log_line(level: Level, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    match level {
        Level::Debug => log::trace!("script: {text}"),
        Level::Verbose => log::debug!("script: {text}"),
        Level::Notice => log::info!("script: {text}"),
        Level::Warning => log::warn!("script: {text}"),
    }
}

/// Bounds of the run of a text.
#[derive(Clone, Copy)]
pub(crate) struct LoadBounds {
    pub(crate) time: Duration,
    /// Bytes that its state may have, and that the run may take from the process.
    pub(crate) state_bytes: usize,
    pub(crate) run_bytes: usize,
}

/// Why a text is no library.
pub(crate) enum Unlearned {
    /// It has run for longer than it may.
    Slow,
    Refused(Failure),
}

/// The error of a text that has run for longer than it may.
pub(crate) const TIMEOUT: Failure =
    Failure::of("ERR Error registering functions: ERR FUNCTION LOAD timeout");

impl Library {
    /// Reads a text and runs it.
    ///
    /// # Errors
    /// Its first line is wrong, or it does not compile, or its run fails or registers nothing.
    pub(crate) fn learn(
        text: &Arc<[u8]>,
        bounds: LoadBounds,
        is_ending: &dyn Fn() -> bool,
    ) -> Result<Arc<Library>, Unlearned> {
        let name = name_of(text).map_err(Unlearned::Refused)?;
        if text.len() > LIBRARY_TEXT_MOST {
            let text = format!("ERR The code of a library has at most {LIBRARY_TEXT_MOST} bytes");
            return Err(Unlearned::Refused(Failure::new(text)));
        }
        let mut state = State::for_libraries(bounds.state_bytes, redis_version());
        let mut host = LoadHost::new(bounds.time, is_ending);
        let registered = state.load_library(&mut host, Library::body(text), bounds.run_bytes);
        let registered = registered.map_err(|why| match why {
            NotLoaded::Stopped => Unlearned::Slow,
            NotLoaded::Compile(message) => refused("ERR Error compiling function: ", &message),
            NotLoaded::Run(message) => refused("ERR Error registering functions: ", &message),
        })?;
        if registered.is_empty() {
            return Err(Unlearned::Refused(Failure::of(
                "ERR No functions registered",
            )));
        }
        let listed = registered.into_iter().map(|one| Listed {
            name: one.name,
            description: one.description,
            bits: one.flags,
        });
        let mut functions: Vec<_> = listed.collect();
        functions.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Arc::new(Library::new(name, Arc::clone(text), functions)))
    }

    /// A library with these functions, in order of their names.
    pub(crate) fn new(name: String, text: Arc<[u8]>, functions: Vec<Listed>) -> Library {
        Library {
            name,
            text,
            functions,
            proven: OnceLock::new(),
        }
    }

    /// Properties of all of its functions. `places`: places of the keys of commands.
    pub(super) fn prove(&self, places: FindPlaces<'_>) -> Proven {
        *self
            .proven
            .get_or_init(|| proven_library(Library::body(&self.text), places))
    }

    /// The same, if they are known.
    pub(super) fn proven(&self) -> Proven {
        self.proven.get().copied().unwrap_or_default()
    }

    /// The text after the first line, with its end, so lines keep their numbers.
    pub(crate) fn body(text: &[u8]) -> &[u8] {
        let end = text.iter().position(|&byte| byte == b'\n');
        &text[end.unwrap_or(text.len())..]
    }
}

fn refused(before: &str, message: &[u8]) -> Unlearned {
    Unlearned::Refused(Failure([before.as_bytes(), message].concat().into()))
}

/// The name that the first line of a text gives the library.
fn name_of(text: &[u8]) -> Result<String, Failure> {
    const INVALID: Failure = Failure::of("ERR Invalid library metadata");
    if !text.starts_with(b"#!") {
        return Err(Failure::of("ERR Missing library metadata"));
    }
    let end = text.iter().position(|&byte| byte == b'\n').ok_or(INVALID)?;
    let words = aof::split_words(&text[..end]).ok_or(INVALID)?;
    let mut words = words.into_iter();
    let engine = words.next().unwrap_or_default();
    let mut name = None;
    for word in words {
        let given = match word.get(..5) {
            Some(key) if key.eq_ignore_ascii_case(b"name=") => &word[5..],
            _ => {
                return Err(Failure::about(
                    "ERR Invalid metadata value given: ",
                    &word,
                    "",
                ));
            }
        };
        if name.replace(given.to_vec()).is_some() {
            return Err(Failure::of(
                "ERR Invalid metadata value, name argument was given multiple times",
            ));
        }
    }
    let name = name.ok_or(Failure::of("ERR Library name was not given"))?;
    if !lua::is_function_name(&name) {
        return Err(Failure::of(
            "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one \
             character long",
        ));
    }
    let engine = &engine[2..];
    if !engine.eq_ignore_ascii_case(ENGINE) {
        return Err(Failure::about("ERR Engine '", engine, "' not found"));
    }
    Ok(String::from_utf8_lossy(&name).into_owned())
}

#[cfg(test)]
impl LoadBounds {
    pub(super) const WIDE: LoadBounds = LoadBounds {
        time: Duration::from_secs(60),
        state_bytes: 64 << 20,
        run_bytes: 64 << 20,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(text: &str) -> Result<Arc<Library>, Vec<u8>> {
        let library = Library::learn(&Arc::from(text.as_bytes()), LoadBounds::WIDE, &|| false);
        library.map_err(|why| match why {
            Unlearned::Slow => b"slow".to_vec(),
            Unlearned::Refused(failure) => failure.0.into_owned(),
        })
    }

    #[test]
    fn a_text_says_its_name_and_its_functions() {
        let text = "#!LUA  name=mine\nredis.register_function('b', function() end)\n\
                    redis.register_function{function_name='a', callback=function() end, description='d', \
                    flags={'allow-oom', 'no-writes'}}";
        let library = learned(text).expect("it is a library");
        assert_eq!(library.name, "mine");
        let names: Vec<_> = library.functions.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["a", "b"]);
        let first = &library.functions[0];
        assert_eq!(first.description.as_deref(), Some(&b"d"[..]));
        let flags: Vec<_> = first.flag_names().collect();
        assert_eq!(flags, [&b"no-writes"[..], b"allow-oom"]);
        assert!(first.flags().no_writes && first.flags().is_declared);
        assert!(!library.functions[1].flags().no_writes);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let failed = |text: &str| {
            let why = learned(text).err().expect("it is no library");
            String::from_utf8_lossy(&why).into_owned()
        };
        assert_eq!(failed("return 1"), "ERR Missing library metadata");
        assert_eq!(
            failed("#!lua name=a\n\nx"),
            "ERR Error compiling function: user_function:3: '=' expected near '<eof>'"
        );
        assert_eq!(
            failed("#!lua name=a\nredis.call('ping')"),
            "ERR Error registering functions: ERR user_function:2: Script attempted to access nonexistent \
             global variable 'call'"
        );
        assert_eq!(failed("#!lua name=a\n"), "ERR No functions registered");
    }

    #[test]
    fn a_text_without_end_is_stopped() {
        let text = Arc::from(&b"#!lua name=a\nwhile true do end"[..]);
        let bounds = LoadBounds {
            time: Duration::from_millis(5),
            ..LoadBounds::WIDE
        };
        let library = Library::learn(&text, bounds, &|| false);
        assert!(matches!(library, Err(Unlearned::Slow)));
    }
}
