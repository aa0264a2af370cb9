//! No bytes make the libraries of scripts panic: cjson, cmsgpack, struct, patterns, and replies of
//! commands. What is read is written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lua::{Arguments, Call, Called, Captured, Ended, Host, Interrupt, Level, State};
use resp::reply::Protocol;
use resp::request::Span;

/// A host whose replies are the arguments of its commands.
struct Mirror(u32);

impl Host for Mirror {
    fn call(&mut self, arguments: &Arguments<'_>, reply: &mut Captured) -> Called {
        let last = arguments.get(arguments.len() - 1);
        reply.bytes.extend_from_slice(last);
        Called::Replied
    }

    fn interrupt(&mut self) -> Interrupt {
        self.0 += 1;
        if self.0 > 100 {
            return Interrupt::Stop;
        }
        Interrupt::Continue
    }

    fn log(&mut self, _: Level, _: &[u8]) {}
}

/// What is done with the two parts of the input, by its first byte.
const SCRIPTS: [&str; 6] = [
    "local ok, v = pcall(cjson.decode, ARGV[1])
     if ok then
         local ok, text = pcall(cjson.encode, v)
         if ok then assert(cjson.encode(cjson.decode(text)) ~= nil) end
     end return 1",
    "local ok, v = pcall(cmsgpack.unpack, ARGV[1])
     if ok then
         local bytes = cmsgpack.pack(v)
         assert(#cmsgpack.pack((cmsgpack.unpack(bytes))) == #bytes)
     end
     pcall(cmsgpack.unpack_limit, ARGV[1], 3, #ARGV[2]) return 1",
    "pcall(struct.unpack, ARGV[2], ARGV[1]) pcall(struct.size, ARGV[2])
     pcall(struct.pack, ARGV[2], 1, 'x', 2.5, ARGV[1], -3, 'yy', 1e300) return 1",
    "pcall(string.find, ARGV[1], ARGV[2]) pcall(string.gsub, ARGV[1], ARGV[2], '%0%1')
     pcall(function() for a, b in ARGV[1]:gmatch(ARGV[2]) do local x = a end end) return 1",
    "return redis.pcall(ARGV[1])",
    "local f = loadstring(ARGV[1]) if f then pcall(f) end return cjson.encode(ARGV[2])",
];

fuzz_target!(|data: &[u8]| {
    let Some((&first, data)) = data.split_first() else {
        return;
    };
    let script = SCRIPTS[usize::from(first) % SCRIPTS.len()];
    let cut = data.len() / 3;
    let spans = [(cut, data.len() - cut), (0, cut)].map(|(start, len)| Span { start, len });
    let mut state = State::new(8 << 20, [7, 4, 0]);
    let function = state
        .compile("@user_script", script.as_bytes())
        .expect("it is one");
    let call = Call {
        name: "SHA",
        keys: Arguments::new(&[], &[]),
        argv: Arguments::new(data, &spans),
        protocol: Protocol::Resp2,
        reply_most: 512 << 20,
memory_most: usize::MAX,
    };
    let mut reply = Vec::new();
    let ended = state.run(&mut Mirror(0), &function, call, &mut reply);
    if let Ended::Failed { is_counted: false } = ended {
        let text = String::from_utf8_lossy(&reply);
        let is_fine = first % 6 > 3 || text.contains("not enough memory");
        assert!(is_fine, "{text}");
    }
});
