//! Whether a script can use no keys but those that its request names: a proof on the tokens of its text.
//!
//! At every place of a key of every command that the text calls stands `KEYS[..]`, or a name that is bound to
//! such values alone. Nothing else may be done with KEYS, or with the functions that call commands. Names
//! have no scope here: the proof fails for some scripts that use no other keys, and for all that may use one.

use std::collections::{HashMap, HashSet};

use super::places::{FindPlaces, KeyPlaces};
use super::tokens::{Token, tokens};

/// Bytes of the longest text that is looked at.
pub(super) const LONGEST: usize = 64 << 10;

/// Tokens that are looked at for the beginning of a statement.
const STATEMENT_MOST: usize = 256;

/// Names by which KEYS, or the functions that call commands, could be had in other ways.
const OTHER_WAYS: [&[u8]; 8] = [
    b"_G",
    b"load",
    b"loadstring",
    b"setmetatable",
    b"rawset",
    b"coroutine",
    b"getfenv",
    b"setfenv",
];

/// Members of the tables `redis` and `server` that use no data.
const HARMLESS: [&[u8]; 15] = [
    b"register_function",
    b"error_reply",
    b"status_reply",
    b"sha1hex",
    b"log",
    b"LOG_DEBUG",
    b"LOG_VERBOSE",
    b"LOG_NOTICE",
    b"LOG_WARNING",
    b"setresp",
    b"replicate_commands",
    b"set_repl",
    b"REDIS_VERSION",
    b"REDIS_VERSION_NUM",
    b"acl_check_cmd",
];

/// Properties of a script that are proven.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Proven {
    /// It uses no keys but those that its request names.
    pub(crate) names_its_keys: bool,
    /// The same, and it does nothing with ARGV but to read its items.
    pub(crate) only_reads_argv: bool,
}

/// Properties of a script.
pub(crate) fn proven(text: &[u8], places: FindPlaces<'_>) -> Proven {
    if text.len() > LONGEST {
        return Proven::default();
    }
    proven_of(&tokens(text), places)
}

/// The same by its tokens.
pub(super) fn proven_of(tokens: &[Token<'_>], places: FindPlaces<'_>) -> Proven {
    let Some(proof) = Proof::of(tokens) else {
        return Proven::default();
    };
    let all = || 0..tokens.len();
    let names_its_keys = all().all(|at| proof.allows(at, places));
    let only_reads_argv = names_its_keys && all().all(|at| proof.allows_argument(at));
    Proven {
        names_its_keys,
        only_reads_argv,
    }
}

/// See the module.
struct Proof<'t> {
    tokens: &'t [Token<'t>],
    /// Of each bracket the place of its counterpart.
    pairs: HashMap<usize, usize>,
    /// Brackets around each token.
    depths: Vec<u32>,
    /// Names of keys, and of functions that call commands.
    keys: HashSet<&'t [u8]>,
    callers: HashSet<&'t [u8]>,
    /// Places where the latter are bound, and those of `redis` there.
    bound: HashSet<usize>,
}

fn is_keyword(name: &[u8]) -> bool {
    const KEYWORDS: [&[u8]; 21] = [
        b"and",
        b"break",
        b"do",
        b"else",
        b"elseif",
        b"end",
        b"false",
        b"for",
        b"function",
        b"if",
        b"in",
        b"local",
        b"nil",
        b"not",
        b"or",
        b"repeat",
        b"return",
        b"then",
        b"true",
        b"until",
        b"while",
    ];
    KEYWORDS.contains(&name)
}

fn is_table(name: &[u8]) -> bool {
    matches!(name, b"redis" | b"server")
}

fn is_caller(name: &[u8]) -> bool {
    matches!(name, b"call" | b"pcall")
}

