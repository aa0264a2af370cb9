//! Members around a place: GEOSEARCH GEOSEARCHSTORE GEORADIUS GEORADIUSBYMEMBER, and those without STORE.

use keyspace::Key;
use resp::number::{parse_f64, parse_i64};

use super::super::combining::{self, Combination};
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::members::{place, place_of};
use super::place::{Point, Shape};
use super::polygon::Polygon;
use super::running::{Criteria, Order, Running};
use super::unit;
use crate::observe::notify::Event;
use crate::request::Pieces;
use crate::shared::memory::Growing;
use crate::store::SortedSet;

const NO_MEMBER: Failure = Failure::of("ERR could not decode requested zset member");
const NO_RADIUS: Failure = Failure::of("ERR need numeric radius");
const NEGATIVE_RADIUS: Failure = Failure::of("ERR radius cannot be negative");
const NO_WIDTH: Failure = Failure::of("ERR need numeric width");
const NO_HEIGHT: Failure = Failure::of("ERR need numeric height");
const NEGATIVE_BOX: Failure = Failure::of("ERR height or width cannot be negative");
const NO_COUNT: Failure = Failure::of("ERR COUNT must be > 0");
const NO_CORNERS: Failure = Failure::of("ERR invalid number of vertices");
const TOO_FEW_CORNERS: Failure =
    Failure::of("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices");
const ANY_WITHOUT_COUNT: Failure = Failure::of("ERR the ANY argument requires COUNT argument");

/// Which command it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// GEORADIUS, which may store.
    Around,
    AroundReadOnly,
    /// GEORADIUSBYMEMBER, which may store.
    Member,
    MemberReadOnly,
    Search,
    SearchStore,
}

impl Form {
    fn is_search(self) -> bool {
        matches!(self, Form::Search | Form::SearchStore)
    }

    fn stores(self) -> bool {
        matches!(self, Form::Around | Form::Member)
    }
}

/// A request.
struct Search<'a> {
    /// The middle; of a missing key it may not be known.
    middle: Option<Point>,
    shape: Option<Shape>,
    criteria: Criteria,
    target: Option<Key<'a>>,
    /// What a search lacks: an error, if nothing else is wrong.
    lacks: Option<String>,
}

/// What of a search was given: its middle as a member or as a place, its size as a radius or as two sides.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Given {
    member: bool,
    place: bool,
    radius: bool,
    sides: bool,
}

/// Reads `BYPOLYGON corners longitude latitude [longitude latitude ...]` from the word on. Returns how many
/// arguments follow the word, too.
fn parse_polygon(args: &Args<'_>, at: usize) -> Result<(Polygon, usize), Failure> {
    let count = args.optional(at + 1).ok_or(failure::SYNTAX)?;
    let count = parse_i64(count).ok_or(NO_CORNERS)?;
    let left = (args.len() - at - 2) / 2;
    let count = usize::try_from(count).unwrap_or(0);
    if count < 3 || count > left {
        return Err(TOO_FEW_CORNERS);
    }
    let corners = (0..count).map(|number| place(args, at + 2 + 2 * number));
    let corners = corners.collect::<Result<Vec<Point>, Failure>>()?;
    Ok((Polygon::of(corners), 1 + 2 * count))
}

/// A number that is not negative.
fn length(args: &Args<'_>, at: usize, failure: Failure) -> Result<f64, Failure> {
    parse_f64(args.get(at)).ok_or(failure)
}

