//! One run after another in one state: the next sees nothing of the one before.

use lua::{Ended, State};
use resp::reply::Protocol;

use crate::support::{Fake, LIMIT, eval, run, run_with, state};

/// Each script tries to leave something; the next says whether it sees it.
const PAIRS: [(&str, &str); 28] = [
    ("x = 1", "return rawget(_G, 'x') == nil"),
    ("rawset(_G, 'x', 1)", "return rawget(_G, 'x') == nil"),
    ("_G.x = 1", "return rawget(_G, 'x') == nil"),
    ("string.x = 1", "return string.x == nil"),
    ("string.sub = 1", "return type(string.sub) == 'function'"),
    ("redis.call = 1", "return type(redis.call) == 'function'"),
    ("setmetatable(_G, {})", "return getmetatable(_G) == _G"),
    (
        "setmetatable(string, nil)",
        "return rawget(string, 'sub') ~= nil",
    ),
    (
        "getmetatable('').__index = function() return 1 end",
        "return ('x').nope == nil",
    ),
    (
        "getmetatable('').__add = function() return 1 end",
        "return not pcall(function() return 'x' + 1 end)",
    ),
    ("getmetatable(_G).__index = nil", "return string ~= nil"),
    (
        "rawset(getmetatable(''), '__index', 1)",
        "return ('x'):len() == 1",
    ),
    (
        "table.insert(getmetatable(''), 1)",
        "return #getmetatable('') == 0",
    ),
    (
        "for k in pairs(getmetatable('')) do rawset(getmetatable(''), k, nil) end",
        "return ('x'):len() == 1",
    ),
    ("KEYS[1] = 'other'", "return KEYS[1] == 'k' and #KEYS == 1"),
    ("ARGV[2] = 'more'", "return #ARGV == 1"),
    ("KEYS.x = 1", "return KEYS.x == nil"),
    (
        "setmetatable(KEYS, {__index = {'a', 'b'}})",
        "return KEYS[2] == nil",
    ),
    (
        "math.randomseed(7) math.random()",
        "return tostring(math.random()) == '0.39646477363839'",
    ),
    (
        "redis.setresp(3)",
        "return redis.call('get', 'none') == false",
    ),
    (
        "collectgarbage('stop')",
        "return collectgarbage('count') > 0",
    ),
    (
        "local c = coroutine.create(function() string.y = 1 end) coroutine.resume(c)",
        "return string.y == nil",
    ),
    ("loadstring('z = 1')", "return rawget(_G, 'z') == nil"),
    (
        "pcall(loadstring('z = 1'))",
        "return rawget(_G, 'z') == nil",
    ),
    (
        "local f = load(function() return nil end) f()",
        "return loadstring('return 1')() == 1",
    ),
    (
        "cjson.encode_max_depth(1) cjson.encode_sparse_array(true)",
        "return cjson.encode({{{}}}) == '[[{}]]' and not pcall(cjson.encode, {[99] = 1})",
    ),
    (
        "cjson.decode = nil",
        "return type(cjson.decode) == 'function'",
    ),
    ("error(KEYS)", "return KEYS[1] == 'k'"),
];

#[test]
fn the_next_run_sees_nothing() {
    let (mut state, mut host) = (state(), Fake::default());
    for (first, second) in PAIRS {
        eval(&mut state, &mut host, first.as_bytes());
        let reply = eval(&mut state, &mut host, second.as_bytes());
        let reply = String::from_utf8_lossy(&reply);
        assert_eq!(reply, ":1\r\n", "{first}");
    }
}

#[test]
fn keys_are_those_of_the_run_or_none() {
    let (mut state, mut host) = (state(), Fake::default());
    let named = state.compile("@user_script", b"return KEYS[1]").unwrap();
    let hidden = state
        .compile("@user_script", b"return _G['KE' .. 'YS'][1]")
        .unwrap();
    let loaded = state
        .compile(
            "@user_script",
            b"return loadstring('return KE' .. 'YS[1]')()",
        )
        .unwrap();
    for function in [&named, &hidden, &loaded] {
        let (ended, reply) = run(&mut state, &mut host, function, Protocol::Resp2);
        assert_eq!((ended, &reply[..]), (Ended::Done, &b"$1\r\nk\r\n"[..]));
    }
    // Without a list there is none of the run before.
    state.collect();
    assert!(state.memory().live < LIMIT / 100);
}

