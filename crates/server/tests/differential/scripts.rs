//! Scripts: other requests of the stream, called by EVAL and its relatives, with errors in the middle.

use std::fmt::Write as _;

use sha1_smol::Sha1;

use super::compare::{Rule, rule};
use super::request::{Request, request};
use super::stream::{Generator, Step, is_safe};

/// Scripts that EVALSHA may ask for.
const KEPT: usize = 40;
/// The longest word that becomes a text in a script.
const LITERAL_MAX: usize = 100;

/// A script that is being written, and the words of its request.
#[derive(Default)]
struct Draft {
    text: String,
    keys: Vec<Vec<u8>>,
    argv: Vec<Vec<u8>>,
}

/// Statements that go wrong, or have values that are no replies.
const TROUBLES: &[&str] = &[
    "error('own text')",
    "error({err = 'OWN code of a table'})",
    "error({err = 'no code'}, 0)",
    "local n = nil + 1",
    "local n = {} .. 'x'",
    "nosuch()",
    "local n = nosuch",
    "made = 1",
    "redis.call()",
    "redis.call('nosuch', 'x')",
    "redis.call('get')",
    "redis.call('get', {})",
    "redis.call('subscribe', 'x')",
    "redis.pcall('get')",
    "r[#r + 1] = redis.pcall('incr', 'x', 'y')",
    "r[#r + 1] = redis.error_reply('OWN text')",
    "r[#r + 1] = {err = 'OWN\\r\\ntext'}",
    "r[#r + 1] = redis.status_reply('FINE')",
    "do return redis.error_reply('ERR own text') end",
    "do return {err = 'text'} end",
    "assert(false, 'own text')",
    "local n = string.rep",
    "r[#r + 1] = tostring(1e15) .. tostring(2 ^ 53) .. tostring(0.1)",
    "r[#r + 1] = 3.99; r[#r + 1] = -3.99; r[#r + 1] = 1e20",
    "r[#r + 1] = false; r[#r + 1] = true; r[#r + 1] = {}",
    "r[#r + 1] = #KEYS + 10 * #ARGV",
    "r[#r + 1] = redis.sha1hex(KEYS[1] or '')",
];

impl Generator {
    /// A script of some requests of commands on data, or one that has run before.
    pub(crate) fn script_steps(&mut self) -> Vec<Step> {
        if !self.scripts.is_empty() && self.chance(30) {
            let known = self.rng.usize(0..self.scripts.len());
            let mut steps = self.scripts[known].clone();
            if let Some(Step::Send(sent)) = steps.first_mut() {
                let sha = Sha1::from(&sent.words[1]).digest().to_string();
                let suffix = sent.upper(0).split_off(4);
                sent.words[0] = [b"EVALSHA", &suffix[..]].concat();
                sent.words[1] = sha.into_bytes();
            }
            return steps;
        }
        let mut draft = Draft::default();
        if self.chance(8) {
            let flags = self.pick(&[
                "no-writes",
                "allow-oom",
                "allow-stale",
                "no-cluster",
                "no-writes,allow-oom",
                "no-writes,nosuch",
                "",
            ]);
            draft.text = format!("#!lua flags={flags}\n");
        }
        let has_maps = self.chance(15);
        if has_maps {
            draft.text += "redis.setresp(3)\n";
        }
        draft.text += "local r = {}\n";
        let mut follow_up = Vec::new();
        for number in 0..self.rng.usize(1..=4) {
            if self.chance(12) {
                draft.text += self.pick(TROUBLES);
                draft.text.push('\n');
            }
            let called = self.request_of_a_script();
            self.write_statement(&mut draft, &called, number);
            follow_up.extend(self.with_consequences(called).into_iter().skip(1));
        }
        let result = self.pick(&[
            "return r",
            "return r",
            "return r",
            "return r",
            "return {r, #r, 1.9, true, false, 'x', nil, 'never'}",
            "return #r",
            "return r[1]",
            "",
            "return cjson.encode(r)",
            "return cmsgpack.pack(r)",
        ]);
        // A table of a reply with holes has its pairs in an order of its own.
        draft.text += match has_maps && result.contains("pack") {
            true => "return r",
            false => result,
        };
        let eval = match self.chance(8) {
            true => "EVAL_RO",
            false => "EVAL",
        };
        let sent = request(eval)
            .word(draft.text)
            .word(draft.keys.len().to_string())
            .words(draft.keys)
            .words(draft.argv);
        let steps: Vec<Step> = std::iter::once(Step::Send(sent)).chain(follow_up).collect();
        if self.scripts.len() < KEPT {
            self.scripts.push(steps.clone());
        } else {
            let at = self.rng.usize(0..KEPT);
            self.scripts[at] = steps.clone();
        }
        steps
    }

