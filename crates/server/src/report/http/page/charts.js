// What the dashboard draws with: elements, numbers as people read them, charts. What is drawn, and where the
// figures come from, is in dashboard.js.
"use strict";

// The ranges of the charts: the span of their axis, which points they show, and how far apart these are.
const RANGES = {
  minute: { span_s: 60, points: "fine", step_ms: 1000 },
  fine: { span_s: 600, points: "fine", step_ms: 1000 },
  coarse: { span_s: 3600, points: "coarse", step_ms: 10000 },
};

const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function node(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (key === "class") made.className = value;
    else if (key === "width") made.style.width = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Numbers as people read them.

const NONE = "–";
const digits = (value) => (value >= 100 ? 0 : value >= 10 ? 1 : 2);

function count(value) {
  if (!Number.isFinite(value)) return NONE;
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e4]]) {
    const scale = unit === "k" ? 1e3 : size;
    if (value >= size) return `${(value / scale).toFixed(digits(value / scale))}\u00a0${unit}`;
  }
  return Number.isInteger(value) || value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(value < 1 ? 2 : 1);
}

function bytes(value) {
  if (!Number.isFinite(value)) return NONE;
  for (const [at, unit] of ["PiB", "TiB", "GiB", "MiB", "KiB"].entries()) {
    const size = 1024 ** (5 - at);
    if (value >= size) return `${(value / size).toFixed(digits(value / size))}\u00a0${unit}`;
  }
  return `${Math.round(value)}\u00a0B`;
}

function time(us) {
  if (!Number.isFinite(us)) return NONE;
  if (us >= 1e6) return `${(us / 1e6).toFixed(digits(us / 1e6))}\u00a0s`;
  if (us >= 1e3) return `${(us / 1e3).toFixed(digits(us / 1e3))}\u00a0ms`;
  return `${us.toFixed(us >= 10 ? 0 : us >= 1 ? 1 : 2)}\u00a0µs`;
}

function span(seconds) {
  if (!Number.isFinite(seconds)) return NONE;
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(Math.max(seconds, 0))} s`;
}

const percent = (part) => (Number.isFinite(part) ? `${(100 * part).toFixed(part >= 0.9995 || part === 0 ? 0 : 1)} %` : NONE);

// Charts.

/** A line through [time, value] pairs, with a gap where a value or some points are missing. */
function path(pairs, x, y, step_ms) {
  let text = "", last = -Infinity;
  for (const [at, value] of pairs) {
    if (!Number.isFinite(value)) { last = -Infinity; continue; }
    text += `${at - last < 4 * step_ms ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    last = at;
  }
  return text;
}

/** The range that shows what is known, until somebody chooses one: a minute at first, then ten. */
function fittingRange() {
  const known_ms = (points.fine.at(-1)?.at ?? 0) - (points.fine[0]?.at ?? 0);
  return known_ms <= RANGES.minute.span_s * 1020 ? "minute" : "fine";
}

/** The points of a range that its charts show, their span in seconds, and when it ends. */
function shown(name) {
  const { span_s, step_ms, points: kind } = RANGES[name], all = points[kind];
  const end = Math.max(all.at(-1)?.at ?? 0, points.fine.at(-1)?.at ?? 0);
  return { list: all.filter((one) => one.at >= end - span_s * 1000), span_s, end, step_ms };
}

/** How long ago something was, as the axis says it. */
const ago = (seconds) => (seconds < 0.5 ? "now" : seconds % 60 === 0 ? `−${seconds / 60} min` : seconds < 120 ? `−${Math.round(seconds)} s` : `−${(seconds / 60).toFixed(1)} min`);

/** A column of points as [time, value] pairs. */
const column = (list, name) => list.map((one) => [one.at, one[name]]);

function spark(id, name, top) {
  const svg = byId(id), [width, height] = [200, 34];
  const { list, span_s, end, step_ms } = shown(fittingRange()), pairs = column(list, name);
  const known = pairs.map(([, value]) => value).filter(Number.isFinite);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  if (known.length < 2) { svg.replaceChildren(); return; }
  const most = top ?? (Math.max(...known) * 1.1 || 1);
  const x = (at) => width - ((end - at) / 1000 / span_s) * width;
  const y = (value) => height - 2 - (value / most) * (height - 4);
  svg.replaceChildren(shape("path", { d: path(pairs, x, y, step_ms), class: "line s1", "vector-effect": "non-scaling-stroke" }));
}

