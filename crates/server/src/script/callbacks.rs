//! The functions of a library as one script, for [`super::proof`]: the first parameter of each stands for
//! KEYS, the second for ARGV.
//!
//! A library is proven as a whole: it has no functions but those that it registers, and they do not call each
//! other.

use super::places::FindPlaces;
use super::proof::{LONGEST, Proven, proven_of};
use super::tokens::{Token, tokens};

/// The place of a parameter that stands for KEYS, and of the one that stands for ARGV.
const STAND_FOR: [&[u8]; 2] = [b"KEYS", b"ARGV"];

/// Properties of all functions of a library.
pub(super) fn proven_library(text: &[u8], places: FindPlaces<'_>) -> Proven {
    if text.len() > LONGEST {
        return Proven::default();
    }
    match as_script(&tokens(text)) {
        Some(tokens) => proven_of(&tokens, places),
        None => Proven::default(),
    }
}

fn name<'t>(tokens: &[Token<'t>], at: usize) -> Option<&'t [u8]> {
    match tokens.get(at) {
        Some(Token::Name(name)) => Some(name),
        _ => None,
    }
}

/// The tokens with KEYS and ARGV in place of the parameters; `None` if there are other functions, or
/// parameters of other names.
fn as_script<'t>(tokens: &[Token<'t>]) -> Option<Vec<Token<'t>>> {
    let mut parameters: [Option<&[u8]>; 2] = [None; 2];
    let mut script = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        script.push(tokens[at]);
        at += 1;
        match tokens[at - 1] {
            Token::Name(b"function") => {}
            Token::Name(b"KEYS" | b"ARGV") | Token::Sign(b"...") => return None,
            _ => continue,
        }
        if !is_callback(tokens, at - 1) {
            return None;
        }
        if name(tokens, at).is_some() {
            script.push(tokens[at]);
            at += 1;
        }
        let end = at
            + tokens
                .get(at..)?
                .iter()
                .position(|it| *it == Token::Sign(b")"))?;
        let own = tokens.get(at + 1..end)?.iter().filter_map(|it| match it {
            Token::Name(name) => Some(*name),
            _ => None,
        });
        for (known, own) in parameters.iter_mut().zip(own) {
            if *known.get_or_insert(own) != own {
                return None;
            }
        }
        script.extend([Token::Sign(b"("), Token::Sign(b")")]);
        at = end + 1;
    }
    for token in &mut script {
        let Token::Name(name) = token else { continue };
        let found = parameters.iter().position(|known| *known == Some(*name));
        if let Some(parameter) = found {
            *name = STAND_FOR[parameter];
        }
    }
    Some(script)
}

