// Builds the page, and keeps filters, list and URL in sync.

function filter(change, go = true) {
  Object.assign(state, change);
  show();
  if (go) byId("changes").scrollIntoView({ block: "start" });
}

const LONG = 100; // a longer list scrolls in its own box, so that the sections below stay in reach

function show() {
  const rows = passing();
  byId("list").replaceChildren();
  byId("list").scrollTop = 0;
  const long = rows.length > LONG;
  byId("list").classList.toggle("long", long);
  lazily(byId("list"), rows.length, (i) => changeRow(rows[i]), long ? byId("list") : null);
  if (!rows.length) byId("list").append(el("p", { class: "nothing" },
    CHANGES.length ? "No change matches these filters." : "There are no changes."));
  byId("count").textContent = `${number.format(rows.length)} of ${plural(CHANGES.length, "change")}`;
  controls();
  chips();
  toHash();
}

function controls() {
  for (const tile of byId("tiles").children)
    tile.setAttribute("aria-pressed", String(state[tile.dataset.filter] === tile.dataset.value));
  if (byId("q").value !== state.q) byId("q").value = state.q;
  for (const name of FILTERS) {
    const select = byId(`f-${name}`);
    select.selectedIndex = state[name] === null ? 0 : select.values.indexOf(state[name]) + 1 || -1;
  }
}

function chips() {
  const chip = (text, change) => el("button", { type: "button", class: "chip", "aria-label": `Remove filter ${text}`,
    onclick: () => filter(change, false) }, el("span", {}, text), el("span", { "aria-hidden": "true" }, "×"));
  const found = FILTERS.filter((name) => state[name] !== null).map((name) => chip(state[name], { [name]: null }));
  if (state.q) found.push(chip(`“${state.q}”`, { q: "" }));
  if (found.length) found.push(el("button", { type: "button", class: "plain", id: "clear", onclick: () => {
    filter({ ...Object.fromEntries(FILTERS.map((name) => [name, null])), q: "" }, false);
    byId("q").focus();
  } }, "Clear all"));
  byId("chips").replaceChildren(...found);
}

/** Fills a filter with the values that the changes have, in the given order or the most frequent first. */
function choices(name, any, order = []) {
  const counts = counted(name);
  const place = (value) => (order.includes(value) ? order.indexOf(value) : order.length);
  const found = [...counts].sort(([a, m], [b, n]) => place(a) - place(b) || n - m);
  const select = byId(`f-${name}`);
  select.values = found.map(([value]) => value);
  select.replaceChildren(el("option", {}, any), ...found.map(([value, count]) => el("option", {}, `${value} · ${number.format(count)}`)));
  select.addEventListener("change", () =>
    filter({ [name]: select.selectedIndex ? select.values[select.selectedIndex - 1] : null }, false));
}

const RISKS = { blocked: "will not be applied", irreversible: "cannot be rolled back",
  destructive: "can lose records", disruptive: "moves data or affects brokers" };

/** Tiles of risks or unsuccessful statuses first, then of actions. */
function tiles() {
  const tile = (name, value, count, meaning) => el("button", { type: "button", class: `tile ${css(value)}${count ? "" : " none"}`,
    "aria-pressed": "false", "data-filter": name, "data-value": value,
    onclick: () => filter({ [name]: state[name] === value ? null : value }) },
    el("span", { class: "tile-name" }, value), el("span", { class: "tile-count" }, number.format(count)), el("span", { class: "tile-meaning" }, meaning));
  const [risks, actions, statuses] = [counted("risk"), counted("action"), counted("status")];
  const first = RUN ? WORST.filter((name) => statuses.get(name)).map((name) => tile("status", name, statuses.get(name), "changes with this result"))
    : Object.entries(RISKS).filter(([name]) => risks.get(name)).map(([name, meaning]) => tile("risk", name, risks.get(name), meaning));
  const rest = DATA.actions.filter(([name], at) => at < 3 || actions.get(name))
    .map(([name, meaning]) => tile("action", name, actions.get(name) ?? 0, meaning));
  byId("tiles").replaceChildren(...first, ...rest);
}

function facts() {
  byId("what").textContent = DATA.page;
  byId("headline").classList.toggle("quiet", DATA.quiet);
  byId("facts").replaceChildren(...DATA.facts.map(([name, text]) =>
    el("div", {}, el("dt", {}, name), name === "plan" ? copied(text, "Copy the id of the plan", 12) : el("dd", {}, text))));
  byId("foot").textContent = `kdeclare ${DATA.version}`;
  byId("l-status").hidden = !RUN;
}

// A printed page has all rows with their fields, and no scroll boxes.
const MOST_PRINTED = 300;

function print() {
  const rows = passing();
  const all = rows.length <= MOST_PRINTED;
  lazy.get(byId("list"))?.disconnect();
  byId("list").replaceChildren(...rows.map((row) => changeRow(row, all)));
  for (const id of ["times", "notes-list"]) byId(id).scrollTop = 0;
  if (RUN) times(RUN.bars.length);
}

function said(id, { items, left, others }, title) {
  byId(id).hidden = !items.length;
  byId(`${id}-title`).textContent = title(items.length + left);
  byId(`${id}-list`).replaceChildren(...items.map((item) => el("li", {}, el("span", { class: "risks" }, ...[item.tag, ...item.more].map(riskTag)),
    el("span", {}, item.title, item.resource === null ? "" : ": ", item.resource === null ? "" : named(item.resource),
      ...item.lines.map((line) => el("span", { class: "line" }, line))))),
    left ? el("li", {}, el("span", {}), el("span", { class: "dim" }, `and ${number.format(left)} more, see ${others}`)) : "");
}

const named = (resource) => (rowOf.has(resource)
  ? el("button", { type: "button", class: "plain", onclick: () => reveal(rowOf.get(resource)) }, resource) : el("b", {}, resource));

/** Shows only one change, expanded. */
function reveal(row) {
  opener = null;
  shut();
  state.open.add(row);
  filter({ ...Object.fromEntries(FILTERS.map((name) => [name, null])), kind: CHANGES.text(row, "kind"), q: CHANGES.text(row, "name") });
  byId("list").querySelector(`.toggle[data-row="${row}"]`)?.focus();
}

function start() {
  facts();
  tiles();
  said("risky", DATA.risky, (count) => (RUN ? `${number.format(count)} not done` : plural(count, "risk")));
  byId("risky").classList.toggle("alarm", DATA.risky.items.some((item) => item.tag !== "started"));
  said("notes", DATA.notes, (count) => plural(count, "note"));
  choices("kind", "All kinds");
  choices("action", "All actions", DATA.actions.map(([name]) => name));
  choices("risk", "All risks", ["blocked", ...DATA.risks]);
  choices("verb", "All operations");
  choices("status", "All results", WORST);
  byId("changes").hidden = false;
  byId("q").addEventListener("input", (event) => filter({ q: event.target.value }, false));
  shortcuts("changes");
  byId("list").addEventListener("click", (event) => {
    const line = event.target.closest(".change");
    if (line && !String(getSelection())) flip(Number(line.parentElement.dataset.row));
  });
  byId("close").addEventListener("click", shut);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") shut();
  });
  addEventListener("hashchange", () => {
    fromHash();
    show();
  });
  fromHash();
  times();
  graph();
  moves();
  show();
  jumps();
  addEventListener("beforeprint", print);
  addEventListener("afterprint", () => {
    times();
    show();
  });
}

start();