impl<'a> Search<'a> {
    /// `set`: the sorted set that is searched, if the key is there.
    fn parse(
        args: &Args<'a>,
        form: Form,
        set: Option<&SortedSet<'_, '_>>,
    ) -> Result<Search<'a>, Failure> {
        let mut search = Search {
            middle: None,
            shape: None,
            criteria: Criteria::default(),
            target: None,
            lacks: None,
        };
        let at = match form {
            Form::Around | Form::AroundReadOnly => {
                search.middle = Some(place(args, 2)?);
                search.take_radius(args, 4)?;
                6
            }
            Form::Member | Form::MemberReadOnly => {
                if let Some(set) = set {
                    search.middle = Some(place_of(set, args, 2).ok_or(NO_MEMBER)?);
                    search.take_radius(args, 3)?;
                }
                5
            }
            Form::Search => 2,
            Form::SearchStore => {
                search.target = Some(args.key(1));
                3
            }
        };
        search.take_options(args, form, at, set)?;
        Ok(search)
    }

    fn take_radius(&mut self, args: &Args<'_>, at: usize) -> Result<(), Failure> {
        let radius = length(args, at, NO_RADIUS)?;
        if radius < 0.0 {
            return Err(NEGATIVE_RADIUS);
        }
        self.criteria.unit_m = unit(args, at + 1)?;
        let radius_m = radius * self.criteria.unit_m;
        self.shape = Some(Shape::Circle { radius_m });
        Ok(())
    }

    fn take_box(&mut self, args: &Args<'_>, at: usize) -> Result<(), Failure> {
        let width = length(args, at, NO_WIDTH)?;
        let height = length(args, at + 1, NO_HEIGHT)?;
        if width < 0.0 || height < 0.0 {
            return Err(NEGATIVE_BOX);
        }
        self.criteria.unit_m = unit(args, at + 2)?;
        self.shape = Some(Shape::Box {
            width_m: width * self.criteria.unit_m,
            height_m: height * self.criteria.unit_m,
        });
        Ok(())
    }

    fn take_options(
        &mut self,
        args: &Args<'a>,
        form: Form,
        mut at: usize,
        set: Option<&SortedSet<'_, '_>>,
    ) -> Result<(), Failure> {
        let mut given = Given::default();
        while at < args.len() {
            let left = args.len() - at - 1;
            if args.is(at, "WITHDIST") {
                self.criteria.with_distance = true;
            } else if args.is(at, "WITHHASH") {
                self.criteria.with_hash = true;
            } else if args.is(at, "WITHCOORD") {
                self.criteria.with_place = true;
            } else if args.is(at, "ANY") {
                self.criteria.any = true;
            } else if args.is(at, "ASC") {
                self.criteria.order = Order::Ascending;
            } else if args.is(at, "DESC") {
                self.criteria.order = Order::Descending;
            } else if args.is(at, "COUNT") && left >= 1 {
                at += 1;
                let count = u64::try_from(args.integer(at)?).ok();
                self.criteria.count = Some(count.filter(|&count| count > 0).ok_or(NO_COUNT)?);
            } else if form.stores() && left >= 1 && args.is(at, "STORE") {
                at += 1;
                (self.target, self.criteria.stores_distance) = (Some(args.key(at)), false);
            } else if form.stores() && left >= 1 && args.is(at, "STOREDIST") {
                at += 1;
                (self.target, self.criteria.stores_distance) = (Some(args.key(at)), true);
            } else if form == Form::SearchStore && args.is(at, "STOREDIST") {
                self.criteria.stores_distance = true;
            } else if form.is_search()
                && let Some(more) = self.take_shape(args, at, set, &mut given)?
            {
                at += more;
            } else {
                return Err(failure::SYNTAX);
            }
            at += 1;
        }
        if form.is_search() && !self.criteria.polygon.is_there() {
            let name = args.text(0);
            if !given.member && !given.place {
                let text = "exactly one of FROMMEMBER or FROMLONLAT can be specified for";
                self.lacks.get_or_insert(format!("ERR {text} {name}"));
            }
            if !given.radius && !given.sides {
                let text = "exactly one of BYRADIUS and BYBOX can be specified for";
                self.lacks.get_or_insert(format!("ERR {text} {name}"));
            }
        }
        self.check(form)
    }

    /// Takes where a search looks, if an argument says that; and says how many arguments behind it do, too.
    fn take_shape(
        &mut self,
        args: &Args<'a>,
        at: usize,
        set: Option<&SortedSet<'_, '_>>,
        given: &mut Given,
    ) -> Result<Option<usize>, Failure> {
        let left = args.len() - at - 1;
        if args.is(at, "BYPOLYGON") && *given == Given::default() {
            let (polygon, more) = parse_polygon(args, at)?;
            let (middle, shape) = polygon.surroundings();
            (self.middle, self.shape, self.criteria.polygon) = (Some(middle), Some(shape), polygon);
            return Ok(Some(more));
        }
        if self.criteria.polygon.is_there() {
            return Ok(None);
        }
        if left >= 1 && !given.place && args.is(at, "FROMMEMBER") {
            given.member = true;
            if let Some(set) = set {
                self.middle = Some(place_of(set, args, at + 1).ok_or(NO_MEMBER)?);
            }
            return Ok(Some(1));
        }
        if left >= 2 && !given.member && args.is(at, "FROMLONLAT") {
            self.middle = Some(place(args, at + 1)?);
            given.place = true;
            return Ok(Some(2));
        }
        if left >= 2 && !given.sides && args.is(at, "BYRADIUS") {
            self.take_radius(args, at + 1)?;
            given.radius = true;
            return Ok(Some(2));
        }
        if left >= 3 && !given.radius && args.is(at, "BYBOX") {
            self.take_box(args, at + 1)?;
            given.sides = true;
            return Ok(Some(3));
        }
        Ok(None)
    }

    fn around(&self) -> Option<(Point, Shape)> {
        self.middle.zip(self.shape)
    }

    /// Whether the options go together.
    fn check(&mut self, form: Form) -> Result<(), Failure> {
        if self.target.is_some()
            && (self.criteria.with_distance || self.criteria.with_hash || self.criteria.with_place)
        {
            let what = match form {
                Form::SearchStore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return Err(Failure::new(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        if let Some(text) = self.lacks.take() {
            return Err(Failure::new(text));
        }
        if self.criteria.any && self.criteria.count.is_none() {
            return Err(ANY_WITHOUT_COUNT);
        }
        if self.criteria.count.is_some() && self.criteria.order == Order::Any && !self.criteria.any
        {
            self.criteria.order = Order::Ascending;
        }
        Ok(())
    }
}

fn search(context: &mut Context<'_>, args: &Args<'_>, form: Form) -> Handled {
    let may_store = form.stores() || form == Form::SearchStore;
    // What is wrong with the request is said when it is known of which kind the key is.
    let target = may_store.then(|| Search::parse(args, form, None).ok());
    match target.flatten().and_then(|search| search.target) {
        Some(target) => store(context, args, form, target),
        None => answer(context, args, form),
    }
}

fn store(context: &mut Context<'_>, args: &Args<'_>, form: Form, target: Key<'_>) -> Handled {
    let source = source(args, form);
    let server = context.server;
    let event = match form.is_search() {
        true => Event::GEOSEARCHSTORE,
        false => Event::GEORADIUSSTORE,
    };
    combining::store(context, args, (target, &[source]), event, |shards| {
        let mut shard = shards.of(source);
        let set = shard.read_sorted_set(source)?;
        let search = Search::parse(args, form, set.as_ref())?;
        let mut running = Running::new(server, search.around(), search.criteria, set.as_ref());
        running.hold(set);
        Ok(Some(running))
    })
}

/// The key that is searched.
fn source<'a>(args: &Args<'a>, form: Form) -> Key<'a> {
    args.key(if form == Form::SearchStore { 2 } else { 1 })
}

fn answer(context: &mut Context<'_>, args: &Args<'_>, form: Form) -> Handled {
    let source = source(args, form);
    let server = context.server;
    let mut shard = context.store.lock(source);
    let set = shard.read_sorted_set(source)?;
    let search = Search::parse(args, form, set.as_ref())?;
    let mut running = Running::new(server, search.around(), search.criteria, set.as_ref());
    if combining::is_apart(context, running.steps()) {
        running.hold(set);
        drop(shard);
        let protocol = context.reply.protocol();
        return combining::answer(context, args, move |growing| {
            let mut pieces = Pieces::default();
            let found = running.run(growing);
            pieces.write(protocol, |reply| reply.array(found.len()));
            for its in &found {
                if !growing.may_go_on(running.criteria.bytes(its)) {
                    break;
                }
                pieces.write(protocol, |reply| running.criteria.write(reply, its));
            }
            pieces
        });
    }
    let mut growing = Growing::new(server);
    let found = set.as_ref().map_or(Vec::new(), |set| {
        let items = set.sorted().items();
        running.run_in(items, &mut growing)
    });
    if growing.refused().is_some() {
        return Err(failure::OUT_OF_MEMORY);
    }
    let reply = &mut context.reply;
    reply.array(found.len());
    found
        .iter()
        .for_each(|its| running.criteria.write(reply, its));
    Ok(Next::Done)
}

/// `GEOSEARCH key FROMMEMBER member | FROMLONLAT longitude latitude BYRADIUS radius unit | BYBOX width height
/// unit [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`; in place of middle and size
/// `BYPOLYGON corners longitude latitude [longitude latitude ...]`
pub(super) fn geosearch(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    search(context, args, Form::Search)
}

/// `GEOSEARCHSTORE destination source` and as GEOSEARCH, `[STOREDIST]`
pub(super) fn geosearchstore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    search(context, args, Form::SearchStore)
}

/// `GEORADIUS key longitude latitude radius unit [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC |
/// DESC] [STORE key] [STOREDIST key]`
pub(super) fn georadius(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    search(context, args, Form::Around)
}

/// [`georadius`] that stores nothing.
pub(super) fn georadius_ro(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    search(context, args, Form::AroundReadOnly)
}

/// `GEORADIUSBYMEMBER key member radius unit` and as GEORADIUS
pub(super) fn georadiusbymember(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    search(context, args, Form::Member)
}

/// [`georadiusbymember`] that stores nothing.
pub(super) fn georadiusbymember_ro(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    search(context, args, Form::MemberReadOnly)
}
