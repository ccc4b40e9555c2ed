// The embedded audit, and the current state of the filters.

const KINDS = DATA.kinds.map(([name, meaning]) => ({ name, meaning }));

/** Findings by column, with the index of their kind. */
class Findings extends Rows {
  kind(row) {
    return this.columns.finding[row];
  }
}

const FOUND = new Findings(DATA.rows);
const FIXED = new Findings(DATA.mended);
const NO_TEAM = "(no team)";
const WHOLE = "(whole resource)";

/** The name of a field. For a config, this is Kafka's config key. */
const keyOf = (path) => (path === null || path === "" ? WHOLE : path.replace(/^configs\./, ""));

function age(iso) {
  const hours = Math.max(0, (Date.parse(DATA.taken) - Date.parse(iso)) / 3.6e6);
  if (hours < 1) return "now";
  return hours < 48 ? `${Math.floor(hours)} h` : `${number.format(Math.floor(hours / 24))} d`;
}

const minutes = (iso) => iso.slice(0, 16).replace("T", " ") + "Z";

// The state of the filters. severity, cluster, team, key and status: null if the filter is not set; "" is a valid value.
const state = {};
const FILTERS = ["severity", "cluster", "team", "key", "status"];
const COLUMN_OF = { severity: "severity", cluster: "cluster", team: "team", key: "path", status: "status" };

function fromHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  const kinds = (given.get("kind") ?? "").split(",");
  state.kinds = new Set(KINDS.flatMap((kind, at) => (kinds.includes(kind.name) ? [at] : [])));
  for (const name of FILTERS) state[name] = given.get(name);
  state.q = given.get("q") ?? "";
  state.sort = SORTS.some((column) => column.id === given.get("sort")) ? given.get("sort") : null;
  state.down = given.get("dir") === "desc";
  state.page = Math.max(0, (Number.parseInt(given.get("page") ?? "1", 10) || 1) - 1);
  state.open = new Set((given.get("open") ?? "").split(",").filter((row) => /^\d+$/.test(row)).map(Number));
}

function toHash() {
  const said = new URLSearchParams();
  if (state.kinds.size) said.set("kind", [...state.kinds].sort().map((at) => KINDS[at].name).join(","));
  for (const name of FILTERS) if (state[name] !== null) said.set(name, state[name]);
  if (state.q) said.set("q", state.q);
  if (state.sort) said.set("sort", state.sort);
  if (state.sort && state.down) said.set("dir", "desc");
  if (state.page) said.set("page", state.page + 1);
  if (state.open.size) said.set("open", [...state.open].join(","));
  const hash = said.toString();
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", `#${hash}`);
}

let texts = null;
/** The text of a finding in which the text filter searches. It is built on first use. */
function haystack(row) {
  texts ??= new Array(FOUND.length);
  texts[row] ??= ["cluster", "kind", "name", "path", "was", "will", "op", "team", "message", "labels", "severity", "source", "id"]
    .map((column) => FOUND.text(row, column) ?? "")
    .concat(FOUND.resource(row), KINDS[FOUND.kind(row)].name)
    .join("\n")
    .toLowerCase();
  return texts[row];
}

/** The rows that match all filters, in the order of the data. */
function passing() {
  const wanted = FILTERS.filter((name) => state[name] !== null).map((name) => {
    const at = DATA.strings.indexOf(state[name]);
    const place = name === "key" && state.key === "" ? -1 : at < 0 ? NaN : at;
    return [FOUND.columns[COLUMN_OF[name]], place];
  });
  const terms = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (let row = 0; row < FOUND.length; row++) {
    if (state.kinds.size && !state.kinds.has(FOUND.kind(row))) continue;
    if (!wanted.every(([column, at]) => column[row] === at)) continue;
    if (!terms.every((term) => haystack(row).includes(term))) continue;
    found.push(row);
  }
  return found;
}

let ranks = null;
/** The rank of every string in natural order: numbers by size, names regardless of case. */
function rankOf(at) {
  if (ranks === null) {
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    const order = DATA.strings.map((_, place) => place).sort((a, b) => compare(DATA.strings[a], DATA.strings[b]));
    ranks = new Int32Array(order.length);
    order.forEach((place, rank) => (ranks[place] = rank));
  }
  return at < 0 ? -1 : ranks[at];
}

function sorted(rows) {
  const sort = SORTS.find((column) => column.id === state.sort);
  if (!sort) return rows;
  const keys = sort.columns.map((name) => FOUND.columns[name]);
  const rank = sort.id === "finding" ? (at) => at : rankOf;
  const sign = state.down ? -1 : 1;
  return rows.sort((a, b) => {
    for (const key of keys) {
      const order = rank(key[a]) - rank(key[b]);
      if (order) return order * sign;
    }
    return a - b;
  });
}
