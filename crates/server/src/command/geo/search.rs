//! Members around a place: GEOSEARCH GEOSEARCHSTORE GEORADIUS GEORADIUSBYMEMBER, and those without STORE.

use keyspace::collection::sorted::{score_of, scored};
use keyspace::{Bound, Detached, Key, Kind, New};
use resp::number::parse_f64;

use super::super::items::cells::write_cell;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::members::{place, place_of, write_distance, write_place};
use super::place::{Point, Shape};
use super::polygon::Polygon;
use super::unit;
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::shared::memory::Growing;
use crate::store::SortedSet;

const NO_MEMBER: Failure = Failure::of("ERR could not decode requested zset member");
const NO_RADIUS: Failure = Failure::of("ERR need numeric radius");
const NEGATIVE_RADIUS: Failure = Failure::of("ERR radius cannot be negative");
const NO_WIDTH: Failure = Failure::of("ERR need numeric width");
const NO_HEIGHT: Failure = Failure::of("ERR need numeric height");
const NEGATIVE_BOX: Failure = Failure::of("ERR height or width cannot be negative");
const NO_COUNT: Failure = Failure::of("ERR COUNT must be > 0");
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Any,
    Ascending,
    Descending,
}

/// A request.
struct Search<'a> {
    /// The middle; of a missing key it may not be known.
    middle: Option<Point>,
    shape: Option<Shape>,
    /// What of the shape is wanted, if it is there.
    polygon: Polygon,
    /// Meters of the unit.
    unit_m: f64,
    with_distance: bool,
    with_hash: bool,
    with_place: bool,
    count: Option<u64>,
    /// Any that are found will do.
    any: bool,
    order: Order,
    target: Option<Key<'a>>,
    stores_distance: bool,
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
            polygon: Polygon::default(),
            unit_m: 1.0,
            with_distance: false,
            with_hash: false,
            with_place: false,
            count: None,
            any: false,
            order: Order::Any,
            target: None,
            stores_distance: false,
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
        self.unit_m = unit(args, at + 1)?;
        let radius_m = radius * self.unit_m;
        self.shape = Some(Shape::Circle { radius_m });
        Ok(())
    }

    fn take_box(&mut self, args: &Args<'_>, at: usize) -> Result<(), Failure> {
        let width = length(args, at, NO_WIDTH)?;
        let height = length(args, at + 1, NO_HEIGHT)?;
        if width < 0.0 || height < 0.0 {
            return Err(NEGATIVE_BOX);
        }
        self.unit_m = unit(args, at + 2)?;
        self.shape = Some(Shape::Box {
            width_m: width * self.unit_m,
            height_m: height * self.unit_m,
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
                self.with_distance = true;
            } else if args.is(at, "WITHHASH") {
                self.with_hash = true;
            } else if args.is(at, "WITHCOORD") {
                self.with_place = true;
            } else if args.is(at, "ANY") {
                self.any = true;
            } else if args.is(at, "ASC") {
                self.order = Order::Ascending;
            } else if args.is(at, "DESC") {
                self.order = Order::Descending;
            } else if args.is(at, "COUNT") && left >= 1 {
                at += 1;
                let count = u64::try_from(args.integer(at)?).ok();
                self.count = Some(count.filter(|&count| count > 0).ok_or(NO_COUNT)?);
            } else if form.stores() && left >= 1 && args.is(at, "STORE") {
                at += 1;
                (self.target, self.stores_distance) = (Some(args.key(at)), false);
            } else if form.stores() && left >= 1 && args.is(at, "STOREDIST") {
                at += 1;
                (self.target, self.stores_distance) = (Some(args.key(at)), true);
            } else if form == Form::SearchStore && args.is(at, "STOREDIST") {
                self.stores_distance = true;
            } else if form.is_search()
                && let Some(more) = self.take_shape(args, at, set, &mut given)?
            {
                at += more;
            } else {
                return Err(failure::SYNTAX);
            }
            at += 1;
        }
        if form.is_search() && !self.polygon.is_there() {
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
            let (polygon, more) = Polygon::parse(args, at)?;
            let (middle, shape) = polygon.surroundings();
            (self.middle, self.shape, self.polygon) = (Some(middle), Some(shape), polygon);
            return Ok(Some(more));
        }
        if self.polygon.is_there() {
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

    /// Whether the options go together.
    fn check(&mut self, form: Form) -> Result<(), Failure> {
        if self.target.is_some() && (self.with_distance || self.with_hash || self.with_place) {
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
        if self.any && self.count.is_none() {
            return Err(ANY_WITHOUT_COUNT);
        }
        if self.count.is_some() && self.order == Order::Any && !self.any {
            self.order = Order::Ascending;
        }
        Ok(())
    }

    /// The members that are found, as many as are wanted, in the order that is.
    fn run(&self, set: &SortedSet<'_, '_>) -> Vec<Found> {
        let (Some(middle), Some(shape)) = (self.middle, self.shape) else {
            return Vec::new();
        };
        let count = self.count.map_or(usize::MAX, |count| count as usize);
        let most = if self.any { count } else { usize::MAX };
        let (members, mut found) = (set.sorted(), Vec::new());
        for cell in shape.cells(middle) {
            let (first, end) = cell.scores();
            let mut rank = members.count_before(Bound::Score(first));
            let end = members.count_before(Bound::Score(end));
            while rank < end && found.len() < most {
                rank = members.items().items_behind(rank, end, |item| {
                    if found.len() >= most {
                        return;
                    }
                    let score = score_of(&item);
                    let place = Point::of_score(score);
                    if self.polygon.is_there() && !self.polygon.has(place) {
                        return;
                    }
                    if let Some(distance_m) = shape.distance_m(middle, place) {
                        let member = item.name.text(&mut Default::default()).to_vec();
                        found.push(Found {
                            member,
                            score,
                            place,
                            distance: distance_m / self.unit_m,
                        });
                    }
                });
            }
        }
        match self.order {
            Order::Any => {}
            Order::Ascending => found.sort_by(|one, other| one.distance.total_cmp(&other.distance)),
            Order::Descending => {
                found.sort_by(|one, other| other.distance.total_cmp(&one.distance));
            }
        }
        found.truncate(count);
        found
    }
}

/// A member that was found.
struct Found {
    member: Vec<u8>,
    score: f64,
    place: Point,
    distance: f64,
}

/// The key that is searched, and those that the search may change.
fn keys<'a>(args: &Args<'a>, form: Form) -> (Key<'a>, Vec<Key<'a>>) {
    let source = args.key(if form == Form::SearchStore { 2 } else { 1 });
    let mut keys = vec![source];
    match form {
        Form::SearchStore => keys.push(args.key(1)),
        _ if form.stores() => {
            let names = (4..args.len().saturating_sub(1))
                .filter(|&at| args.is(at, "STORE") || args.is(at, "STOREDIST"));
            keys.extend(names.map(|at| args.key(at + 1)));
        }
        _ => {}
    }
    (source, keys)
}

fn search(context: &mut Context<'_>, args: &Args<'_>, form: Form) -> Handled {
    let server = context.server;
    let (source, keys) = keys(args, form);
    let mut shards = context.store.lock_keys(keys.into_iter());
    let mut shard = shards.of(source);
    let set = shard.read_sorted_set(source)?;
    let search = Search::parse(args, form, set.as_ref())?;
    let found = set.as_ref().map_or(Vec::new(), |set| search.run(set));
    drop(shard);
    let Some(target) = search.target else {
        drop(shards);
        answer(context, &search, &found);
        return Ok(Next::Done);
    };
    let mut shard = shards.of(target);
    if found.is_empty() {
        if shard.remove(target) {
            shard.tell(Event::DEL, target);
        }
    } else {
        let mut builder = server.keyspace.builder(Kind::SortedSet, target.bytes);
        let mut growing = Growing::new(server);
        for its in &found {
            if !growing.may_go_on(size_of::<f64>() + its.member.len()) {
                return Err(failure::OUT_OF_MEMORY);
            }
            let score = match search.stores_distance {
                true => its.distance,
                false => its.score,
            };
            let member = keyspace::collection::cell::Cell::of(&its.member);
            let added = builder.push(&scored(member, score, &mut [0; 8]));
            debug_assert!(added.is_ok(), "each member comes once");
        }
        let form_of = Packed::form_of(&server.settings, &builder);
        let mut made = Detached::built(builder, form_of, None);
        shard.write(target, New::detached(&mut made));
        let event = match form.is_search() {
            true => Event::GEOSEARCHSTORE,
            false => Event::GEORADIUSSTORE,
        };
        shard.tell(event, target);
    }
    drop(shard);
    drop(shards);
    context.reply.integer(found.len() as i64);
    Ok(Next::Done)
}

fn answer(context: &mut Context<'_>, search: &Search<'_>, found: &[Found]) {
    let reply = &mut context.reply;
    let facts = [search.with_distance, search.with_hash, search.with_place];
    let facts = facts.into_iter().filter(|&is_wanted| is_wanted).count();
    reply.array(found.len());
    for its in found {
        if facts > 0 {
            reply.array(1 + facts);
        }
        write_cell(reply, keyspace::collection::cell::Cell::Bytes(&its.member));
        if search.with_distance {
            write_distance(reply, its.distance);
        }
        if search.with_hash {
            reply.integer(its.score as i64);
        }
        if search.with_place {
            write_place(reply, its.place);
        }
    }
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