/// Texts that only read KEYS and ARGV share lists; others between them see that of their own run.
#[test]
fn the_shared_lists_are_those_of_the_run_alone() {
    let (mut state, mut host) = (state(), Fake::default());
    let texts = [
        "return {#KEYS, #ARGV, ARGV[1] or '', KEYS[1], KEYS[2], KEYS[3], \
            redis.call('get', KEYS[1] or 'none')}",
        "KEYS[60] = 'own' ARGV[60] = 'own' \
            return {#KEYS, #ARGV, ARGV[1] or '', KEYS[1], KEYS[2], KEYS[3], \
            redis.call('get', KEYS[1] or 'none')}",
    ];
    let compile = |state: &mut State, text: &str| state.compile("@user_script", text.as_bytes());
    let shared = compile(&mut state, texts[0])
        .unwrap()
        .only_reads(true, true);
    let own = compile(&mut state, texts[0]).unwrap();
    let changes = compile(&mut state, texts[1]).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..20_000 {
        let count = match random.u8(..8) {
            0 => random.usize(..40),
            _ => random.usize(..4),
        };
        let keys: Vec<String> = (0..count)
            .map(|_| format!("k{}", random.u8(..50)))
            .collect();
        if random.u8(..50) == 0 {
            state.collect();
        }
        let argv: Vec<String> = (0..random.usize(..20))
            .map(|_| format!("a{}", random.u8(..50)))
            .collect();
        let function = [&shared, &shared, &own, &changes][random.usize(..4)];
        let [names, values] =
            [&keys, &argv].map(|list| list.iter().map(String::as_bytes).collect::<Vec<_>>());
        let lists = [&names[..], &values[..]];
        let (_, reply) = run_with(&mut state, &mut host, function, Protocol::Resp2, lists);
        // A list ends before its first nil.
        let (items, first) = (
            if count < 3 { count + 3 } else { 7 },
            argv.first().map_or("", String::as_str),
        );
        let mut wanted = format!("*{items}\r\n:{count}\r\n:{}\r\n", argv.len());
        wanted += &format!("${}\r\n{first}\r\n", first.len());
        for key in keys.iter().take(3) {
            wanted += &format!("${}\r\n{key}\r\n", key.len());
        }
        let reply = String::from_utf8_lossy(&reply);
        assert!(reply.starts_with(&wanted), "{keys:?}: {reply}");
        let first = keys.first().map(|_| Some(0));
        assert_eq!(host.known[1], first.unwrap_or(None), "{keys:?}");
    }
    state.collect();
    assert!(state.memory().live < LIMIT / 100);
}

#[test]
fn arguments_that_are_keys_are_known() {
    let (mut state, mut host) = (state(), Fake::default());
    eval(
        &mut state,
        &mut host,
        b"return redis.call('set', KEYS[1], ARGV[1])",
    );
    assert_eq!(host.known, [None, Some(0), None]);
    eval(&mut state, &mut host, b"return redis.call('get', 'kk')");
    assert_eq!(host.known, [None, None]);
    // The string is the same, although the script has removed it from the list.
    eval(
        &mut state,
        &mut host,
        b"KEYS[1] = nil collectgarbage() return redis.call('get', 'k')",
    );
    assert_eq!(host.known, [None, Some(0)]);
}

#[test]
fn a_state_at_its_limit_is_thrown_away() {
    let (mut state, mut host) = (state(), Fake::default());
    assert!(state.rest());
    let reply = eval(
        &mut state,
        &mut host,
        b"local ok, e = pcall(function() local t = {} while true do t[#t + 1] = {} end end) return e",
    );
    assert_eq!(reply, b"$17\r\nnot enough memory\r\n");
    assert!(!state.rest());
    // It still works for those that have it.
    let reply = eval(&mut state, &mut host, b"return 1");
    assert_eq!(reply, b":1\r\n");
}

