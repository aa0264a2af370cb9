//! Requests of the commands about the connection and the server, and requests that are no command at all.

use super::request::{Request, request};
use super::stream::Generator;

impl Generator {
    /// A request of one of the connection commands.
    pub(crate) fn session_request(&mut self) -> Request {
        match self.rng.u8(0..40) {
            0..=2 => request("PING"),
            3 => request("PING").word(self.value()),
            4 | 5 => request("ECHO").word(self.value()),
            6..=13 => request("SELECT").word(self.database()),
            14..=16 => self.hello(),
            17..=20 => self.client(),
            21 => self.auth(),
            22..=26 => self.command(),
            27..=33 => self.unknown(),
            34..=36 => {
                let container = self.pick(&["OBJECT", "CLIENT", "COMMAND", "CONFIG"]);
                let subcommand = self.pick(&["NOSUCH", "", "FOO BAR", "GETT"]);
                let mut words = request(container).word(subcommand);
                for _ in 0..self.rng.u8(0..3) {
                    words = words.word(self.stray());
                }
                words
            }
            _ => request("CONFIG GET").word(self.pick(&["nosuchsetting", "databases"])),
        }
    }

    /// HELLO in every form. The stream returns to its own protocol right after it.
    fn hello(&mut self) -> Request {
        let mut hello = request("HELLO");
        if self.chance(10) {
            return hello;
        }
        hello = if self.chance(75) {
            hello.word(self.pick(&["2", "3"]))
        } else {
            let odd = self.pick(&["0", "1", "4", "abc", "", "03", "3.0"]);
            hello.word(odd)
        };
        for _ in 0..self.pick(&[0, 0, 1, 1, 2]) {
            hello = match self.rng.u8(0..4) {
                0 | 1 => {
                    let option = self.cased("SETNAME");
                    hello.word(option).word(self.client_name())
                }
                2 => {
                    let option = self.cased("AUTH");
                    let user = self.pick(&["default", "nobody"]);
                    hello.word(option).word(user).word("secret")
                }
                _ => hello.word(self.stray()),
            };
        }
        hello
    }

    fn client_name(&mut self) -> Vec<u8> {
        self.pick(&[
            "worker",
            "a",
            "",
            "with space",
            "new\nline",
            "caf\u{e9}",
            "x~!",
        ])
        .into()
    }

    fn client(&mut self) -> Request {
        match self.rng.u8(0..5) {
            0 | 1 => request("CLIENT")
                .word(self.cased("SETNAME"))
                .word(self.client_name()),
            2 | 3 => request("CLIENT").word(self.cased("GETNAME")),
            _ => request("CLIENT GETNAME").word(self.stray()),
        }
    }

    /// AUTH where no password is set.
    fn auth(&mut self) -> Request {
        match self.rng.u8(0..3) {
            0 => request("AUTH").word(self.value()),
            1 => request("AUTH default").word(self.value()),
            _ => request("AUTH nobody").word(self.value()),
        }
    }

    fn command(&mut self) -> Request {
        let about = self.data_request();
        match self.rng.u8(0..4) {
            0 => request("COMMAND INFO").words(about.words.into_iter().take(1)),
            _ => {
                let subcommand = self.cased("GETKEYS");
                let mut words = about.words;
                // Its options have nothing to say about keys, and long values nothing at all.
                words.iter_mut().for_each(|word| word.truncate(64));
                request("COMMAND").word(subcommand).words(words)
            }
        }
    }

    /// A command that does not exist, with arguments that the error message repeats.
    fn unknown(&mut self) -> Request {
        let mut name: Vec<u8> = self
            .pick(&[
                "nosuch",
                "GETT",
                "SE",
                "",
                "get ",
                "FOO\r\nBAR",
                "\u{0}",
                "g\u{e9}t",
                "SET2",
            ])
            .into();
        if self.chance(5) {
            name = name.repeat(40);
        }
        let mut unknown = request("x");
        unknown.words[0] = name;
        for _ in 0..self.pick(&[0, 1, 1, 2, 3, 20]) {
            unknown = unknown.word(self.stray());
        }
        unknown
    }
}
