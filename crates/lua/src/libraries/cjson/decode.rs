//! `cjson.decode`.

use crate::machine::Machine;
use crate::raise::{Raise, Returned};
use crate::stack::Lua;
use crate::stop;

use super::text::{Token, Tokens};

/// Values in each other at most, above all that options allow: the stack of the thread is not endless.
const NESTED_MAX: i32 = 2000;

struct Decoder<'l> {
    lua: Lua<'l>,
    machine: &'l Machine,
    tokens: Tokens<'l>,
    /// Where the last string begins in the scratch.
    string_from: usize,
    depth: i32,
    depth_max: i32,
}

pub(super) fn decode(lua: Lua<'_>) -> Returned {
    if lua.top() != 1 {
        return Err(Raise::Argument(1, c"expected 1 argument"));
    }
    let text = lua.expect_bytes(1);
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(Raise::Text(
            c"JSON parser does not support UTF-16 or UTF-32",
        ));
    }
    let machine = lua.machine();
    let from = machine.scratch_len();
    let options = machine.json.get();
    let mut decoder = Decoder {
        lua,
        machine,
        tokens: Tokens::new(text, options.decode_invalid),
        string_from: from,
        depth: 0,
        depth_max: options.decode_depth.min(NESTED_MAX),
    };
    let token = decoder.next()?;
    decoder.push(token)?;
    match decoder.next()? {
        Token::End => Ok(1),
        token => Err(decoder.unexpected("the end", token)),
    }
}

impl Decoder<'_> {
    fn next(&mut self) -> Result<Token, Raise> {
        stop::step(self.lua)?;
        let machine = self.machine;
        let from = self.string_from;
        machine.truncate_scratch(from);
        let token = self.tokens.next(&mut |bytes| machine.gather(bytes));
        token.ok_or(Raise::Memory)
    }

    /// Pushes the string that was the last token.
    fn push_string(&self) {
        self.lua.push(self.machine.gathered(self.string_from));
        self.machine.truncate_scratch(self.string_from);
    }

    fn unexpected(&self, expected: &str, token: Token) -> Raise {
        let lua = self.lua;
        lua.push_place(1);
        lua.push(b"Expected ");
        lua.push(expected.as_bytes());
        lua.push(b" but found ");
        lua.push(token.name().as_bytes());
        lua.push(b" at character ");
        lua.push_number((self.tokens.index + 1) as f64);
        lua.concat(7);
        Raise::Top
    }

    fn push(&mut self, token: Token) -> Result<(), Raise> {
        match token {
            Token::String => self.push_string(),
            Token::Number(number) => self.lua.push_number(number),
            Token::Boolean(value) => self.lua.push_boolean(value),
            Token::Null => self.lua.push_light(std::ptr::null_mut()),
            Token::ObjectBegin => self.push_object()?,
            Token::ArrayBegin => self.push_array()?,
            Token::ObjectEnd
            | Token::ArrayEnd
            | Token::Colon
            | Token::Comma
            | Token::End
            | Token::Error(_) => return Err(self.unexpected("value", token)),
        }
        Ok(())
    }

    fn descend(&mut self) -> Result<(), Raise> {
        self.depth += 1;
        let lua = self.lua;
        if self.depth <= self.depth_max && lua.has_room(12) {
            lua.new_table(0, 0);
            return Ok(());
        }
        // Room for the message, where the stack is at its limit.
        lua.set_top(1);
        lua.push_place(1);
        lua.push(b"Found too many nested data structures (");
        lua.push_number(self.depth.into());
        lua.push(b") at character ");
        lua.push_number(self.tokens.at as f64);
        lua.concat(5);
        Err(Raise::Top)
    }

    fn push_object(&mut self) -> Result<(), Raise> {
        self.descend()?;
        let mut token = self.next()?;
        if token == Token::ObjectEnd {
            self.depth -= 1;
            return Ok(());
        }
        loop {
            if token != Token::String {
                return Err(self.unexpected("object key string", token));
            }
            self.push_string();
            token = self.next()?;
            if token != Token::Colon {
                return Err(self.unexpected("colon", token));
            }
            token = self.next()?;
            self.push(token)?;
            self.lua.raw_set(-3);
            token = self.next()?;
            match token {
                Token::ObjectEnd => break,
                Token::Comma => token = self.next()?,
                _ => return Err(self.unexpected("comma or object end", token)),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn push_array(&mut self) -> Result<(), Raise> {
        self.descend()?;
        let mut token = self.next()?;
        if token == Token::ArrayEnd {
            self.depth -= 1;
            return Ok(());
        }
        let mut at = 0;
        loop {
            self.push(token)?;
            at += 1;
            self.lua.raw_set_at(-2, at);
            token = self.next()?;
            match token {
                Token::ArrayEnd => break,
                Token::Comma => token = self.next()?,
                _ => return Err(self.unexpected("comma or array end", token)),
            }
        }
        self.depth -= 1;
        Ok(())
    }
}