impl<'t> Proof<'t> {
    /// Finds the names; `None` if brackets do not match.
    fn of(tokens: &'t [Token<'t>]) -> Option<Proof<'t>> {
        let (mut pairs, mut depths, mut open) = (HashMap::new(), Vec::new(), Vec::new());
        for (at, token) in tokens.iter().enumerate() {
            if let Token::Sign(b")" | b"]" | b"}") = token {
                let from = open.pop()?;
                pairs.insert(from, at);
            }
            depths.push(open.len() as u32);
            if let Token::Sign(b"(" | b"[" | b"{") = token {
                open.push(at);
            }
        }
        let mut proof = Proof {
            tokens,
            pairs,
            depths,
            keys: HashSet::new(),
            callers: HashSet::new(),
            bound: HashSet::new(),
        };
        if !open.is_empty() {
            return None;
        }
        for at in 0..tokens.len() {
            if proof.name(at) == Some(b"local") {
                proof.bind(at + 1);
            }
        }
        proof.keep_names_of_keys();
        Some(proof)
    }

    fn name(&self, at: usize) -> Option<&'t [u8]> {
        match self.tokens.get(at) {
            Some(Token::Name(name)) => Some(name),
            _ => None,
        }
    }

    fn is_sign(&self, at: usize, sign: &[u8]) -> bool {
        self.tokens.get(at) == Some(&Token::Sign(sign))
    }

    /// Whether an expression may end with this token.
    fn ends_operand(&self, at: usize) -> bool {
        match self.tokens[at] {
            Token::Number | Token::Text(_) => true,
            Token::Sign(sign) => matches!(sign, b")" | b"]" | b"}" | b"..."),
            Token::Name(name) => {
                !is_keyword(name) || matches!(name, b"end" | b"true" | b"false" | b"nil")
            }
        }
    }

    /// Whether the name at this place is that of a field or of a method.
    fn is_field(&self, at: usize) -> bool {
        at > 0 && (self.is_sign(at - 1, b".") || self.is_sign(at - 1, b":"))
    }

    /// The end of an expression of a list, and whether the list ends there.
    fn end_of_expression(&self, from: usize) -> (usize, bool) {
        let mut at = from;
        while at < self.tokens.len() {
            match self.tokens[at] {
                Token::Sign(b",") => return (at, false),
                Token::Sign(b";") => return (at, true),
                Token::Name(name)
                    if at > from
                        && self.ends_operand(at - 1)
                        && !matches!(name, b"and" | b"or") =>
                {
                    return (at, true);
                }
                Token::Sign(b")" | b"]" | b"}") => return (at, true),
                Token::Sign(b"(" | b"[" | b"{") => at = self.pairs[&at] + 1,
                _ => at += 1,
            }
        }
        (at, true)
    }

    /// Notes the names that `local` binds.
    fn bind(&mut self, from: usize) {
        let (mut names, mut at) = (vec![from], from + 1);
        while self.is_sign(at, b",") {
            names.push(at + 1);
            at += 2;
        }
        if !self.is_sign(at, b"=") {
            return;
        }
        let mut first = at + 1;
        for place in names {
            let (end, is_last) = self.end_of_expression(first);
            let Some(name) = self.name(place) else { return };
            if self.is_element_of_keys(first, end) {
                self.keys.insert(name);
                self.bound.insert(place);
            } else if let [Token::Name(table), Token::Sign(b"."), Token::Name(caller)] =
                self.tokens[first..end]
                && is_table(table)
                && is_caller(caller)
            {
                self.callers.insert(name);
                self.bound.extend([place, first]);
            }
            if is_last {
                return;
            }
            first = end + 1;
        }
    }

    /// Whether the tokens are `KEYS[..]`.
    fn is_element_of_keys(&self, from: usize, end: usize) -> bool {
        self.name(from) == Some(b"KEYS")
            && self.is_sign(from + 1, b"[")
            && self.pairs[&(from + 1)] + 1 == end
    }

    /// Leaves only names that are bound to keys wherever they are bound.
    fn keep_names_of_keys(&mut self) {
        for at in 0..self.tokens.len() {
            let Some(name) = self.name(at) else { continue };
            let is_bound = self.bound.contains(&at);
            let is_right = match is_bound {
                true => !self.callers.contains(name),
                false => self.is_field(at) || self.is_value(at),
            };
            if self.keys.contains(name) && !is_right {
                self.keys.remove(name);
            }
        }
    }

    /// Whether the name at this place is part of an expression, and nothing is assigned to it.
    fn is_value(&self, at: usize) -> bool {
        if self.is_sign(at + 1, b"=") {
            return false;
        }
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        match self.tokens[before] {
            Token::Sign(b",") => self.depths[at] > 0 || self.is_behind_an_assignment(before),
            Token::Sign(sign) => !matches!(sign, b")" | b"]" | b"}" | b";" | b"." | b":" | b"..."),
            Token::Name(name) => matches!(
                name,
                b"and"
                    | b"or"
                    | b"not"
                    | b"return"
                    | b"if"
                    | b"elseif"
                    | b"while"
                    | b"until"
                    | b"in"
            ),
            Token::Number | Token::Text(_) => false,
        }
    }

    /// Whether a comma is in a list of expressions, and not in one of variables.
    fn is_behind_an_assignment(&self, comma: usize) -> bool {
        for at in (0..comma).rev().take(STATEMENT_MOST) {
            if self.depths[at] > 0 {
                continue;
            }
            match self.tokens[at] {
                Token::Sign(b"=") | Token::Name(b"return" | b"in") => return true,
                Token::Sign(b";") => return false,
                Token::Name(name) if is_keyword(name) => {
                    if !matches!(name, b"and" | b"or" | b"not" | b"true" | b"false" | b"nil") {
                        return false;
                    }
                }
                Token::Name(_) | Token::Text(_) | Token::Number => {
                    if at > 0 && self.ends_operand(at - 1) {
                        return false;
                    }
                }
                // After a value that is no function a bracket begins a statement.
                Token::Sign(b"(") if !self.may_be_called(at) => return false,
                Token::Sign(_) => {}
            }
        }
        false
    }

    /// Whether a bracket at this place may be that of a call.
    fn may_be_called(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        match self.tokens[before] {
            Token::Name(name) => !is_keyword(name),
            Token::Sign(sign) => !matches!(sign, b"}" | b"..."),
            Token::Number | Token::Text(_) => false,
        }
    }

    /// Whether the token at this place may be there.
    fn allows(&self, at: usize, places: FindPlaces<'_>) -> bool {
        let Some(name) = self.name(at).filter(|_| !self.is_field(at)) else {
            return true;
        };
        if OTHER_WAYS.contains(&name) {
            return false;
        }
        if name == b"unpack" {
            return self.is_sign(at + 1, b"(");
        }
        if name == b"KEYS" {
            return self.only_reads(at);
        }
        if is_table(name) {
            let Some(member) = self.name(at + 2).filter(|_| self.is_sign(at + 1, b".")) else {
                return false;
            };
            return match is_caller(member) {
                true => self.bound.contains(&at) || self.allows_call(at + 3, places),
                false => HARMLESS.contains(&member),
            };
        }
        !self.callers.contains(name) || self.bound.contains(&at) || self.allows_call(at + 1, places)
    }

    /// Whether the token at this place is not ARGV, or ARGV stays as it is there.
    fn allows_argument(&self, at: usize) -> bool {
        self.name(at) != Some(b"ARGV") || self.is_field(at) || self.only_reads(at)
    }

    /// Whether the list at this place, KEYS or ARGV, stays as it is: `KEYS[..]` as a value, `#KEYS`,
    /// `unpack(KEYS)`.
    fn only_reads(&self, at: usize) -> bool {
        if self.is_sign(at + 1, b"[") {
            let end = self.pairs[&(at + 1)];
            return !self.is_sign(end + 1, b"=") && self.is_value(at);
        }
        let is_count = at > 0 && self.is_sign(at - 1, b"#");
        is_count || (at > 1 && !self.is_field(at - 2) && self.is_unpacked(at - 2, at + 2))
    }

    /// Whether the tokens are `unpack(KEYS)`.
    fn is_all_keys(&self, from: usize, end: usize) -> bool {
        self.is_unpacked(from, end) && self.name(from + 2) == Some(b"KEYS")
    }

    /// Whether the tokens are `unpack(NAME)`.
    fn is_unpacked(&self, from: usize, end: usize) -> bool {
        matches!(
            self.tokens.get(from..end),
            Some([
                Token::Name(b"unpack"),
                Token::Sign(b"("),
                Token::Name(_),
                Token::Sign(b")"),
            ])
        )
    }

    /// Whether the arguments of a call, from its bracket on, have keys of the request where keys are.
    fn allows_call(&self, bracket: usize, places: FindPlaces<'_>) -> bool {
        if !self.is_sign(bracket, b"(") {
            return false;
        }
        let close = self.pairs[&bracket];
        let (mut args, mut from) = (Vec::new(), bracket + 1);
        while from < close {
            let mut end = from;
            while end < close && !self.is_sign(end, b",") {
                end = self.pairs.get(&end).unwrap_or(&end) + 1;
            }
            args.push((from, end));
            from = end + 1;
        }
        let literal = |arg: Option<&(usize, usize)>| match arg {
            Some(&(from, end)) if end == from + 1 => match self.tokens[from] {
                Token::Text(text) => text,
                _ => None,
            },
            _ => None,
        };
        let Some(name) = literal(args.first()) else {
            return false;
        };
        let places = places(name, literal(args.get(1)));
        places.is_some_and(|places| self.have_keys(&args, places))
    }

    /// Whether arguments have keys of the request at these places.
    fn have_keys(&self, args: &[(usize, usize)], places: KeyPlaces) -> bool {
        let KeyPlaces { first, last, step } = places;
        if first == 0 {
            return true;
        }
        let is_key = |&(from, end): &(usize, usize)| {
            let is_name =
                end == from + 1 && self.name(from).is_some_and(|it| self.keys.contains(it));
            is_name || self.is_element_of_keys(from, end)
        };
        let (last_arg, others) = args.split_last().expect("the name of the command is there");
        if (last, step) == (-1, 1) && self.is_all_keys(last_arg.0, last_arg.1) {
            return others.len() >= first && others[first..].iter().all(is_key);
        }
        // A call at the end may give any number of arguments.
        let is_open = matches!(self.tokens[last_arg.1 - 1], Token::Sign(b")" | b"..."));
        let last = match usize::try_from(last) {
            Ok(last) => last,
            Err(_) if is_open => return false,
            Err(_) => args.len().saturating_sub(last.unsigned_abs() as usize),
        };
        (first..=last).step_by(step).all(|at| match args.get(at) {
            Some(arg) => is_key(arg),
            None => !is_open,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(name: &[u8], first: Option<&[u8]>) -> Option<KeyPlaces> {
        let (first, last, step) = match name {
            b"get" | b"set" | b"incr" | b"sadd" | b"hset" => (1, 1, 1),
            b"del" | b"mget" => (1, -1, 1),
            b"mset" => (1, -1, 2),
            b"smove" => (1, 2, 1),
            b"time" => (0, 0, 0),
            b"object" => first.filter(|sub| *sub == b"encoding").map(|_| (2, 2, 1))?,
            _ => return None,
        };
        Some(KeyPlaces { first, last, step })
    }

    fn names_its_keys(text: &[u8], places: FindPlaces<'_>) -> bool {
        proven(text, places).names_its_keys
    }

    fn check(wanted: bool, texts: &[&str]) {
        for text in texts {
            assert_eq!(names_its_keys(text.as_bytes(), &places), wanted, "{text}");
        }
    }

    #[test]
    fn scripts_that_name_their_keys() {
        check(
            true,
            &[
                "return 1",
                "return redis.call('get', KEYS[1])",
                "if redis.call(\"get\",KEYS[1])==ARGV[1] then return redis.call(\"del\",KEYS[1]) end",
                "local key = KEYS[1] local n = tonumber(ARGV[1]) return redis.call('incr', key) + n",
                "local a, n, b = KEYS[1], tonumber(ARGV[1]), KEYS[#KEYS]\nredis.call('smove', a, b, n)",
                "local call = redis.call; return {call('get', KEYS[1]), call('time')}",
                "return server.pcall('del', unpack(KEYS))",
                "return redis.call('del', KEYS[1], unpack(KEYS))",
                "redis.call('sadd', KEYS[1], unpack(ARGV))",
                "redis.call('mset', KEYS[1], ARGV[1], KEYS[2], ARGV[2])",
                "return redis.call('object', 'encoding', KEYS[1])",
                "redis.log(redis.LOG_NOTICE, KEYS[1]) return redis.error_reply('no ' .. KEYS[2])",
                "local t = {} t.KEYS = 1 t[KEYS[1]] = redis.sha1hex(KEYS[1] .. 'x') return #KEYS[1]",
                "-- redis.call('get', 'x')\nreturn 'redis.call(x)'",
                "return redis.call('get', KEYS[tonumber(redis.call('get', KEYS[1]))])",
            ],
        );
    }

    #[test]
    fn scripts_that_only_read_their_arguments() {
        for (wanted, text) in [
            (true, "local a = tonumber(ARGV[1]) return ARGV[#ARGV]"),
            (true, "redis.call('sadd', KEYS[1], unpack(ARGV))"),
            (true, "local t = {} t.ARGV = 1 return t.ARGV"),
            (false, "ARGV[1] = 'x' return ARGV[1]"),
            (false, "local a a, ARGV[1] = 1, 2 return a"),
            (false, "local a = ARGV a[1] = 1 return a"),
            (false, "table.insert(ARGV, 'x')"),
            (false, "local t = {unpack = next} t:unpack(ARGV)"),
            // It could have ARGV in other ways.
            (false, "return _G.ARGV"),
        ] {
            let proven = proven(text.as_bytes(), &places);
            assert_eq!(proven.only_reads_argv, wanted, "{text}");
        }
    }

    #[test]
    fn scripts_that_may_use_other_keys() {
        check(
            false,
            &[
                "return redis.call('get', 'x')",
                "return redis.call('get', ARGV[1])",
                "return redis.call('get', KEYS[1] .. ':x')",
                "local key = KEYS[1] .. ':x' return redis.call('get', key)",
                "local key = KEYS[1] or 'x' return redis.call('get', key)",
                "local key = KEYS[1] key = 'x' return redis.call('get', key)",
                "local key = KEYS[1] local a a, key = 1, 'x' return redis.call('get', key)",
                "local key = KEYS[1] local a key, a = 'x', 1 return redis.call('get', key)",
                "local key = KEYS[1] do local key return redis.call('get', key) end",
                "local key = KEYS[1] do local a, key = 1, 'x' return redis.call('get', key) end",
                "local key, other = KEYS[1] return redis.call('get', other)",
                "KEYS[1] = 'x' return redis.call('get', KEYS[1])",
                "local a a, KEYS[1] = 1, 'x' return redis.call('get', KEYS[1])",
                "local a = 1 KEYS[1], a = 'x', 1 return redis.call('get', KEYS[1])",
                "local a local b a = 1 b, KEYS[1], a = 1, 'x', 1 return redis.call('get', KEYS[1])",
                "local a, b = 1 (t).x, KEYS[1], b = 1, 'x', 2 return redis.call('get', KEYS[1])",
                "local a, b = 'y' (t).x, KEYS[1], b = 1, 'x', 2 return redis.call('get', KEYS[1])",
                "local a, b = {} (t).x, KEYS[1], b = 1, 'x', 2 return redis.call('get', KEYS[1])",
                "local a, b = nil (t).x, KEYS[1], b = 1, 'x', 2 return redis.call('get', KEYS[1])",
                "local k, a = KEYS[1] a = 1 (t).x, k, a = 1, 'x', 2 return redis.call('get', k)",
                "local t = {unpack = table.insert} t:unpack(KEYS) return redis.call('get', KEYS[1])",
                "local k = KEYS k[1] = 'x' return redis.call('get', KEYS[1])",
                "table.insert(KEYS, 1, 'x') return redis.call('get', KEYS[1])",
                "local KEYS = {'x'} return redis.call('get', KEYS[1])",
                "local redis = redis return redis.call('get', KEYS[1])",
                "local name = 'get' return redis.call(name, KEYS[1])",
                "return redis.call('g\\101t', KEYS[1])",
                "return redis.call('get' .. '', KEYS[1])",
                "return redis['call']('get', KEYS[1])",
                "return pcall(redis.call, 'get', 'x')",
                "local call = redis.call return pcall(call, 'get', 'x')",
                "local t = {redis.call} return t[1]('get', 'x')",
                "local a, call = 1, redis return call.call('get', 'x')",
                "return redis.call'time'",
                "return redis.call('keys', '*')",
                "return redis.call('get', unpack(KEYS))",
                "return redis.call('mset', KEYS[1], unpack(ARGV))",
                "return redis.call('mget', KEYS[1], unpack(ARGV))",
                "return redis.call('del', (unpack(ARGV)))",
                "return redis.call('object', ARGV[1], KEYS[1])",
                "local unpack = table.concat return redis.call('del', unpack(KEYS))",
                "return load('return redis.call(\"get\", \"x\")')()",
                "return _G.redis.call('get', 'x')",
                "return getfenv().redis.call('get', 'x')",
            ],
        );
        assert!(names_its_keys(b"return 1", &places));
        let long = format!(
            "return redis.call('get', KEYS[1]) --{}",
            "x".repeat(LONGEST)
        );
        check(false, &[&long]);
    }

    #[test]
    fn any_tokens_get_an_answer() {
        const WORDS: &str = "KEYS [ ] ( ) { } 1 'get' , = == ; . : .. ... # redis call key local unpack \
                             and or not return if then else end nil -- \n";
        let words: Vec<&str> = WORDS.split(' ').filter(|word| !word.is_empty()).collect();
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..20_000 {
            let text: Vec<&str> = (0..random.usize(1..30))
                .map(|_| words[random.usize(..words.len())])
                .collect();
            names_its_keys(text.join(" ").as_bytes(), &places);
        }
    }
}
