//! Charts as SVG: bars side by side, and curves on plain or logarithmic axes.
//!
//! The texts are left to the font of whoever looks; nothing here needs a file or a network.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<T> = Result<T, Box<dyn std::error::Error>>;

const FONT: &str = "sans-serif";
const SMALL: u32 = 12;
const LARGE: u32 = 17;

/// Colours that are told apart on paper and by those who see few.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x88, 0x92, 0xa0),
    RGBColor(0xc9, 0x4f, 0x1d),
    RGBColor(0x1f, 0x6f, 0xb4),
    RGBColor(0xd9, 0xa4, 0x1a),
    RGBColor(0x2b, 0x8a, 0x5b),
    RGBColor(0x8e, 0x55, 0xa8),
    RGBColor(0x4d, 0x4d, 0x4d),
    RGBColor(0xd8, 0x7b, 0xa8),
];

/// Bars in groups: for each group one bar per series.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) series: Vec<String>,
    /// A group's name, and a value per series where there is one.
    pub(crate) groups: Vec<(String, Vec<Option<f64>>)>,
}

/// A curve: its name and its points.
pub(crate) type Curve = (String, Vec<(f64, f64)>);

/// Curves over a common axis.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curves {
    pub(crate) title: String,
    pub(crate) x_name: String,
    pub(crate) y_name: String,
    pub(crate) curves: Vec<Curve>,
}

/// Bars that lie, with the names of their groups at the left. Empty if there is nothing to draw.
pub(crate) fn bars(bars: &Bars) -> String {
    let rows = bars.groups.len() * (bars.series.len() + 1);
    // Each bar and each gap between groups has the same height; then the title, axis and legend.
    let height = 110 + 16 * rows as u32;
    svg((900, height), |area| draw_bars(bars, area))
}

/// Curves over a plain axis.
pub(crate) fn curves(curves: &Curves) -> String {
    svg((900, 340), |area| draw_curves(curves, area))
}

/// Latencies by percentile: the axis shows how far a percentile is from 100, in powers of ten, because
/// that is where the difference is. The points are (percent, milliseconds).
pub(crate) fn percentiles(curves: &Curves) -> String {
    svg((900, 340), |area| draw_percentiles(curves, area))
}

/// Draws into a string. What cannot be drawn (no values) is an empty one.
fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn<()>) -> String {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
    let result = area
        .fill(&WHITE)
        .map_err(Into::into)
        .and_then(|()| draw(&area));
    let result = result.and_then(|()| area.present().map_err(Into::into));
    drop(area);
    match result {
        Ok(()) => text,
        Err(_) => String::new(),
    }
}

fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

fn font(size: u32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&BLACK)
}

fn draw_bars(bars: &Bars, area: &Area<'_>) -> Drawn<()> {
    let values = bars.groups.iter().flat_map(|(_, values)| values);
    let largest = values.flatten().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return Err("there is nothing to draw".into());
    }
    let groups = bars.groups.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(&bars.title, font(LARGE))
        .margin(12)
        .set_label_area_size(LabelAreaPosition::Left, 215)
        .set_label_area_size(LabelAreaPosition::Bottom, 38)
        .build_cartesian_2d(0.0..largest * 1.12, groups..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_desc(&bars.unit)
        .label_style(font(SMALL))
        .light_line_style(WHITE)
        .draw()?;
    let height = 1.0 / (bars.series.len() as f64 + 1.0);
    for (index, name) in bars.series.iter().enumerate() {
        let style = colour(index).filled();
        let top = |group: usize| group as f64 + height * (index as f64 + 0.5);
        let rectangles = bars
            .groups
            .iter()
            .enumerate()
            .filter_map(|(group, (_, values))| {
                let value = (*values.get(index)?)?;
                let corners = [(0.0, top(group)), (value, top(group) + height * 0.9)];
                Some(Rectangle::new(corners, style))
            });
        chart
            .draw_series(rectangles)?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], style));
        for (group, (_, values)) in bars.groups.iter().enumerate() {
            if let Some(Some(value)) = values.get(index) {
                let (x, y) = chart.backend_coord(&(*value, top(group) + height * 0.45));
                let style = font(SMALL - 2).pos(Pos::new(HPos::Left, VPos::Center));
                area.draw_text(&figure(*value), &style, (x + 4, y))?;
            }
        }
    }
    for (group, (name, _)) in bars.groups.iter().enumerate() {
        let (x, y) = chart.backend_coord(&(0.0, group as f64 + 0.5));
        let style = font(SMALL).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw_text(name, &style, (x - 8, y))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .label_font(font(SMALL))
        .draw()?;
    Ok(())
}

/// A value with about three digits.
fn figure(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.2} M", value / 1e6),
        value if value >= 1e4 => format!("{:.0} k", value / 1e3),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A value beside an axis: no digits that say nothing.
