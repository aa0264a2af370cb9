// The dashboard: asks for /stats.json each second and draws, with what charts.js has. What happened before
// the page was there comes from /history.json: ten minutes second by second, and an hour in steps of ten
// seconds.
//
// Counts in the answer are since the server's start; what happens per second is the difference of two
// answers. Text that comes from outside (keys, commands, names of clients) only ever becomes the content of
// text nodes.
"use strict";

const STEP_MS = 1000; // between two answers
const HISTORY_MS = 10000; // between two looks at the history while the hour is shown
const NARROW = matchMedia("(max-width: 700px)"); // as in dashboard.css
const WINDOW = 10; // answers that a table looks back

// What the answers say.

let answers = []; // the newest last
let points = { fine: [], coarse: [] }; // what happened per second, the newest last
let range = null; // what the charts show; null: what fits (see fittingRange)
let historyAt = -Infinity; // when the history was last asked for
let hotRank = "operations";

/** A figure without labels; undefined where the server has none. */
const figure = (answer, name) => answer.figures[name];

/** The values of a figure with one label, by label. */
const labelled = (answer, name) => new Map((answer.by[name] ?? []).map(([label, value]) => [label, value]));

/** A histogram of an answer by its first label: a map of bounds to counts. */
function histograms(answer, name) {
  return new Map((answer.times[name] ?? []).map(({ labels, buckets }) => [labels[0] ?? "", new Map(buckets)]));
}

/** What has come to a histogram since another answer: bounds and counts, ascending. */
function since(now, before) {
  const added = [];
  for (const [bound, value] of now ?? []) {
    const more = value - (before?.get(bound) ?? 0);
    if (more > 0) added.push([bound, more]);
  }
  return added.sort((one, other) => one[0] - other[0]);
}

/** The time that so much of all does not exceed. */
function quantile(buckets, part) {
  const all = buckets.reduce((sum, [, value]) => sum + value, 0);
  let left = Math.max(part * all, 1);
  for (const [bound, value] of buckets) {
    left -= value;
    if (left <= 0) return bound;
  }
  return NaN;
}

function merged(histogramsByLabel) {
  const all = new Map();
  for (const buckets of histogramsByLabel.values())
    for (const [bound, value] of buckets) all.set(bound, (all.get(bound) ?? 0) + value);
  return all;
}

/** What happened between two answers. */
function point(now, before) {
  const seconds = (now.server.now_ms - before.server.now_ms) / 1000;
  const rate = (name) => (figure(now, name) - figure(before, name)) / seconds;
  const [hits, misses] = [rate("ferrite_keyspace_hits_total"), rate("ferrite_keyspace_misses_total")];
  const whole = since(merged(histograms(now, "ferrite_command_latency_seconds")), merged(histograms(before, "ferrite_command_latency_seconds")));
  const busy = workers(now, before).map((worker) => worker.running + worker.waiting);
  return {
    at: now.server.now_ms,
    ops: rate("ferrite_commands_processed_total"),
    input: rate("ferrite_network_input_bytes_total"),
    output: rate("ferrite_network_output_bytes_total"),
    expired: rate("ferrite_keys_expired_total"),
    errors: rate("ferrite_error_replies_total"),
    hits: hits + misses > 0 ? hits / (hits + misses) : NaN,
    reads: hits + misses,
    p50: quantile(whole, 0.5),
    p99: quantile(whole, 0.99),
    p999: quantile(whole, 0.999),
    memory: figure(now, "ferrite_memory_used_bytes"),
    keys: figure(now, "ferrite_keys"),
    busy: busy.length ? busy.reduce((sum, one) => sum + one, 0) / busy.length : NaN,
  };
}

