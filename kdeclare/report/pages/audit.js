// Builds the page, and keeps filters, list and URL in sync.

function filter(change, go = true) {
  Object.assign(state, change);
  state.page = 0;
  show();
  if (go) byId("findings").scrollIntoView({ block: "start" });
}

function toggleKind(at) {
  if (!state.kinds.delete(at)) state.kinds.add(at);
  filter({}, false);
}

function show() {
  const rows = sorted(passing());
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  state.page = Math.min(state.page, pages - 1);
  const shown = rows.slice(state.page * PAGE, (state.page + 1) * PAGE);
  header();
  byId("body").replaceChildren(...shown.flatMap((row) => (state.open.has(row) ? [summaryRow(row), detailRow(row)] : [summaryRow(row)])));
  if (!rows.length) byId("body").append(el("tr", { class: "nothing" }, el("td", { colspan: SORTS.length },
    FOUND.length ? "No finding matches these filters." : "There are no findings.")));
  const total = FOUND.length + DATA.left;
  const left = DATA.left ? `; this page has the worst ${number.format(FOUND.length)} of ${number.format(total)}` : "";
  byId("count").textContent = `${number.format(rows.length)} of ${plural(FOUND.length, "finding")}${left}`;
  pager(rows.length, pages);
  controls();
  chips();
  markHeat();
  trend();
  toHash();
}

function pager(count, pages) {
  const from = state.page * PAGE + 1;
  const go = (page) => {
    state.page = page;
    show();
    byId("findings").scrollIntoView({ block: "start" });
  };
  const button = (title, page, off) => el("button", { type: "button", disabled: off, onclick: () => go(page) }, title);
  byId("pager").replaceChildren(...(pages < 2 ? [] : [
    button("First", 0, !state.page), button("Previous", state.page - 1, !state.page),
    el("span", {}, `${number.format(from)}–${number.format(Math.min(count, from + PAGE - 1))} of ${number.format(count)}`),
    button("Next", state.page + 1, state.page === pages - 1), button("Last", pages - 1, state.page === pages - 1),
  ]));
}

function controls() {
  for (const tile of byId("tiles").children) {
    const on = state.kinds.has(KINDS.findIndex((kind) => kind.name === tile.dataset.kind));
    tile.setAttribute("aria-pressed", String(on));
  }
  for (const button of byId("teams").querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(button.dataset.team === state.team));
  if (byId("q").value !== state.q) byId("q").value = state.q;
  for (const name of FILTERS) {
    const select = byId(`f-${name}`);
    const at = state[name] === null ? 0 : select.names.indexOf(state[name]) + 1;
    select.selectedIndex = at || (state[name] === null ? 0 : -1);
  }
  byId("f-sort").value = state.sort ? `${state.sort} ${state.down ? "desc" : "asc"}` : "";
}

function chips() {
  const chip = (text, change) => el("button", { type: "button", class: "chip", "aria-label": `Remove filter ${text}`,
    onclick: () => filter(change, false) }, el("span", {}, text), el("span", { "aria-hidden": "true" }, "×"));
  const found = [...state.kinds].sort().map((at) =>
    chip(KINDS[at].name, { kinds: new Set([...state.kinds].filter((other) => other !== at)) }));
  const said = { severity: (v) => `severity ${v}`, cluster: (v) => v, team: (v) => `team ${v || NO_TEAM}`, key: keyOf, status: (v) => v };
  for (const name of FILTERS) if (state[name] !== null) found.push(chip(said[name](state[name]), { [name]: null }));
  if (state.q) found.push(chip(`“${state.q}”`, { q: "" }));
  if (found.length) found.push(el("button", { type: "button", class: "plain", id: "clear", onclick: clear }, "Clear all"));
  byId("chips").replaceChildren(...found);
}

function clear() {
  filter({ kinds: new Set(), severity: null, cluster: null, team: null, key: null, status: null, q: "" }, false);
  byId("q").focus();
}

/** Fills a filter with the values that the findings have, by name or the most frequent first. */
function choices(name, any, title, byCount = false) {
  const counts = new Map();
  for (const at of FOUND.columns[COLUMN_OF[name]]) counts.set(at, (counts.get(at) ?? 0) + 1);
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const found = [...counts].map(([at, count]) => ({ name: at < 0 ? "" : DATA.strings[at], count }));
  found.sort((a, b) => (byCount && b.count - a.count) || compare(a.name, b.name));
  const select = byId(`f-${name}`);
  select.names = found.map((one) => one.name);
  select.replaceChildren(el("option", {}, any),
    ...found.map((one) => el("option", {}, `${title(one.name)} · ${number.format(one.count)}`)));
  select.addEventListener("change", () =>
    filter({ [name]: select.selectedIndex ? select.names[select.selectedIndex - 1] : null }, false));
}

function facts() {
  byId("facts").replaceChildren(...DATA.facts.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), name === "audit" ? copied(value, "Copy the id of the audit") : el("dd", {}, value))));
  byId("foot").textContent = `kdeclare ${DATA.version} · fleet ${DATA.fleet} · audit ${DATA.audit}`;
  const quiet = DATA.clusters.every((cluster) => cluster.error === null && !sum(cluster.found));
  byId("headline").classList.toggle("quiet", quiet);
  const since = DATA.since;
  if (!since) return;
  const button = (text, status) => el("button", { type: "button", class: "plain", onclick: () => filter({ status }) }, text);
  const fixed = `${number.format(since.mended)} fixed`;
  const passed = sum(DATA.unseen);
  const unseen = passed ? ` ${plural(passed, "earlier finding")} not checked again` : "";
  byId("since").hidden = false;
  byId("since").replaceChildren(`Since ${minutes(since.taken)} `, button(`${number.format(since.new)} new`, "new"), " ",
    button(`${number.format(since.known)} known`, "known"), " ",
    FIXED.length ? el("button", { type: "button", class: "plain", onclick: () => byId("fixed-panel").scrollIntoView() }, fixed) : fixed,
    unseen);
}

