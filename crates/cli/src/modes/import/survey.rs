//! The first reading of the file of an import: what it holds, and whether it is whole.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use indicatif::ProgressBar;
use rdb::{
    Collection, Element, Error, GroupsPlace, Item, Problem, StreamGroups, Typed, TypedReader,
    Unsupported,
};

use crate::failure::{Failure, Result};
use crate::format::quoted;
use crate::modes::file::{bar, wrong};

/// What a file holds.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) keys: u64,
    /// Those in database 0.
    pub(super) keys_in_first: u64,
    pub(super) unsupported: u64,
    /// What the first of these is, in words.
    pub(super) first_unsupported: Option<String>,
    /// Where the groups of each stream are, in the order of the streams.
    pub(super) groups: VecDeque<GroupsPlace>,
}

/// Reads the whole file.
pub(super) fn survey(path: &Path, wanted: Option<u64>) -> Result<Survey> {
    let mut survey = Survey::default();
    let (mut reader, bar) = open(path, "checking")?;
    let (mut database, mut groups) = (0, StreamGroups::default());
    while let Some(item) = reader.next().map_err(|error| unreadable(path, &error))? {
        let is_wanted = wanted.is_none_or(|wanted| wanted == database);
        match item {
            Typed::Item(Item::Database(number)) => database = number,
            Typed::Item(Item::Entry(_)) | Typed::Begin { .. } => {
                survey.keys += u64::from(is_wanted);
                survey.keys_in_first += u64::from(is_wanted && database == 0);
            }
            Typed::Item(Item::Unsupported(Unsupported::Value { .. })) if !is_wanted => {}
            Typed::Item(Item::Unsupported(what)) => {
                survey.unsupported += 1;
                let first = &mut survey.first_unsupported;
                first.get_or_insert_with(|| describe(&what, database));
            }
            Typed::Element(Element::Stream(part)) => {
                let taken = groups.take(&part);
                taken.map_err(|problem| flawed(path, &reader, problem))?;
                survey.groups.extend(reader.groups_place());
            }
            Typed::End => {
                let ended = std::mem::take(&mut groups).end();
                ended.map_err(|problem| flawed(path, &reader, problem))?;
            }
            Typed::Element(_) | Typed::Item(_) => {}
        }
        bar.set_position(reader.offset());
    }
    bar.finish_and_clear();
    Ok(survey)
}

fn flawed(path: &Path, reader: &TypedReader<File>, problem: Problem) -> Failure {
    let offset = reader.offset();
    let error = Error {
        offset,
        key: None,
        problem,
    };
    unreadable(path, &error)
}

fn describe(what: &Unsupported<'_>, database: u64) -> String {
    match what {
        Unsupported::Value { key, kind } => format!(
            "key {} in database {database} is a {kind}, and only strings, hashes, sets, sorted sets, \
             lists and streams are supported",
            quoted(key)
        ),
        Unsupported::Module(name) => {
            format!("it holds data of the module '{name}', and modules are not supported")
        }
    }
}

pub(super) fn open(path: &Path, what: &'static str) -> Result<(TypedReader<File>, ProgressBar)> {
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (facts, file) = opened.map_err(|error| wrong(path, &error))?;
    if !facts.is_file() {
        return Err(Failure::Other(format!(
            "{}: this is no file, which has to be read twice",
            path.display()
        )));
    }
    let mut reader = TypedReader::new(file, true).map_err(|error| unreadable(path, &error))?;
    reader.only(&[
        Collection::Hash,
        Collection::Set,
        Collection::SortedSet,
        Collection::List,
        Collection::Stream,
    ]);
    reader.pass_unsupported();
    let bar = bar(
        facts.len(),
        "{msg} {bytes}/{total_bytes} [{wide_bar}] {binary_bytes_per_sec}, {eta} left",
    );
    bar.set_message(what);
    Ok((reader, bar))
}

pub(super) fn unreadable(path: &Path, error: &rdb::Error) -> Failure {
    Failure::Other(format!("{}: {error}", path.display()))
}