/** How each worker spent its time between two answers, as parts of one. */
function workers(now, before) {
  const seconds = (now.server.now_ms - before.server.now_ms) / 1000;
  const part = (name, label) => {
    const [later, earlier] = [labelled(now, name).get(label), labelled(before, name).get(label)];
    return Math.min(Math.max((later - earlier) / seconds, 0), 1);
  };
  return [...labelled(now, "ferrite_worker_cpu_seconds_total").keys()].map((label) => ({
    label,
    running: part("ferrite_worker_cpu_seconds_total", label),
    waiting: part("ferrite_worker_cpu_wait_seconds_total", label) || 0,
    connections: labelled(now, "ferrite_worker_connections").get(label),
  }));
}

// Tables and lists.

/** Fills a table with rows of [class, content] cells, or says why it is empty. Cells know their column for narrow screens. */
function fill(id, rows, empty) {
  const table = byId(id), heads = [...table.tHead.rows[0].cells], columns = heads.length;
  const cell = ([style, content], at) => node("td", { class: style, "data-label": heads[at].textContent }, content);
  const made = rows.map((row) => node("tr", {}, ...row.map(cell)));
  table.tHead.hidden = rows.length === 0;
  table.tBodies[0].replaceChildren(...(made.length ? made : [node("tr", {}, node("td", { class: "empty", colspan: columns }, empty))]));
}

/** Rows of [name, text, what it means]; those without a text are left out. */
function pairs(id, rows) {
  const shown = rows.filter(([, text]) => text !== undefined);
  byId(id).replaceChildren(...shown.flatMap(([name, text, title]) => [node("dt", { title }, ...[name].flat()), node("dd", { title }, text)]));
}

const set = (id, text) => { byId(id).textContent = text; };

// The parts of the page.

function drawHeader(now) {
  const { version, host, pid, threads, io, not_ready } = now.server;
  set("version", version);
  set("where", `${host} · pid ${pid} · ${threads} ${threads === 1 ? "thread" : "threads"}, ${io} · up ${span(figure(now, "ferrite_uptime_seconds"))}`);
  document.title = `Ferrite ${host}`;
  state(not_ready ? "bad" : "good", not_ready ?? "ready");
}

function state(style, text) {
  const pill = byId("state");
  if (pill.textContent !== text) pill.textContent = text;
  pill.className = `pill ${style}`;
}

function drawTiles(now) {
  const last = points.fine.at(-1) ?? {};
  set("tile-ops", `${count(last.ops)}/s`);
  set("tile-ops-more", `${count(figure(now, "ferrite_commands_processed_total"))} since the start`);
  set("tile-latency", time(last.p99));
  set("tile-latency-more", `p50 ${time(last.p50)} · p99.9 ${time(last.p999)}`);
  const [hits, misses] = [figure(now, "ferrite_keyspace_hits_total"), figure(now, "ferrite_keyspace_misses_total")];
  set("tile-hits", percent(last.hits));
  set("tile-hits-more", hits + misses ? `${percent(hits / (hits + misses))} since the start` : "no key was read yet");
  const [limit, resident] = [figure(now, "ferrite_memory_max_bytes"), figure(now, "process_resident_memory_bytes")];
  set("tile-memory", bytes(last.memory ?? figure(now, "ferrite_memory_used_bytes")));
  set("tile-memory-more", (limit ? `of ${bytes(limit)} · ` : "no limit · ") + `process ${bytes(resident)}`);
  set("tile-keys", count(figure(now, "ferrite_keys")));
  set("tile-keys-more", `${count(last.expired)}/s expire`);
  set("tile-busy", percent(last.busy));
  set("tile-busy-more", `${now.server.threads} ${now.server.threads === 1 ? "worker" : "workers"}`);
  for (const name of ["ops", "memory", "keys"]) spark(`spark-${name}`, name);
  spark("spark-latency", "p99");
  spark("spark-hits", "hits", 1);
  spark("spark-busy", "busy", 1);
}

