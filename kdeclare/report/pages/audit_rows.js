// The list of findings: its header, its rows, and the details of a row.

const PAGE = 100;
const SORTS = [
  { id: "finding", title: "Finding", columns: ["finding", "cluster", "name"] },
  { id: "cluster", title: "Cluster", columns: ["cluster", "name", "path"] },
  { id: "resource", title: "Resource", columns: ["kind", "name", "path"] },
  { id: "field", title: "Field", columns: ["path", "name"] },
  { id: "before", title: "Live", columns: ["was"] },
  { id: "after", title: "Declared", columns: ["will"] },
  { id: "op", title: "Fixed by", columns: ["op"] },
  { id: "team", title: "Team", columns: ["team", "cluster"] },
  { id: "seen", title: "Age", columns: ["first"] },
];

function sortBy(id, down) {
  state.sort = id;
  state.down = down;
  state.page = 0;
  show();
}

function header() {
  byId("head").replaceChildren(...SORTS.map((column) => {
    const on = state.sort === column.id;
    return el("th", { scope: "col", class: `c-${column.id}`, "aria-sort": on ? (state.down ? "descending" : "ascending") : "none" },
      el("button", { type: "button", "data-sort": column.id, onclick: () => {
        sortBy(column.id, on && !state.down);
        byId("head").querySelector(`[data-sort="${column.id}"]`).focus();
      } }, column.title, el("span", { class: "arrow", "aria-hidden": "true" }, on ? (state.down ? "▼" : "▲") : "")));
  }));
}

function summaryRow(row) {
  const at = FOUND.kind(row);
  const open = state.open.has(row);
  const cell = (id, title, ...content) => el("td", { class: `c-${id}`, "data-title": title }, ...content);
  const clipped = (text, css = "") => el("span", { class: `clip ${css}`, title: text }, text);
  const path = FOUND.text(row, "path");
  const seen = FOUND.text(row, "first");
  const toggle = el("button", { type: "button", class: "toggle", "aria-expanded": String(open), "data-row": row,
    "aria-label": `${KINDS[at].name}: ${FOUND.resource(row)} in ${FOUND.text(row, "cluster")}, ${keyOf(path)}` },
    el("span", { class: "chevron", "aria-hidden": "true" }), dot(at), KINDS[at].name);
  const isNew = FOUND.text(row, "status") === "new";
  return el("tr", { class: `finding${open ? " open" : ""}`, "data-row": row },
    cell("finding", "", toggle, severityTag(row), isNew ? el("span", { class: "new" }, "new") : ""),
    cell("cluster", "Cluster", clipped(FOUND.text(row, "cluster"))),
    cell("resource", "", el("span", { class: "clip", title: FOUND.resource(row) },
      el("span", { class: "of" }, `${FOUND.text(row, "kind")}/`), FOUND.text(row, "name"))),
    cell("field", "Field", path === null ? el("span", { class: "dim" }, "whole") : clipped(keyOf(path))),
    cell("before", "Live", clipped(FOUND.text(row, "was") ?? "", "value")),
    cell("after", "Declared", clipped(FOUND.text(row, "will") ?? "", "value")),
    cell("op", "Fixed by", FOUND.text(row, "op") ?? ""),
    cell("team", "Team", clipped(FOUND.text(row, "team") || "")),
    cell("seen", "Age", el("time", { datetime: seen, title: minutes(seen) }, age(seen))));
}

/** The severity of a finding, unless it is low. */
function severityTag(row) {
  const severity = FOUND.text(row, "severity");
  return severity === "low" ? "" : el("span", { class: `severity ${severity}` }, severity);
}

function flip(row) {
  if (!state.open.delete(row)) state.open.add(row);
  const line = byId("body").querySelector(`tr.finding[data-row="${row}"]`);
  const open = state.open.has(row);
  line.classList.toggle("open", open);
  line.querySelector(".toggle").setAttribute("aria-expanded", String(open));
  if (open) line.after(detailRow(row));
  else line.nextElementSibling.remove();
  toHash();
}

/** JSON with indentation; plain text unchanged. */
function pretty(json) {
  if (json === null) return null;
  const value = JSON.parse(json);
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** The position of a manifest, as a link if the fleet file has a template for links. */
function manifest(source, url) {
  if (source === null) return "none";
  return url === null ? source : el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, source);
}

function detailRow(row) {
  const text = (column) => FOUND.text(row, column);
  const [before, after] = [pretty(text("before")), pretty(text("after"))];
  const sides = differing(before ?? "", after ?? "");
  const side = (title, value, parts, mark, reading) => el("div", { class: "side" },
    el("h3", {}, title),
    value === null ? el("p", { class: "dim" }, text("path") === null ? "does not exist" : "not set") : el("pre", { tabindex: "0", "aria-label": title },
      ...parts.map(([part, other]) => (other && before !== null && after !== null ? el(mark, {}, part) : part))),
    value !== null && reading && reading !== value && !value.includes("\n") ? el("p", { class: "dim" }, reading) : "");
  const labels = Object.entries(JSON.parse(text("labels") ?? "{}"));
  const facts = [
    ["Cluster", text("cluster")], ["Resource", FOUND.resource(row)], ["Field", keyOf(text("path"))],
    ["Severity", text("severity")], ["Manifest", manifest(text("source"), text("url"))],
    ["Fixed by", text("op") ?? "not fixed by an apply"],
    ["First seen", `${minutes(text("first"))} (${age(text("first"))}), ${text("status")}`],
    ["Id", el("code", {}, text("id"))],
    ["Labels", labels.length ? el("span", { class: "labels" }, ...labels.map(([k, v]) => el("code", {}, `${k}=${v}`))) : "none"],
  ];
  const one = (title, change) => el("button", { type: "button", class: "plain", onclick: () => filter(change, false) }, title);
  const values = before === null && after === null ? "" : el("div", { class: "sides" },
    side("Live", before, sides.before, "del", text("was")),
    side("Declared", after, sides.after, "ins", text("will")));
  return el("tr", { class: "detail" }, el("td", { colspan: SORTS.length },
    text("message") ? el("p", { class: "message" }, text("message")) : "", values,
    el("dl", {}, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    el("p", { class: "more" }, one("Only this cluster", { cluster: text("cluster") }),
      one("Only this field", { key: text("path") ?? "" }), one(`Only ${text("name")}`, { q: text("name") }))));
}
