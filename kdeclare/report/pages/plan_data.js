// The embedded plan, and the current state of the filters.

const CHANGES = new Rows(DATA.changes);
const FIELDS = new Rows(DATA.fields);
const OPERATIONS = new Rows(DATA.operations);
CHANGES.length = DATA.changes.kind.length; // the column "first" has one more element
const RUN = DATA.run;

const actionOf = (row) => DATA.actions[DATA.changes.action[row]][0];
const isBlocked = (row) => DATA.changes.blocked[row] >= 0;
/** A blocked change is not applied, so its other risks do not matter. */
const risksOf = (row) => (isBlocked(row) ? ["blocked"] : DATA.changes.risks[row].map((at) => DATA.risks[at]));
const statusName = (at) => (RUN.statuses[at] === "interrupted" ? "not started" : RUN.statuses[at]);
const css = (name) => `k-${name.replace(/\W/g, "-")}`;
const dot = (name) => el("span", { class: `dot ${css(name)}`, "aria-hidden": "true" });
const operationName = (op) => `${OPERATIONS.text(op, "verb")} ${OPERATIONS.resource(op)}`;

/** The operations of each change, and the followers of each operation. */
const operationsOf = CHANGES.length ? Array.from({ length: CHANGES.length }, () => []) : [];
DATA.operations.change.forEach((row, op) => row >= 0 && operationsOf[row].push(op));
const followers = Array.from({ length: OPERATIONS.length }, () => []);
DATA.after.forEach((before, op) => before.forEach((at, i) => i % 2 || followers[at].push(op)));

const verdictsOf = new Map();
DATA.verdicts.resource.forEach((at, i) => verdictsOf.set(at, [...(verdictsOf.get(at) ?? []), i]));
const rowOf = new Map(Array.from({ length: CHANGES.length }, (_, row) => [CHANGES.resource(row), row]));

// The results of operations, worst first. A change has the result of its worst operation.
const WORST = ["failed", "denied", "unknown", "stale", "skipped", "not started", "started", "done"];
const worst = (names) => WORST.find((name) => names.includes(name)) ?? null;
const statusOf = (ops) => (RUN ? worst(ops.map((op) => statusName(RUN.status[op]))) : null);

// The state of the filters; null if a filter is not set.
const state = { open: new Set(), q: "" };
const VALUES = {
  kind: (row) => [CHANGES.text(row, "kind")],
  action: (row) => (isBlocked(row) ? [] : [actionOf(row)]), // blocked changes count only as blocked, as in the headline
  risk: risksOf,
  verb: (row) => [...new Set(operationsOf[row].map((op) => OPERATIONS.text(op, "verb")))],
  status: (row) => [statusOf(operationsOf[row])].filter((name) => name !== null),
};
const FILTERS = Object.keys(VALUES);

function fromHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of FILTERS) state[name] = given.get(name);
  state.q = given.get("q") ?? "";
  state.open = new Set((given.get("open") ?? "").split(",").filter((row) => /^\d{1,9}$/.test(row)).map(Number));
}

function toHash() {
  const said = new URLSearchParams();
  for (const name of FILTERS) if (state[name] !== null) said.set(name, state[name]);
  if (state.q) said.set("q", state.q);
  if (state.open.size) said.set("open", [...state.open].join(","));
  const hash = said.toString();
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", `#${hash}`);
}

const fieldsOf = (row) => {
  const [from, to] = [DATA.changes.first[row], DATA.changes.first[row + 1]];
  return Array.from({ length: to - from }, (_, i) => from + i);
};

const texts = new Array(CHANGES.length);
/** The text of a change in which the text filter searches. It is built on first use. */
function haystack(row) {
  texts[row] ??= [CHANGES.resource(row), CHANGES.text(row, "why"), CHANGES.text(row, "source"), CHANGES.text(row, "blocked"),
    CHANGES.text(row, "owner"), CHANGES.text(row, "description"),
    actionOf(row), ...risksOf(row), ...fieldsOf(row).flatMap((at) =>
      ["path", "op", "before", "after", "note", "cause"].map((column) => FIELDS.text(at, column)))]
    .filter((text) => text !== null).join("\n").toLowerCase();
  return texts[row];
}

function passing() {
  const wanted = FILTERS.filter((name) => state[name] !== null);
  const terms = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (let row = 0; row < CHANGES.length; row++) {
    if (!wanted.every((name) => VALUES[name](row).includes(state[name]))) continue;
    if (terms.every((term) => haystack(row).includes(term))) found.push(row);
  }
  return found;
}

/** The number of changes for each value of a filter. */
function counted(name) {
  const counts = new Map();
  for (let row = 0; row < CHANGES.length; row++)
    for (const value of VALUES[name](row)) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

const minutesOf = (seconds) => `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 3600 ? minutesOf(whole) : `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

const lazy = new WeakMap();
/**
 * Creates rows only when the user scrolls near them, so that thousands of rows do not slow down the page. Rows
 * are grouped into chunks. The browser does not render chunks that are out of sight. Chunks of only one row
 * would be slower than rendering all rows. root: the scrolling element; null for the window.
 */
function lazily(list, count, make, root = null, chunk = 100) {
  lazy.get(list)?.disconnect();
  let made = 0;
  const end = el("div", { class: "sentinel", "aria-hidden": "true" });
  const more = () => {
    const rows = Array.from({ length: Math.min(chunk, count - made) }, (_, i) => make(made + i));
    made += rows.length;
    if (rows.length) end.before(el(rows[0].tagName === "LI" ? "ul" : "div", { class: "chunk" }, ...rows));
    if (made === count) {
      watch.disconnect();
      end.remove();
    } else {
      watch.unobserve(end); // observe again: while the end stays in view, there is no other event
      watch.observe(end);
    }
  };
  const watch = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && more(), { root, rootMargin: "1200px" });
  lazy.set(list, watch);
  list.append(end);
  more();
}