function drawCommands(now, before) {
  const seconds = (now.server.now_ms - before.server.now_ms) / 1000;
  const [whole, earlier] = [histograms(now, "ferrite_command_latency_seconds"), histograms(before, "ferrite_command_latency_seconds")];
  const run = (answer) => new Map((answer.times.ferrite_command_duration_seconds ?? []).map((one) => [one.labels[0], one.sum_s]));
  const [ran, ranEarlier] = [run(now), run(before)];
  const failures = (answer, name) => (labelled(answer, "ferrite_command_failed_total").get(name) ?? 0) + (labelled(answer, "ferrite_command_rejected_total").get(name) ?? 0);
  const rows = [];
  for (const [name, buckets] of whole) {
    const added = since(buckets, earlier.get(name)), calls = added.reduce((sum, [, value]) => sum + value, 0);
    if (calls > 0) rows.push({ name, added, calls, ran_s: ran.get(name) - (ranEarlier.get(name) ?? 0), failed: failures(now, name) - failures(before, name) });
  }
  const all_s = rows.reduce((sum, row) => sum + row.ran_s, 0) || 1;
  rows.sort((one, other) => other.ran_s - one.ran_s);
  fill("commands", rows.slice(0, 20).map((row) => {
    const part = node("span", { class: "part" }, node("i", { width: `${(100 * row.ran_s) / all_s}%` }));
    return [
      ["nowrap", row.name.toUpperCase().replace("|", " ")], ["n", count(row.calls / seconds)], ["n", time(quantile(row.added, 0.5))],
      ["n", time(quantile(row.added, 0.99))], ["n", time(quantile(row.added, 0.999))], ["n", time((row.ran_s * 1e6) / row.calls)],
      ["n", node("span", {}, part, percent(row.ran_s / all_s))], ["n", row.failed ? count(row.failed / seconds) + "/s" : "0"],
    ];
  }), "No command was run in the last 10 seconds.");
}

function drawMemory(now) {
  const used = figure(now, "ferrite_memory_used_bytes");
  const parts = [
    ["s1", "Keys and values", figure(now, "ferrite_memory_dataset_bytes"), "Keys with the values that are in memory"],
    ["s2", "Index", figure(now, "ferrite_memory_index_bytes"), "The tables in which keys are found"],
    ["s3", "Expiry", figure(now, "ferrite_memory_expiry_bytes"), "The lists of keys that will expire"],
    ["s4", "Client buffers", figure(now, "ferrite_memory_client_buffer_bytes"), "Requests and replies of connections, and what they subscribe to, watch and track"],
    ["s5", "Free, for new keys", figure(now, "ferrite_memory_slack_bytes"), "Places of keys that were removed; new keys take them"],
    ["s6", "Log buffer", figure(now, "ferrite_memory_log_ring_bytes"), "Changes on their way to the log's files; its size is fixed"],
    ["s7", "Server itself", figure(now, "ferrite_memory_startup_bytes"), "What the server took before it had any key or client"],
    ["s8", "Being freed", figure(now, "ferrite_memory_pending_bytes"), "Values that were deleted and are freed in the background"],
    ["s0", "Other", figure(now, "ferrite_memory_other_bytes")],
  ];
  byId("memory-bar").replaceChildren(...parts.filter(([, , value]) => value > 0).map(([style, , value]) => node("i", { class: style, width: `${(100 * value) / (used || 1)}%` })));
  const rows = parts.map(([style, name, value, tip]) => [[node("span", {}, node("span", { class: `dot ${style}` }), name)], bytes(value), tip]);
  const extra = [
    ["Used in all", used, "The sum of the parts above"], ["Peak", figure(now, "ferrite_memory_peak_bytes"), "The most that was ever used in all"],
    ["Process (RSS)", figure(now, "process_resident_memory_bytes"), "Physical memory of the process, as the system counts it"],
    ["Limit (maxmemory)", figure(now, "ferrite_memory_max_bytes") || null, "At the limit values leave memory, keys are evicted or writes are refused: maxmemory-policy"],
  ];
  rows.push(...extra.map(([name, value, tip]) => [name, value === null ? "none" : bytes(value), tip]));
  pairs("memory", rows);
}