fn on_axis(value: f64) -> String {
    if value >= 1e4 {
        return figure(value);
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn draw_curves(curves: &Curves, area: &Area<'_>) -> Drawn<()> {
    let (right, top) = extent(&curves.curves)?;
    let mut chart = ChartBuilder::on(area)
        .caption(&curves.title, font(LARGE))
        .margin(12)
        .set_label_area_size(LabelAreaPosition::Left, 70)
        .set_label_area_size(LabelAreaPosition::Bottom, 38)
        .build_cartesian_2d(0.0..right, 0.0..top * 1.1)?;
    chart
        .configure_mesh()
        .x_desc(&curves.x_name)
        .y_desc(&curves.y_name)
        .x_label_formatter(&|value| on_axis(*value))
        .y_label_formatter(&|value| on_axis(*value))
        .label_style(font(SMALL))
        .light_line_style(WHITE)
        .draw()?;
    for (index, (name, points)) in curves.curves.iter().enumerate() {
        let style = colour(index + 1).stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 12, y)], style));
    }
    // A single curve needs no name of its own.
    if curves.curves.len() < 2 {
        return Ok(());
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .label_font(font(SMALL))
        .draw()?;
    Ok(())
}

fn draw_percentiles(curves: &Curves, area: &Area<'_>) -> Drawn<()> {
    let (_, top) = extent(&curves.curves)?;
    let points = curves.curves.iter().flat_map(|(_, points)| points);
    let bottom = points.map(|(_, ms)| *ms).fold(top, f64::min).max(1e-4);
    // One, ten, a hundred, ... in so many are slower.
    let rarest = curves
        .curves
        .iter()
        .flat_map(|(_, points)| points)
        .map(|(percent, _)| rarity(*percent));
    let right = rarest.fold(10.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(&curves.title, font(LARGE))
        .margin(12)
        .set_label_area_size(LabelAreaPosition::Left, 70)
        .set_label_area_size(LabelAreaPosition::Bottom, 38)
        .build_cartesian_2d(
            (1.0..right).log_scale(),
            (bottom * 0.8..top * 1.25).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc(&curves.x_name)
        .y_desc(&curves.y_name)
        .x_label_formatter(&|rarity| percent_text(*rarity))
        .y_label_formatter(&|value| on_axis(*value))
        .label_style(font(SMALL))
        .light_line_style(WHITE)
        .draw()?;
    for (index, (name, points)) in curves.curves.iter().enumerate() {
        let style = colour(index + 1).stroke_width(2);
        let points = points
            .iter()
            .map(|(percent, ms)| (rarity(*percent), ms.max(1e-4)));
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 12, y)], style));
    }
    if curves.curves.len() < 2 {
        return Ok(());
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .label_font(font(SMALL))
        .draw()?;
    Ok(())
}

/// One in how many is beyond a percentile; 100 % is drawn at the last one that is not.
fn rarity(percent: f64) -> f64 {
    (1.0 / (1.0 - percent / 100.0).max(1e-9)).max(1.0)
}

/// 1 -> 0 %, 10 -> 90 %, 1000 -> 99.9 %.
fn percent_text(rarity: f64) -> String {
    let percent = 100.0 - 100.0 / rarity;
    let text = format!("{percent:.6}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The largest coordinates.
fn extent(curves: &[Curve]) -> Drawn<(f64, f64)> {
    let mut extent = (0.0, 0.0);
    for (x, y) in curves.iter().flat_map(|(_, points)| points) {
        extent = (f64::max(extent.0, *x), f64::max(extent.1, *y));
    }
    if extent.0 <= 0.0 || extent.1 <= 0.0 {
        return Err("there is nothing to draw".into());
    }
    Ok(extent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Bars {
        Bars {
            title: "Cost & <more>".into(),
            unit: "us".into(),
            series: vec!["redis".into(), "ferrite".into()],
            groups: vec![
                ("SET, P1".into(), vec![Some(8.0), Some(6.5)]),
                ("GET, P1".into(), vec![None, Some(3.25)]),
            ],
        }
    }

    #[test]
    fn bars_are_drawn_and_named() {
        let svg = bars(&sample());
        assert!(
            svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
            "{svg}"
        );
        for text in [
            "SET, P1",
            "GET, P1",
            "redis",
            "ferrite",
            "3.25",
            "Cost &amp; &lt;more&gt;",
        ] {
            assert!(svg.contains(text), "{text} is missing");
        }
        let half = Bars {
            groups: vec![("x".into(), vec![None, None])],
            ..sample()
        };
        assert_eq!(bars(&half), "");
    }

    #[test]
    fn curves_are_drawn_on_both_axes() {
        let sample = Curves {
            title: "Latency".into(),
            x_name: "percentile".into(),
            y_name: "ms".into(),
            curves: vec![(
                "one".into(),
                vec![(0.0, 0.1), (50.0, 0.2), (99.9, 3.0), (100.0, 9.0)],
            )],
        };
        for svg in [curves(&sample), percentiles(&sample)] {
            assert!(
                svg.contains("<polyline") && svg.contains("Latency"),
                "{svg}"
            );
        }
        assert!(percentiles(&sample).contains("99.9 %"));
        assert_eq!(curves(&Curves::default()), "");
    }

    #[test]
    fn rarities_and_percentiles() {
        assert_eq!(percent_text(1.0), "0 %");
        assert_eq!(percent_text(100.0), "99 %");
        assert_eq!(percent_text(10_000.0), "99.99 %");
        assert!((rarity(99.9) - 1_000.0).abs() < 1e-6);
        assert!(rarity(100.0).is_finite());
    }

    #[test]
    fn figures_have_about_three_digits() {
        for (value, text) in [
            (0.123, "0.12"),
            (12.34, "12.3"),
            (523.4, "523"),
            (56_789.0, "57 k"),
            (5.6e6, "5.60 M"),
        ] {
            assert_eq!(figure(value), text);
        }
    }
}