/// Whether the function at this place is one that is registered, and nothing else.
fn is_callback(tokens: &[Token<'_>], at: usize) -> bool {
    if at > 0 && name(tokens, at - 1) == Some(b"local") {
        let Some(own) = name(tokens, at + 1) else {
            return false;
        };
        let mut uses = (0..tokens.len()).filter(|&use_at| use_at != at + 1);
        return uses
            .all(|use_at| name(tokens, use_at) != Some(own) || is_registered(tokens, use_at));
    }
    is_registered(tokens, at)
}

/// Whether a call of `redis.register_function` registers the value that begins here.
fn is_registered(tokens: &[Token<'_>], at: usize) -> bool {
    let before = |count: usize| at.checked_sub(count).map(|from| &tokens[from..at]);
    let is_of_server = |end: usize| {
        let table = end.checked_sub(3).and_then(|from| name(tokens, from));
        matches!(table, Some(b"redis" | b"server"))
            && tokens[end - 2] == Token::Sign(b".")
            && name(tokens, end - 1) == Some(b"register_function")
    };
    if let Some([Token::Sign(b"("), Token::Text(_), Token::Sign(b",")]) = before(3) {
        return is_of_server(at - 3);
    }
    let Some([Token::Name(key), Token::Sign(b"=")]) = before(2) else {
        return false;
    };
    let Some(open) = open_brace(&tokens[..at - 2]) else {
        return false;
    };
    let end = match open.checked_sub(1).map(|last| tokens[last]) {
        Some(Token::Sign(b"(")) => open - 1,
        _ => open,
    };
    key.eq_ignore_ascii_case(b"callback") && is_of_server(end)
}

/// The place of the brace that is open after these tokens.
fn open_brace(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().rev() {
        match token {
            Token::Sign(b"}" | b")" | b"]") => depth += 1,
            Token::Sign(b"{") if depth == 0 => return Some(at),
            Token::Sign(b"{" | b"(" | b"[") if depth == 0 => return None,
            Token::Sign(b"{" | b"(" | b"[") => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::KeyPlaces;

    fn places(name: &[u8], _: Option<&[u8]>) -> Option<KeyPlaces> {
        let (first, last, step) = match name {
            b"get" | b"set" => (1, 1, 1),
            b"del" => (1, -1, 1),
            _ => return None,
        };
        Some(KeyPlaces { first, last, step })
    }

    fn check(wanted: bool, texts: &[&str]) {
        for text in texts {
            let proven = proven_library(text.as_bytes(), &places);
            assert_eq!(proven.names_its_keys, wanted, "{text}");
        }
    }

    #[test]
    fn libraries_whose_functions_name_their_keys() {
        check(
            true,
            &[
                "redis.register_function('f', function(keys, args) return redis.call('get', keys[1]) end)",
                "redis.register_function('f', function() return 1 end)",
                "redis.register_function('f', function(keys) return redis.call('del', unpack(keys)) end)",
                "local function f(k, a) local key = k[1] return redis.call('set', key, a[1]) end\n\
                 redis.register_function('f', f)",
                "redis.register_function{function_name='f', callback=function(keys, args) \
                 return redis.call('get', keys[1]) end, flags={'no-writes'}}",
                "local function f(k) return redis.call('get', k[1]) end\n\
                 server.register_function({function_name='f', callback=f, flags={'no-writes'}})",
                "local n = 0 redis.register_function('f', function(keys, args) n = n + 1 return n end)\n\
                 redis.register_function('g', function(keys) return redis.call('get', keys[#keys]) end)",
            ],
        );
    }

    #[test]
    fn libraries_whose_functions_may_use_other_keys() {
        check(
            false,
            &[
                "redis.register_function('f', function(keys, args) return redis.call('get', args[1]) end)",
                "redis.register_function('f', function(keys, args) return redis.call('get', 'x') end)",
                "redis.register_function('f', function(keys) keys[1] = 'x' \
                 return redis.call('get', keys[1]) end)",
                "redis.register_function('f', function(keys) local keys = {'x'} \
                 return redis.call('get', keys[1]) end)",
                "redis.register_function('f', function(...) return redis.call('get', ...) end)",
                // The parameter of another function may be any.
                "local function h(keys) return redis.call('get', keys[1]) end\n\
                 redis.register_function('f', function(keys) return h({'x'}) end)",
                "local function f(keys) return redis.call('get', keys[1]) end\n\
                 redis.register_function('f', f)\n\
                 redis.register_function('g', function(keys) return f({'x'}) end)",
                "redis.register_function('f', function(keys, args) return redis.call('get', keys[1]) end)\n\
                 redis.register_function('g', function(args, keys) return redis.call('get', keys[1]) end)",
                "local keys = {'x'} redis.register_function('f', \
                 function() return redis.call('get', keys[1]) end)",
                "local saved redis.register_function('f', function(keys) saved = keys[1] end)\n\
                 redis.register_function('g', function(keys) return redis.call('get', saved) end)",
                "redis.register_function('f', function(keys) return redis.call('get', KEYS[1]) end)",
                "local r = {register_function = pcall} r.register_function('f', \
                 function(keys) return redis.call('get', keys[1]) end)",
                "local t = {callback=function(keys) return redis.call('get', keys[1]) end} t.callback({'x'})",
                "redis.register_function('f', (function(keys) return redis.call('get', keys[1]) end))",
            ],
        );
    }

    #[test]
    fn any_tokens_get_an_answer() {
        const WORDS: &str = "keys args [ ] ( ) { } 1 'get' , = . ... # redis register_function call \
                             function local callback unpack return end KEYS \n";
        let words: Vec<&str> = WORDS.split(' ').filter(|word| !word.is_empty()).collect();
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..20_000 {
            let text: Vec<&str> = (0..random.usize(1..30))
                .map(|_| words[random.usize(..words.len())])
                .collect();
            proven_library(text.join(" ").as_bytes(), &places);
        }
    }
}