function drawWorkers(now, before) {
  const all = workers(now, before);
  byId("workers").replaceChildren(...(all.length ? all.map((worker) => {
    const bar = node("div", { class: "bar" }, node("i", { class: "s1", width: percentWidth(worker.running) }), node("i", { class: "s2", width: percentWidth(worker.waiting) }));
    return node("div", { class: "meter" }, `#${worker.label}`, bar, node("b", {}, percent(worker.running + worker.waiting)));
  }) : [node("p", { class: "small" }, "This system does not tell how busy threads are.")]));
  const queue = since(histograms(now, "ferrite_queue_seconds").get(""), histograms(before, "ferrite_queue_seconds").get(""));
  const mean = (name) => all.reduce((sum, worker) => sum + worker[name], 0) / (all.length || 1);
  const [running, waiting] = [mean("running"), mean("waiting")];
  pairs("loop", [
    [node("span", {}, node("span", { class: "dot s1" }), "Running"), percent(running), "Part of the time in which workers ran on a processor"],
    [node("span", {}, node("span", { class: "dot s2" }), "Ready, no free CPU"), percent(waiting), "Part of the time in which workers had work, and the system gave the processor to other threads"],
    ["Requests wait p50 · p99", `${time(quantile(queue, 0.5))} · ${time(quantile(queue, 0.99))}`, "From the moment a request can be read until it runs"],
    ["Slowest growth of an index", time(figure(now, "ferrite_index_resize_slowest_seconds") * 1e6), "The longest time that a table of keys was locked while it was resized"],
  ]);
}

const percentWidth = (part) => `${Math.min(100 * part, 100)}%`;

function drawKeys(now, before) {
  const lag = since(histograms(now, "ferrite_expiry_lag_seconds").get(""), histograms(before, "ferrite_expiry_lag_seconds").get(""));
  const last = points.fine.at(-1) ?? {};
  pairs("keys", [
    ["Expired", `${count(last.expired)}/s`, "Keys whose time had come"],
    ["Expired too late p99", lag.length ? time(quantile(lag, 0.99)) : NONE, "From the moment a key expires until its memory is free. It is never seen in between"],
    ["Evicted", figure(now, "ferrite_keys_evicted_total") === undefined ? undefined : count(figure(now, "ferrite_keys_evicted_total")), "Keys removed because memory was full, since the start"],
    ["Keys read", `${count(last.reads)}/s`, "Hits and misses of commands that read"],
    ["Waiting to be freed", count(figure(now, "ferrite_lazyfree_pending_objects")), "Values that were deleted and are freed in the background"],
  ]);
  const expiring = labelled(now, "ferrite_database_expiring_keys");
  const rows = [...labelled(now, "ferrite_database_keys")].filter(([, keys]) => keys > 0);
  fill("databases", rows.map(([db, keys]) => [["", `db${db}`], ["n", count(keys)], ["n", count(expiring.get(db))]]), "There are no keys.");
}

function drawClients(now) {
  const last = points.fine.at(-1) ?? {};
  const value = (name) => count(figure(now, name));
  pairs("clients", [
    ["Connected", `${value("ferrite_clients_connected")} of ${value("ferrite_clients_max")}`, "Open connections, and how many there may be (maxclients)"],
    ["Blocked · subscribed · watching", `${value("ferrite_clients_blocked")} · ${value("ferrite_clients_subscribed")} · ${value("ferrite_clients_watching")}`, "Clients that wait in a command, have subscriptions, have watched keys"],
    ["Accepted · refused", `${value("ferrite_connections_received_total")} · ${value("ferrite_connections_rejected_total")}`, "Connections since the start; refused because there were maxclients already"],
    ["Closed as slow readers", value("ferrite_output_limit_disconnections_total"), "Clients that did not read their replies: client-output-buffer-limit"],
    ["Received", `${bytes(last.input)}/s`],
    ["Sent", `${bytes(last.output)}/s`],
    ["Client-side caches · keys", `${value("ferrite_clients_tracking")} · ${value("ferrite_tracking_keys")}`, "Clients with CLIENT TRACKING, and the keys they are told of when they change"],
    ["Channels · patterns", `${value("ferrite_pubsub_channels")} · ${value("ferrite_pubsub_patterns")}`, "With at least one subscriber"],
  ]);
}