/** The severe findings: each with its field, its values and its message. A click shows the findings. */
function severe() {
  const { count, items, left } = DATA.severe;
  byId("severe").hidden = !count;
  byId("severe-title").textContent = plural(count, "severe finding");
  const all = { kinds: new Set(), severity: "high", cluster: null, team: null, key: null, status: null, q: "" };
  byId("severe-list").replaceChildren(...items.map((item) => {
    const kind = FOUND.kind(item.row);
    const one = item.count === 1 ? { cluster: FOUND.text(item.row, "cluster"), q: FOUND.text(item.row, "name") } : {};
    return el("li", {}, el("span", {}, el("span", { class: "tag" }, dot(kind), KINDS[kind].name),
      FOUND.text(item.row, "status") === "new" ? el("span", { class: "new" }, "new") : ""),
      el("span", {}, el("button", { type: "button", class: "plain", onclick: () => {
        if (item.count === 1) state.open.add(item.row);
        filter({ ...all, kinds: new Set([kind]), key: FOUND.text(item.row, "path") ?? "", ...one });
      } }, item.subject), ...item.lines.map((line) => el("span", { class: "line" }, line))));
  }), left ? el("li", {}, el("span", {}), el("button", { type: "button", class: "plain", onclick: () => filter(all) },
    `and ${plural(left, "more severe finding")}`)) : "");
}

// A printed page has the rows that match the filters, and their messages. Scroll boxes are open.
const MOST_PRINTED = 500;
const PRINT_WIDTH = 680; // of A4, in CSS pixels, without margins

function print() {
  const rows = sorted(passing());
  const printed = rows.slice(0, MOST_PRINTED).flatMap((row) => {
    const message = FOUND.text(row, "message");
    return [summaryRow(row), ...(message ? [el("tr", { class: "said" }, el("td", { colspan: SORTS.length }, message))] : [])];
  });
  const left = rows.length - MOST_PRINTED;
  byId("body").replaceChildren(...printed, left > 0
    ? el("tr", { class: "nothing" }, el("td", { colspan: SORTS.length }, `and ${plural(left, "more finding")}`)) : "");
  const table = byId("heat").firstElementChild;
  table.style.zoom = 1;
  table.style.zoom = Math.min(1, PRINT_WIDTH / table.scrollWidth);
}

function said(id, field, title) {
  const found = DATA.clusters.filter((cluster) => cluster[field] !== null);
  byId(id).hidden = !found.length;
  byId(`${id}-title`).textContent = title(plural(found.length, "cluster"));
  byId(`${id}-list`).replaceChildren(...found.map((cluster) =>
    el("li", {}, el("b", {}, cluster.name), el("span", {}, cluster[field]))));
}

function accepted() {
  byId("accepted").hidden = !DATA.accepted.length;
  byId("accepted-list").replaceChildren(...DATA.accepted.map(([name, text]) =>
    el("li", {}, el("b", {}, name), el("span", {}, text))));
}

function fixedFindings() {
  const count = DATA.since?.mended ?? FIXED.length;
  byId("fixed-panel").hidden = !FIXED.length;
  byId("fixed-note").textContent = `${number.format(FIXED.length)} of ${number.format(Math.max(count, FIXED.length))}`
    + (DATA.since ? ` since ${minutes(DATA.since.taken)}` : "");
  const rows = Array.from({ length: FIXED.length }, (_, row) => row);
  byId("fixed").replaceChildren(...rows.map((row) => el("li", {}, el("span", { class: "was" }, KINDS[FIXED.kind(row)].name),
    el("span", {}, FIXED.text(row, "cluster")), el("b", {}, FIXED.resource(row)), el("span", {}, keyOf(FIXED.text(row, "path"))))));
}

function start() {
  facts();
  tiles();
  severe();
  for (const id of ["findings", "overview"]) byId(id).hidden = false;
  said("unread", "error", (clusters) => `${clusters} not read, or only partially read`);
  said("untold", "notice", (clusters) => `Checks that could not be completed for ${clusters}`);
  teams();
  choices("severity", "All severities", (name) => name);
  choices("cluster", "All clusters", (name) => name);
  choices("team", "All teams", (name) => name || NO_TEAM);
  choices("key", "All fields", keyOf, true);
  choices("status", "New and known", (name) => name);
  byId("f-sort").replaceChildren(el("option", { value: "" }, "worst first"), ...SORTS.flatMap((column) =>
    [["asc", "▲"], ["desc", "▼"]].map(([way, sign]) => el("option", { value: `${column.id} ${way}` }, `${column.title} ${sign}`))));
  byId("f-sort").addEventListener("change", (event) => {
    const [id, way] = event.target.value.split(" ");
    sortBy(id || null, way === "desc");
  });
  byId("q").addEventListener("input", (event) => filter({ q: event.target.value }, false));
  shortcuts("findings");
  byId("body").addEventListener("click", (event) => {
    const line = event.target.closest("tr.finding");
    if (line && !String(getSelection())) flip(Number(line.dataset.row));
  });
  addEventListener("hashchange", () => {
    fromHash();
    show();
  });
  fromHash();
  heat();
  fixedFindings();
  accepted();
  show();
  jumps("main > section[id][aria-labelledby], #heat-panel");
  addEventListener("beforeprint", print);
  addEventListener("afterprint", () => {
    byId("heat").firstElementChild.style.zoom = 1;
    show();
  });
}

start();