    /// A request with a reply that both servers give alike.
    fn request_of_a_script(&mut self) -> Request {
        loop {
            let mut candidate = self.data_request();
            if self.chance(8) {
                self.spoil(&mut candidate);
            }
            let name = candidate.upper(0);
            // Some have differences that are listed, and those are found by the name of the request.
            let is_odd = matches!(
                &name[..],
                b"OBJECT" | b"SORT" | b"SORT_RO" | b"BITCOUNT" | b"ZRANK" | b"ZREVRANK" | b"DBSIZE"
            );
            if !is_odd && rule(&candidate) == Rule::Exact && is_safe(&candidate) {
                return candidate;
            }
        }
    }

    fn write_statement(&mut self, draft: &mut Draft, called: &Request, number: usize) {
        let mut operands = Vec::new();
        for (at, word) in called.words.iter().enumerate() {
            operands.push(self.operand(draft, at, word));
        }
        let operands = operands.join(", ");
        let name = self.pick(&["call", "call", "call", "pcall", "pcall"]);
        let call = format!("redis.{name}({operands})");
        let statement = match self.rng.u8(0..14) {
            0 => call,
            1..=7 => format!("r[#r + 1] = {call}"),
            8 | 9 => format!("local v{number} = {call}\nr[#r + 1] = v{number}"),
            10 => format!("for i = 1, 2 do\n  r[#r + 1] = {call}\nend"),
            11 => format!("r[#r + 1] = type({call})"),
            12 => format!("if {call} then r[#r + 1] = 'so' else r[#r + 1] = 'not so' end"),
            _ => format!(
                "local ok{number}, e{number} = pcall(redis.{name}, {operands})\n\
                 r[#r + 1] = ok{number}; r[#r + 1] = e{number}"
            ),
        };
        draft.text += &statement;
        draft.text.push('\n');
    }

    /// A word as a script has it.
    fn operand(&mut self, draft: &mut Draft, at: usize, word: &[u8]) -> String {
        let dice = self.rng.u8(0..100);
        let as_key = match at {
            0 => 2,
            1 => 75,
            _ => 20,
        };
        let is_long = word.len() > LITERAL_MAX;
        let place = |list: &mut Vec<Vec<u8>>| {
            let known = list.iter().position(|other| other == word);
            known.unwrap_or_else(|| {
                list.push(word.to_vec());
                list.len() - 1
            }) + 1
        };
        if dice < as_key {
            format!("KEYS[{}]", place(&mut draft.keys))
        } else if is_long || (at > 0 && dice < 80) {
            format!("ARGV[{}]", place(&mut draft.argv))
        } else {
            literal(word)
        }
    }
}

/// A word as a number, or a string, of Lua.
fn literal(word: &[u8]) -> String {
    let text = String::from_utf8_lossy(word);
    let is_number = |number: i64| number.to_string() == text && number.unsigned_abs() < 1 << 50;
    if text.parse().is_ok_and(is_number) {
        return text.into_owned();
    }
    let mut literal = String::from("'");
    for &byte in word {
        match byte.is_ascii_alphanumeric() {
            true => literal.push(byte.into()),
            // Writing to a string cannot fail.
            false => _ = write!(literal, "\\{byte:03}"),
        }
    }
    literal + "'"
}
