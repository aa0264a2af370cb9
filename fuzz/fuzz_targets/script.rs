//! No text makes a state of Lua panic, run on after it was stopped, or take more memory than its limit; and
//! the next script finds the globals as they were.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lua::{Arguments, Call, Called, Captured, Ended, Host, Interrupt, Level, State};
use resp::reply::Protocol;

const LIMIT: usize = 4 << 20;
const VERSION: [u8; 3] = [7, 4, 0];

/// A host that echoes the last argument, and stops a script after a number of questions.
struct Echo {
    left: u32,
    is_stopped: bool,
}

impl Host for Echo {
    fn call(&mut self, arguments: &Arguments<'_>, reply: &mut Captured) -> Called {
        let last = arguments.get(arguments.len() - 1);
        match arguments.get(0) {
            // The argument is the reply, right or wrong.
            b"raw" => reply.bytes.extend_from_slice(last),
            _ => resp::reply::put_bulk(&mut reply.bytes, last),
        }
        Called::Replied
    }

    fn interrupt(&mut self) -> Interrupt {
        assert!(!self.is_stopped, "asked after a stop");
        self.left = self.left.saturating_sub(1);
        self.is_stopped = self.left == 0;
        if self.is_stopped {
            return Interrupt::Stop;
        }
        Interrupt::Continue
    }

    fn log(&mut self, _: Level, _: &[u8]) {}
}

fn run(state: &mut State, text: &[u8]) -> (Option<Ended>, Vec<u8>) {
    let mut reply = Vec::new();
    let Ok(function) = state.compile("@user_script", text) else {
        return (None, reply);
    };
    let mut host = Echo {
        left: 10,
        is_stopped: false,
    };
    let call = Call {
        name: "SHA",
        keys: Arguments::new(&[], &[]),
        argv: Arguments::new(&[], &[]),
        protocol: Protocol::Resp3,
        reply_most: 512 << 20,
memory_most: usize::MAX,
    };
    let ended = state.run(&mut host, &function, call, &mut reply);
    state.forget(function);
    (Some(ended), reply)
}

/// All that scripts share, as a number.
const SHARED: &[u8] = b"local n = 0
    for name, value in pairs(_G) do
        n = n + #name
        if type(value) == 'table' and name ~= '_G' and name ~= 'KEYS' and name ~= 'ARGV' then
            for key, item in pairs(value) do n = n + #key * 1000 + #type(item) end
        end
    end
    return n";

fuzz_target!(|data: &[u8]| {
    let mut state = State::new(LIMIT, VERSION);
    let (_, shared) = run(&mut state, SHARED);
    let (ended, reply) = run(&mut state, data);
    assert_eq!(
        reply.is_empty(),
        matches!(ended, None | Some(Ended::Stopped))
    );
    assert!(state.memory().taken <= LIMIT);
    if state.rest() {
        assert_eq!(run(&mut state, SHARED).1, shared);
    }
});
