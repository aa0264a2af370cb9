//! Places of members: GEOADD GEOPOS GEODIST GEOHASH.

use resp::number::parse_f64;
use resp::reply::Writer;

use super::super::items::cells::cell;
use super::super::sorted_set::{ScoreOptions, add_scores};
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::place::Point;
use super::unit;
use crate::store::SortedSet;

/// The place that two arguments say, the longitude first.
///
/// # Errors
/// They are no numbers, or there is no such place.
pub(super) fn place(args: &Args<'_>, at: usize) -> Result<Point, Failure> {
    let number = |at| parse_f64(args.get(at)).ok_or(failure::NOT_A_FLOAT);
    let place = Point {
        longitude: number(at)?,
        latitude: number(at + 1)?,
    };
    match place.is_valid() {
        true => Ok(place),
        false => Err(Failure::new(format!(
            "ERR invalid longitude,latitude pair {:.6},{:.6}",
            place.longitude, place.latitude
        ))),
    }
}

/// Answers with a place: longitude and latitude.
pub(super) fn write_place(writer: &mut Writer<'_>, place: Point) {
    writer.array(2);
    for degrees in [place.longitude, place.latitude] {
        let text = format!("{degrees:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let text = if text == "-0" { "0" } else { text };
        writer.double_text(text.as_bytes());
    }
}

/// Answers with a distance.
pub(super) fn write_distance(writer: &mut Writer<'_>, distance: f64) {
    writer.bulk(format!("{distance:.4}").as_bytes());
}

/// `GEOADD key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]`
pub(super) fn geoadd(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (mut options, mut from) = (ScoreOptions::default(), 2);
    while from < args.len() {
        let option = match () {
            () if args.is(from, "NX") => &mut options.only_new,
            () if args.is(from, "XX") => &mut options.only_present,
            () if args.is(from, "CH") => &mut options.counts_changes,
            () => break,
        };
        *option = true;
        from += 1;
    }
    let left = args.len() - from;
    if left == 0 || !left.is_multiple_of(3) || options.only_new && options.only_present {
        return Err(failure::SYNTAX);
    }
    let triples = (from..args.len()).step_by(3);
    for at in triples.clone() {
        place(args, at)?;
        cell(args, at + 2)?;
    }
    add_scores(context, args.key(1), options, triples, |at| {
        Ok((place(args, at)?.score(), cell(args, at + 2)?))
    })
}

/// The place of the member that is an argument.
pub(super) fn place_of(set: &SortedSet<'_, '_>, args: &Args<'_>, at: usize) -> Option<Point> {
    let score = set.sorted().score(cell(args, at).ok()?)?;
    Some(Point::of_score(score))
}

/// `GEOPOS key [member ...]`
pub(super) fn geopos(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    each(context, args, |writer, place| match place {
        Some(place) => write_place(writer, place),
        None => writer.null_array(),
    })
}

/// `GEOHASH key [member ...]`
pub(super) fn geohash(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    each(context, args, |writer, place| match place {
        Some(place) => writer.bulk(&place.geohash()),
        None => writer.null(),
    })
}

fn each(
    context: &mut Context<'_>,
    args: &Args<'_>,
    write: impl Fn(&mut Writer<'_>, Option<Point>),
) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let set = shard.read_sorted_set(key)?;
    let reply = &mut context.reply;
    reply.array(args.len() - 2);
    for at in 2..args.len() {
        let place = set.as_ref().and_then(|set| place_of(set, args, at));
        write(reply, place);
    }
    Ok(Next::Done)
}

/// `GEODIST key member member [M | KM | FT | MI]`
pub(super) fn geodist(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let unit_m = match args.len() {
        4 => 1.0,
        5 => unit(args, 4)?,
        _ => return Err(failure::SYNTAX),
    };
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let set = shard.read_sorted_set(key)?;
    let distance = set.and_then(|set| {
        let (from, to) = (place_of(&set, args, 2)?, place_of(&set, args, 3)?);
        Some(from.distance_m(to) / unit_m)
    });
    match distance {
        Some(distance) => write_distance(&mut context.reply, distance),
        None => context.reply.null(),
    }
    Ok(Next::Done)
}
