//! What a program says of itself.

/// A program, as its users see it.
#[derive(Clone, Debug)]
pub struct Program {
    /// What is typed.
    pub name: &'static str,
    /// Of the program.
    pub version: &'static str,
    /// What it is, in a line without a full stop.
    pub summary: &'static str,
    /// What may stand behind the name, one line for each way.
    pub usage: &'static [&'static str],
    /// What it does, in paragraphs.
    pub description: &'static [&'static str],
    /// Flags, in the groups in which people find them.
    pub groups: Vec<Group>,
    /// What may be the first word that is no flag, for completion.
    pub words: Vec<String>,
    /// First words that have words of their own behind them, for completion.
    pub families: Vec<Family>,
    /// The last sections of the manual page.
    pub sections: Vec<Section>,
}

/// Flags that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    /// What they are about.
    pub title: String,
    /// One by one.
    pub flags: Vec<Flag>,
}

/// A flag.
#[derive(Clone, Debug)]
pub struct Flag {
    /// Its letter.
    pub short: Option<char>,
    /// Its names without dashes, its own first; none for a word that is no flag.
    pub names: Vec<String>,
    /// What follows it, as help says it; empty if nothing does.
    pub value: String,
    /// What it means, in sentences.
    pub summary: String,
}

/// A first word, and the words behind it.
#[derive(Clone, Debug)]
pub struct Family {
    /// What is typed first.
    pub name: &'static str,
    /// What may be typed next.
    pub members: Vec<Member>,
}

/// A word behind a first one.
#[derive(Clone, Debug)]
pub struct Member {
    /// What is typed.
    pub name: &'static str,
    /// The flags that follow it.
    pub flags: Vec<Flag>,
}

/// A section of the manual page.
#[derive(Clone, Debug)]
pub struct Section {
    /// In capitals.
    pub title: &'static str,
    /// Terms and what they mean; a text without a term is a paragraph, and a term without a text is what is
    /// typed.
    pub entries: Vec<(String, String)>,
}