function drawDisk(now) {
  const saved_s = figure(now, "ferrite_snapshot_last_timestamp_seconds");
  const ok = figure(now, "ferrite_snapshot_last_success");
  const running = figure(now, "ferrite_snapshot_in_progress") ? "being written" : ok ? `${span(now.server.now_ms / 1000 - saved_s)} ago` : "failed";
  const optional = (name, format) => (figure(now, name) === undefined ? undefined : format(figure(now, name)));
  pairs("disk", [
    ["Last snapshot", figure(now, "ferrite_snapshots_total") || !ok || running === "being written" ? running : "none since the start", "The last SAVE or BGSAVE"],
    ["Changes since then", count(figure(now, "ferrite_snapshot_changes")), "They are in the log, if there is one"],
    ["Snapshots written", count(figure(now, "ferrite_snapshots_total")), "Since the start"],
    ["Log", optional("ferrite_log_size_bytes", bytes), "Files of the log (appendonly), from which the server starts"],
    ["Needed of the log", optional("ferrite_log_live_bytes", bytes), "Without what was overwritten or deleted: compaction removes that"],
    ["Not synced yet", optional("ferrite_log_pending_bytes", bytes), "Changes that a power failure would lose now (appendfsync)"],
    ["Only on disk", `${count(figure(now, "ferrite_cold_keys"))} values · ${bytes(figure(now, "ferrite_cold_bytes"))}`, "Values that are not in memory; their keys are"],
    ["Read from disk", `${count(figure(now, "ferrite_disk_reads_total"))} times · ${bytes(figure(now, "ferrite_disk_read_bytes_total"))}`, "Values that commands needed and that were not in memory, since the start"],
    ["Moved by compaction", optional("ferrite_log_compacted_bytes_total", bytes), "Bytes written again to free the space of others, since the start"],
  ]);
}

function drawErrors(now, before) {
  const seconds = (now.server.now_ms - before.server.now_ms) / 1000;
  const earlier = labelled(before, "ferrite_errors_total");
  const rows = [...labelled(now, "ferrite_errors_total")].sort((one, other) => other[1] - one[1]).slice(0, 8);
  fill("errors", rows.map(([code, all]) => [["code", code], ["n", count((all - (earlier.get(code) ?? 0)) / seconds)], ["n", count(all)]]), "No command has failed.");
}

function drawKeysInUse(now) {
  const shown = now.hot[hotRank].slice(0, 12);
  fill("hot", shown.map((hot) => [["code", hot.key], ["n", hot.db], ["nowrap", (hot.command ?? "").toUpperCase()], ["n", count(hot.operations_per_s)], ["n", bytes(hot.bytes_per_s)]]),
    "No key stands out: either there is no load, or it is spread evenly.");
  byId("big-card").hidden = now.big === undefined;
  if (now.big) fill("big", now.big.slice(0, 12).map((big) => [["code", big.key], ["n", big.db], ["n", bytes(big.bytes - big.on_disk)], ["n", bytes(big.on_disk)]]),
    "No key was seen yet. All keys are looked at in the background, again and again.");
}

function drawSlow(now) {
  const ago = (at_s) => `${span(now.server.now_ms / 1000 - at_s)} ago`;
  fill("slow", now.slow.slice(0, 10).map((slow) => [["nowrap", ago(slow.at_s)], ["n", time(slow.took_us)], ["code", slow.command], ["nowrap", slow.name || slow.client]]),
    "No command took longer than slowlog-log-slower-than.");
  fill("events", now.events.map((event) => [["", event.name], ["nowrap", ago(event.at_s)], ["n", `${event.took_ms} ms`], ["n", `${event.worst_ms} ms`]]),
    "None, or latency-monitor-threshold is 0: set it to watch for slow moments.");
}

