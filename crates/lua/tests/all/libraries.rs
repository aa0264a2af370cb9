//! Libraries in a state: loaded, called, and gone.

use lua::{NotLoaded, Registered, State};

use resp::reply::Protocol;

use crate::support::{Fake, LIMIT, VERSION, run};

fn state() -> State {
    State::for_libraries(LIMIT, VERSION)
}

fn load(state: &mut State, text: &str) -> Result<Vec<Registered>, NotLoaded> {
    state.load_library(&mut Fake::default(), text.as_bytes(), LIMIT)
}

/// The error of a text, in words.
fn problem(state: &mut State, text: &str) -> String {
    match load(state, text).expect_err("it is no library") {
        NotLoaded::Compile(text) => format!("compile: {}", String::from_utf8_lossy(&text)),
        NotLoaded::Run(text) => format!("run: {}", String::from_utf8_lossy(&text)),
        NotLoaded::Stopped => "stopped".to_owned(),
    }
}

/// The reply of a function that was registered.
fn reply(state: &mut State, registered: &Registered) -> String {
    let (_, reply) = run(
        state,
        &mut Fake::default(),
        &registered.function,
        Protocol::Resp2,
    );
    String::from_utf8_lossy(&reply).into_owned()
}

#[test]
fn functions_have_their_names_flags_and_values() {
    let mut state = state();
    let text = "local count = 0\n\
                redis.register_function('next', function() count = count + 1 return count end)\n\
                redis.register_function{function_name='keys', callback=function(keys, args) \
                return keys[1] .. args[1] end, description='both', flags={'no-writes', 'allow-oom'}}";
    let functions = load(&mut state, text).expect("it is a library");
    let names: Vec<_> = functions.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["next", "keys"]);
    assert_eq!(functions[0].flags, 0);
    assert_eq!(functions[1].description.as_deref(), Some(&b"both"[..]));
    let flags = lua::FUNCTION_FLAGS.iter().enumerate();
    let flags = flags.filter(|(at, _)| functions[1].flags >> at & 1 != 0);
    let flags: Vec<_> = flags
        .map(|(_, name)| String::from_utf8_lossy(name))
        .collect();
    assert_eq!(flags, ["no-writes", "allow-oom"]);
    assert_eq!(reply(&mut state, &functions[0]), ":1\r\n");
    assert_eq!(reply(&mut state, &functions[1]), "$2\r\nkv\r\n");
    assert_eq!(reply(&mut state, &functions[0]), ":2\r\n");
}

#[test]
fn a_text_that_fails_leaves_nothing() {
    let mut state = state();
    let before = state.memory().live;
    for (text, wanted) in [
        ("x", "compile: user_function:1: '=' expected near '<eof>'"),
        (
            "\n\nlocal t t.x = 1",
            "run: user_function:3: attempt to index local 't' (a nil value)",
        ),
        (
            "redis.register_function('f', function() end) local t t.x = 1",
            "run: user_function:1: attempt to index local 't' (a nil value)",
        ),
    ] {
        for _ in 0..200 {
            let found = problem(&mut state, text);
            assert!(
                found.ends_with(wanted.trim_start_matches("run: ")),
                "{text}: {found}"
            );
            assert_eq!(found.split(':').next(), wanted.split(':').next());
        }
    }
    state.collect();
    let more = state.memory().live.saturating_sub(before);
    assert!(more < 20_000, "{more} bytes are left");
}

#[test]
fn commands_are_for_functions_and_registering_is_for_the_load() {
    let mut state = state();
    let early = problem(&mut state, "redis.call('set', 'k', 'v')");
    assert!(
        early.contains("nonexistent global variable 'call'"),
        "{early}"
    );
    // After a text that has failed, functions see their globals all the same.
    let text = "local register = redis.register_function\n\
                register('set', function(keys) return redis.call('set', keys[1], 'v') end)\n\
                register('late', function() return register('other', function() end) end)";
    let functions = load(&mut state, text).expect("it is a library");
    assert_eq!(reply(&mut state, &functions[0]), "+OK\r\n");
    let late = reply(&mut state, &functions[1]);
    assert!(
        late.starts_with('-') && late.contains("can only be called"),
        "{late}"
    );
}

#[test]
fn a_library_that_is_forgotten_gives_its_memory_back() {
    let mut state = state();
    let before = state.memory().live;
    for _ in 0..50 {
        let text = "local filling = {} for n = 1, 1e5 do filling[n] = n end\n\
                    redis.register_function('f', function() return #filling end)";
        let functions = load(&mut state, text).expect("it is a library");
        for one in functions {
            assert_eq!(reply(&mut state, &one), ":100000\r\n");
            state.forget(one.function);
        }
        state.collect();
    }
    let more = state.memory().live.saturating_sub(before);
    assert!(more < 100_000, "{more} bytes are left");
}

#[test]
fn upvalues_and_libraries_see_nothing_of_each_other() {
    let mut state = state();
    let text = |number: u32| {
        format!(
            "local own = {number}\nredis.register_function('f', function() own = own + 1 return own end)"
        )
    };
    let one = load(&mut state, &text(10)).expect("it is a library");
    let other = load(&mut state, &text(20)).expect("it is a library");
    assert_eq!(reply(&mut state, &one[0]), ":11\r\n");
    assert_eq!(reply(&mut state, &other[0]), ":21\r\n");
    assert_eq!(reply(&mut state, &one[0]), ":12\r\n");
    let global = "leak = 1 redis.register_function('f', function() end)";
    let found = problem(&mut state, global);
    assert!(
        found.contains("Attempt to modify a readonly table"),
        "{found}"
    );
}
