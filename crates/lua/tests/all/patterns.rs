//! Random patterns: `string.find`, `match`, `gmatch` and `gsub` against those of C, in a state of Lua as it
//! comes.

use std::ffi::CStr;
use std::os::raw::c_int;

use mlua_sys as ffi;

use crate::support::{Fake, eval, state};

/// Scripts to compare; each has [`CASES`] patterns. `FERRITE_PATTERNS=10000` for 400,000 patterns.
const SCRIPTS: u64 = 60;
const CASES: usize = 40;

const PIECES: [&str; 44] = [
    "a", "b", "ab", ".", "%a", "%d", "%s", "%w", "%p", "%x", "%u", "%l", "%z", "%A", "%W", "%S",
    "[ab]", "[^a]", "[a-c]", "[%a_]", "[^%s]", "[]]", "[a-]", "*", "+", "-", "?", "(", ")", "()",
    "%1", "%2", "%b()", "%bab", "%f[a]", "%f[%w]", "^", "$", "%%", "%", "[", "]", "1", " ",
];
const SUBJECT: &[u8] = b"aaabbbcab(())12 xX_.%[]-\0";
const REPLACEMENTS: [&str; 8] = [
    "'x'",
    "'<%0>'",
    "'%1%1'",
    "'%2'",
    "'%%'",
    "function(a, b) return b or a end",
    "function(a) return false end",
    "{a = 'A', ab = 'AB', b = false}",
];

#[test]
fn random_patterns_match_as_in_c() {
    let scripts = std::env::var("FERRITE_PATTERNS").map_or(SCRIPTS, |text| {
        text.parse().expect("FERRITE_PATTERNS is a number")
    });
    let mut state = state();
    let mut host = Fake::default();
    for seed in 0..scripts {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut script = String::from(HEAD);
        for _ in 0..CASES {
            let pattern: String = (0..random.usize(1..7))
                .map(|_| PIECES[random.usize(..PIECES.len())])
                .collect();
            let subject: String = (0..random.usize(..24))
                .map(|_| quoted(SUBJECT[random.usize(..SUBJECT.len())]))
                .collect();
            let pattern: String = pattern.bytes().map(quoted).collect();
            let replacement = REPLACEMENTS[random.usize(..REPLACEMENTS.len())];
            let (from, most) = (random.i32(-5..8), random.i32(-1..6));
            script.push_str(&format!(
                "case(\"{subject}\", \"{pattern}\", {replacement}, {from}, {most})\n"
            ));
        }
        script.push_str("return table.concat(results, '\\n')");
        let expected = c_result(script.as_bytes());
        let reply = eval(&mut state, &mut host, script.as_bytes());
        let reply = String::from_utf8_lossy(&reply).into_owned();
        let ours = reply.split_once("\r\n").map_or("", |(_, text)| text);
        for (at, (ours, expected)) in ours.lines().zip(expected.lines()).enumerate() {
            let case = script
                .lines()
                .filter(|line| line.starts_with("case("))
                .nth(at);
            assert_eq!(ours, expected, "seed {seed}: {case:?}");
        }
        assert_eq!(ours.trim_end(), expected.trim_end(), "seed {seed}");
    }
}

/// A byte in a string of Lua.
fn quoted(byte: u8) -> String {
    format!("\\{byte:03}")
}

const HEAD: &str = r#"
local results = {}
local function show(...)
    local t = {}
    for i = 1, select('#', ...) do
        t[i] = tostring((select(i, ...)))
    end
    local text = table.concat(t, ',')
    text = text:gsub('user_script:%d+: ', ''):gsub('\n', ' '):gsub('\r', ' ')
    results[#results] = results[#results] .. text .. '|'
end
local function case(s, p, r, from, most)
    results[#results + 1] = ''
    show(pcall(string.find, s, p))
    show(pcall(string.find, s, p, from))
    show(pcall(string.match, s, p))
    show(pcall(string.gsub, s, p, r))
    show(pcall(string.gsub, s, p, r, most))
    show(pcall(function()
        local t = {}
        for a, b in string.gmatch(s, p) do
            t[#t + 1] = tostring(a) .. ':' .. tostring(b)
        end
        return table.concat(t, ';')
    end))
end
"#;

/// The result of a script in a state with C's own libraries.
fn c_result(script: &[u8]) -> String {
    // SAFETY: a state of its own, closed at the end; the indexes are those of its results.
    unsafe {
        let raw = ffi::luaL_newstate();
        for open in [
            ffi::luaopen_base as unsafe extern "C-unwind" fn(*mut ffi::lua_State) -> c_int,
            ffi::luaopen_string,
            ffi::luaopen_table,
        ] {
            ffi::lua_pushcclosure(raw, open, 0);
            ffi::lua_call(raw, 0, 0);
        }
        let name: &CStr = c"@user_script";
        let text = script.as_ptr().cast();
        let loaded = ffi::luaL_loadbuffer(raw, text, script.len(), name.as_ptr());
        assert_eq!(loaded, 0, "the script is one of Lua");
        assert_eq!(ffi::lua_pcall(raw, 0, 1, 0), 0, "the script ends");
        let mut len = 0;
        let text = ffi::lua_tolstring(raw, -1, &mut len);
        let bytes = std::slice::from_raw_parts(text.cast::<u8>(), len);
        let result = String::from_utf8_lossy(bytes).into_owned();
        ffi::lua_close(raw);
        result
    }
}