function drawCharts() {
  const pressed = range ?? fittingRange();
  for (const name of Object.keys(RANGES)) byId(`range-${name}`).setAttribute("aria-pressed", String(name === pressed));
  chart("chart-ops", [["s1", "Commands", "ops"], ["s2", "Errors", "errors"]], count, false);
  chart("chart-latency", [["s3", "p50", "p50"], ["s1", "p99", "p99"], ["s2", "p99.9", "p999"]], time, true);
}

function draw() {
  const now = answers.at(-1), before = answers[Math.max(answers.length - 1 - WINDOW, 0)];
  drawHeader(now);
  drawTiles(now);
  drawCharts();
  if (before !== now) {
    drawCommands(now, before);
    drawWorkers(now, before);
    drawErrors(now, before);
  }
  drawKeys(now, before);
  drawDatabases(now);
  drawMemory(now);
  drawClients(now);
  drawDisk(now);
  drawKeysInUse(now);
  drawSlow(now);
}

// The browser of keys. It asks when it is told to, and for a page at a time.

let browsed = []; // rows of what was found so far
let cursor = "0"; // where to go on
let looked = 0; // keys that were looked at
const pageKeys = () => (NARROW.matches ? 20 : 50); // a page more

/** Goes on until there is a page more or the last key was looked at; a request looks at a bounded number of keys. */
async function browse(isNew) {
  const [prefix, db] = [byId("browse-prefix").value, byId("browse-db").value];
  if (isNew) [browsed, cursor, looked] = [[], "0", 0];
  byId("browse-more").hidden = true;
  const goal = browsed.length + pageKeys();
  try {
    do {
      const query = new URLSearchParams({ db, prefix, cursor, count: pageKeys() });
      const response = await fetch(`/keys.json?${query}`, { cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (!response.ok) throw new Error(`${response.status} ${(await response.text()).trim()}`);
      const answer = await response.json();
      if (prefix !== byId("browse-prefix").value || db !== byId("browse-db").value) return; // asked for something else meanwhile
      browsed.push(...answer.keys);
      [cursor, looked] = [answer.cursor, looked + answer.looked];
      drawBrowsed();
    } while (cursor !== "0" && browsed.length < goal);
    byId("browse-more").hidden = cursor === "0";
  } catch (error) {
    set("browse-state", error instanceof TypeError || error.name === "TimeoutError" ? "no answer" : String(error.message));
  }
}

function drawBrowsed() {
  // A narrow screen has no room for the whole of the beginning that the server sends.
  const most = NARROW.matches ? 60 : 256;
  const rest = (text, shownBytes, all) => (text.length > most ? `${text.slice(0, most)}…` : all > shownBytes ? `${text}…` : text);
  const now_ms = answers.at(-1)?.server.now_ms ?? Date.now();
  fill("browser", browsed.map((one) => [
    ["code", rest(one.key, 256, one.key_bytes)], ["", one.type], ["n", bytes(one.bytes)], ["n", count(one.length)],
    ["n", one.expires_ms === null ? "never" : span((one.expires_ms - now_ms) / 1000)],
    ["code", one.on_disk ? "only on disk" : rest(one.preview, 128, one.length)],
  ]), cursor === "0" ? "No key begins so." : "Looking…");
  set("browse-state", `${count(browsed.length)} shown of ${count(looked)} looked at${cursor === "0" ? ", which are all" : ""}`);
}

/** Databases to choose from: those with keys, and the one that is chosen. */
function drawDatabases(now) {
  const select = byId("browse-db"), chosen = select.value || "0";
  const used = [...labelled(now, "ferrite_database_keys")].filter(([db, keys]) => keys > 0 || db === chosen).map(([db]) => db);
  const names = used.includes(chosen) ? used : [chosen, ...used];
  if (names.join() === [...select.options].map((option) => option.value).join()) return;
  select.replaceChildren(...names.map((db) => node("option", { value: db }, `db${db}`)));
  select.value = chosen;
}

// Asking.

/** What the server has kept, and behind it what this page has seen since. */
async function recall() {
  historyAt = performance.now();
  const response = await fetch("/history.json", { cache: "no-store", signal: AbortSignal.timeout(5000) });
  if (!response.ok) return;
  const { fields, fine, coarse } = await response.json();
  const read = ({ points }) => points.map((values) => {
    const one = Object.fromEntries(fields.map((name, at) => [name, values[at] ?? NaN]));
    return { ...one, at: one.at_ms };
  });
  const kept = read(fine), end = kept.at(-1)?.at ?? -Infinity;
  points = { fine: [...kept, ...points.fine.filter((one) => one.at > end)], coarse: read(coarse) };
}

function take(answer) {
  const last = answers.at(-1);
  const begun = (one) => `${one.server.run_id} ${one.server.threads}`;
  const wentBack = last && figure(answer, "ferrite_commands_processed_total") < figure(last, "ferrite_commands_processed_total");
  if (last && (begun(last) !== begun(answer) || wentBack)) { answers = []; points = { fine: [], coarse: [] }; historyAt = -Infinity; } // another run, or CONFIG RESETSTAT
  else if (last && answer.server.now_ms <= last.server.now_ms) return;
  const newest = points.fine.at(-1)?.at ?? -Infinity;
  // The history's last point may be later than the answer before.
  if (answers.length && answer.server.now_ms > newest + STEP_MS / 2) points.fine.push(point(answer, answers.at(-1)));
  answers.push(answer);
  const oldest = answer.server.now_ms - RANGES.fine.span_s * 1000;
  points.fine = points.fine.filter((one) => one.at >= oldest);
  answers = answers.slice(-WINDOW - 1);
}

async function ask() {
  try {
    const response = await fetch("/stats.json", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!response.ok) throw new Error(`${response.status} ${(await response.text()).trim()}`);
    take(await response.json());
    const isOld = performance.now() - historyAt > (range === "coarse" ? HISTORY_MS : Infinity);
    if (historyAt === -Infinity || isOld) await recall();
    draw();
  } catch (error) {
    state("bad", error instanceof TypeError || error.name === "TimeoutError" ? "no answer" : String(error.message));
  }
}

async function run() {
  for (;;) {
    const began = performance.now();
    if (!document.hidden) await ask();
    await new Promise((resolve) => setTimeout(resolve, Math.max(1000 - (performance.now() - began), 200)));
  }
}

for (const rank of ["operations", "bytes"]) {
  byId(`hot-${rank}`).addEventListener("click", () => {
    hotRank = rank;
    for (const other of ["operations", "bytes"]) byId(`hot-${other}`).setAttribute("aria-pressed", String(other === rank));
    if (answers.length) draw();
  });
}
for (const name of Object.keys(RANGES)) {
  byId(`range-${name}`).addEventListener("click", () => {
    range = name;
    historyAt = -Infinity;
    if (answers.length) draw();
  });
}
for (const id of ["chart-ops", "chart-latency"]) {
  const over = (event) => { pointer = event && { id, x: event.clientX - byId(id).getBoundingClientRect().left }; if (answers.length) drawCharts(); };
  byId(id).addEventListener("pointermove", over);
  byId(id).addEventListener("pointerdown", over);
  byId(id).addEventListener("pointerleave", () => over(null));
}
// A page that was hidden has asked for nothing: the history knows what it missed.
document.addEventListener("visibilitychange", () => { historyAt = -Infinity; });
byId("browse").addEventListener("submit", (event) => { event.preventDefault(); browse(true); });
byId("browse-more").addEventListener("click", () => browse(false));
// A link to the keys that begin with something: #keys=user: (decoded as the address bar has it).
if (location.hash.startsWith("#keys=")) {
  try { byId("browse-prefix").value = decodeURIComponent(location.hash.slice(6)); } catch { /* not an address of ours */ }
  browse(true);
}
addEventListener("resize", () => { if (answers.length) draw(); });
run();