#[test]
fn garbage_is_collected_between_runs() {
    let (mut state, mut host) = (state(), Fake::default());
    for _ in 0..100 {
        eval(
            &mut state,
            &mut host,
            b"local t = {} for i = 1, 20000 do t[i] = {i} end return #t",
        );
        assert!(state.rest());
        assert!(state.memory().live < 4 << 20);
    }
}

#[test]
fn functions_are_freed() {
    let (mut state, mut host) = (state(), Fake::default());
    state.collect();
    let before = state.memory().live;
    for at in 0..2000 {
        let text = format!("return {at} .. ' {}'", "x".repeat(1000));
        eval(&mut state, &mut host, text.as_bytes());
    }
    state.collect();
    let after = state.memory().live;
    assert!(after < before + 20_000, "{before} {after}");
}

/// Values made at random, through the libraries and back.
const ROUNDS: &[u8] = b"
    math.randomseed(ARGV[1] and 1 or 2)
    local function value(depth)
        local kind = math.random(depth > 3 and 5 or 8)
        if kind == 1 then return math.random(0, 2147483646) * 2 ^ math.random(-20, 10) end
        if kind == 2 then return math.random(-300, 300) end
        if kind == 3 then return math.random(2) == 1 end
        if kind < 6 then
            local bytes = {}
            for i = 1, math.random(0, 40) do bytes[i] = string.char(math.random(0, 255)) end
            return table.concat(bytes)
        end
        local t = {}
        for i = 1, math.random(0, 9) do
            t[kind == 6 and i or ('k' .. math.random(50))] = value(depth + 1)
        end
        return t
    end
    local function same(a, b)
        if type(a) ~= type(b) then return false end
        if type(a) == 'number' then return math.abs(a - b) <= math.abs(a) * 1e-13 end
        if type(a) ~= 'table' then return a == b end
        for k, v in pairs(a) do if not same(v, b[k]) then return false end end
        for k in pairs(b) do if a[k] == nil then return false end end
        return true
    end
    for i = 1, 2000 do
        local v = value(0)
        local packed = cmsgpack.pack(v)
        if not same(v, (cmsgpack.unpack(packed))) then return 'cmsgpack ' .. i end
        if not same({v}, cjson.decode(cjson.encode({v}))) then return 'cjson ' .. i end
        local s = type(v) == 'string' and v or tostring(v)
        local n = type(v) == 'number' and v or 1.5
        local bytes = struct.pack('<dc0>I4s', n, s, #s, (s:gsub('%z', '')))
        local n2 = struct.unpack('<d', bytes)
        local len = struct.unpack('>I4', bytes, 9 + #s)
        if n2 ~= n or len ~= #s or bytes:sub(9, 8 + #s) ~= s then return 'struct ' .. i end
        -- Bytes that were changed are an error or another value.
        local at = math.random(#packed)
        local other = packed:sub(1, at - 1) .. string.char(math.random(0, 255)) .. packed:sub(at + 1)
        pcall(cmsgpack.unpack, other) pcall(cjson.decode, other)
    end
    return 'same'";

#[test]
fn random_values_come_back() {
    let (mut state, mut host) = (state(), Fake::default());
    let reply = eval(&mut state, &mut host, ROUNDS);
    assert_eq!(String::from_utf8_lossy(&reply), "$4\r\nsame\r\n");
}

/// Arithmetic reads texts by C.
#[test]
fn texts_become_the_numbers_that_c_reads() {
    let (mut state, mut host) = (state(), Fake::default());
    let mut random = fastrand::Rng::with_seed(29);
    for _ in 0..20_000 {
        let mut text = String::new();
        if random.u8(..4) == 0 {
            text.push('-');
        }
        for _ in 0..random.usize(..24) {
            text.push(match random.u8(..40) {
                0..=3 => '.',
                4 => random.choice(['-', 'e', ' ', '0', 'x']).expect("a choice"),
                _ => char::from(random.u8(b'0'..=b'9')),
            });
        }
        let script = format!(
            "local is_number, by_c = pcall(function() return '{text}' + 0 end) \
             local own = tonumber('{text}') \
             if is_number then return own == by_c end return own == nil"
        );
        let reply = eval(&mut state, &mut host, script.as_bytes());
        assert_eq!(reply, b":1\r\n", "{text}");
    }
}