/** A round number that is not below a value. */
function roundUp(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * size).find((step) => step >= value * 0.999);
}

/** A mark of an axis: a number without zeroes behind the point. */
const short = (text) => text.replace(/(\.\d*?)0+(?=\s|$)/, "$1").replace(/\.(?=\s|$)/, "");

let pointer = null; // over which chart the pointer is, and where

/** What a chart's lines say at one moment: a line through it, a dot on each of them, and a box of values beside it. */
function tip(point, lines, format, { x, y, width, top, bottom, seconds }) {
  const texts = [ago(seconds), ...lines.map(([, label, name]) => `${label} ${format(point[name])}`)];
  const wide = 14 + 6.2 * Math.max(...texts.map((text) => text.length)), left = x + wide + 12 > width ? x - wide - 8 : x + 8;
  const dots = lines.filter(([, , name]) => Number.isFinite(point[name])).map(([style, , name]) => shape("circle", { cx: x, cy: y(point[name]), r: 3, class: style }));
  return [
    shape("line", { x1: x, x2: x, y1: top, y2: bottom, class: "hair" }), ...dots,
    shape("rect", { x: left, y: top, width: wide, height: 10 + 14 * texts.length, rx: 4, class: "tip" }),
    ...texts.map((text, at) => shape("text", { x: left + 7, y: top + 15 + 14 * at, class: "tip" }, text)),
  ];
}

/** Lines over the last minutes. `lines` are [class, label, name of the points' value]; on a logarithmic scale for times. */
function chart(id, lines, format, logarithmic) {
  const figureNode = byId(id), width = Math.max(figureNode.clientWidth, 260), height = 190;
  const [left, right, top, bottom] = [54, 8, 8, 20];
  const { list, span_s, end, step_ms } = shown(range ?? fittingRange());
  const known = lines.flatMap(([, , name]) => list.map((one) => one[name]).filter(Number.isFinite));
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  let ticks, y;
  if (logarithmic) {
    const low = Math.floor(Math.log10(Math.max(Math.min(...known, 1e6), 0.1))), high = Math.max(Math.ceil(Math.log10(Math.max(...known, 1))), low + 1);
    ticks = Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at));
    y = (value) => height - bottom - ((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) * (height - top - bottom);
  } else {
    const most = roundUp(Math.max(...known, 1));
    ticks = [0, most / 4, most / 2, (most * 3) / 4, most];
    y = (value) => height - bottom - (value / most) * (height - top - bottom);
  }
  for (const tick of ticks) {
    svg.append(shape("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "grid" }));
    svg.append(shape("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, short(format(tick))));
  }
  const marks = width < 420 ? 3 : 5;
  const x = (at) => width - right - ((end - at) / 1000 / span_s) * (width - left - right);
  for (let mark = 0; mark <= marks; mark++) {
    const seconds = Math.round((span_s * mark) / marks);
    const anchor = mark === 0 ? "end" : mark === marks ? "start" : "middle";
    svg.append(shape("text", { x: width - right - (mark / marks) * (width - left - right), y: height - 5, "text-anchor": anchor }, ago(seconds)));
  }
  if (known.length < 2) {
    svg.append(shape("text", { x: (width + left) / 2, y: height / 2, "text-anchor": "middle" }, "nothing yet"));
  }
  for (const [style, , name] of lines) svg.append(shape("path", { d: path(column(list, name), x, y, step_ms), class: `line ${style}` }));
  if (pointer?.id === id && known.length) {
    const at = end - ((width - right - (pointer.x / figureNode.clientWidth) * width) / (width - left - right)) * span_s * 1000;
    const nearest = list.reduce((best, one) => (Math.abs(one.at - at) < Math.abs(best.at - at) ? one : best));
    svg.append(...tip(nearest, lines, format, { x: x(nearest.at), y, width, top, bottom: height - bottom, seconds: (end - nearest.at) / 1000 }));
  }
  const last = (name) => list.map((one) => one[name]).findLast(Number.isFinite) ?? NaN;
  const keys = lines.map(([style, label, name]) => node("span", {}, node("span", { class: `dot ${style}` }), `${label} ${format(last(name))}`));
  figureNode.replaceChildren(svg, node("figcaption", { class: "key" }, ...keys));
}
