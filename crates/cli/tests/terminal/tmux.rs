//! A terminal that a test types into and reads from: tmux, with a server of its own for each.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, fresh_directory};

/// A terminal of 100 columns and 30 lines in which the client runs. Dropping it ends both.
pub(crate) struct Terminal {
    directory: PathBuf,
    /// Counts servers of tmux: one that ends may still hold its socket.
    number: Cell<u32>,
}

impl Terminal {
    /// Runs the client with these arguments, as a shell takes them apart, and an empty home.
    pub(crate) fn start(arguments: &str) -> Terminal {
        Terminal::start_in(fresh_directory("terminal"), "", arguments)
    }

    /// The same with a home that has something already, and with variables like `NO_COLOR=1`.
    pub(crate) fn start_in(directory: PathBuf, variables: &str, arguments: &str) -> Terminal {
        let terminal = Terminal {
            directory,
            number: Cell::new(0),
        };
        terminal.run(variables, arguments);
        terminal
    }

    /// Ends the client and starts it again in the same home.
    pub(crate) fn restart(&self, arguments: &str) {
        let _ = self.tmux(&["kill-server"]);
        self.number.set(self.number.get() + 1);
        self.run("", arguments);
    }

    fn run(&self, variables: &str, arguments: &str) {
        let client = env!("CARGO_BIN_EXE_ferrite-cli");
        let home = self.home().display();
        // The shell says how the client ended, and keeps the terminal open; Ctrl-C is the client's.
        let line = format!(
            "cd {home}; exec env -i PATH=\"$PATH\" TERM=\"$TERM\" HOME={home} LANG=C.UTF-8 PAGER=./pager \
             {variables} sh -c 'trap : INT; {client} {arguments}; echo ended with $?; exec sleep 1000'"
        );
        let output = self.tmux(&["new-session", "-d", "-x", "100", "-y", "30", &line]);
        assert!(
            output.status.success(),
            "tmux: {}; `make setup` installs it",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    pub(crate) fn home(&self) -> &Path {
        &self.directory
    }

    /// Types a text as it is.
    pub(crate) fn type_text(&self, text: &str) {
        let output = self.tmux(&["send-keys", "-l", "--", text]);
        assert!(output.status.success(), "{output:?}");
    }

    /// Presses keys by their names: `Enter`, `Tab`, `Up`, `C-c`.
    pub(crate) fn press(&self, keys: &[&str]) {
        let output = self.tmux(&[&["send-keys"], keys].concat());
        assert!(output.status.success(), "{output:?}");
    }

    /// Pastes a text, as a terminal does that says so.
    pub(crate) fn paste(&self, text: &str) {
        for arguments in [&["set-buffer", text][..], &["paste-buffer", "-p", "-r"]] {
            let output = self.tmux(arguments);
            assert!(output.status.success(), "{output:?}");
        }
    }

    /// Types a line and waits for what comes of it.
    pub(crate) fn enter(&self, line: &str, expected: &str) {
        self.type_text(line);
        self.press(&["Enter"]);
        self.wait_for(expected);
    }

    /// Waits until the screen has this text.
    pub(crate) fn wait_for(&self, expected: &str) -> String {
        self.wait_until(expected, |screen| screen.contains(expected))
    }

    /// Waits until the last line on the screen is this.
    pub(crate) fn wait_for_line(&self, expected: &str) {
        self.wait_until(expected, |screen| {
            screen.trim_end().lines().last() == Some(expected)
        });
    }

    fn wait_until(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(
                Instant::now() < end,
                "{what:?} does not come up on the screen:\n{screen}"
            );
            sleep(Duration::from_millis(30));
        }
    }

    /// What can be seen, without colors.
    pub(crate) fn screen(&self) -> String {
        let output = self.tmux(&["capture-pane", "-p"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What can be seen, with colors as escape sequences.
    pub(crate) fn colors(&self) -> String {
        let output = self.tmux(&["capture-pane", "-p", "-e"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits for a color.
    pub(crate) fn wait_for_color(&self, expected: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.colors();
            if screen.contains(expected) {
                return;
            }
            assert!(Instant::now() < end, "no {expected:?} in:\n{screen:?}");
            sleep(Duration::from_millis(30));
        }
    }

    /// Writes an executable script into the home.
    pub(crate) fn script(&self, name: &str, content: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.directory.join(name);
        fs::write(&path, format!("#!/bin/sh\n{content}\n")).expect("the directory is ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(self.directory.join(format!("tmux{}", self.number.get())))
            .args(["-f", "/dev/null"])
            .args(arguments)
            // Else it is the user's, and a user of a service has none.
            .env("SHELL", "/bin/sh")
            .env_remove("TMUX");
        command.output().unwrap_or_else(|error| {
            panic!("tmux cannot be started ({error}); `make setup` installs it")
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
        let _ = fs::remove_dir_all(&self.directory);
    }
}
