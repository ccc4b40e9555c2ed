// The list of changes: its rows, and the details of a row.

function gist(row) {
  const fields = fieldsOf(row);
  const said = fields.slice(0, 3).map((at) => {
    const sides = [FIELDS.text(at, "before"), FIELDS.text(at, "after")].filter((side) => side !== null);
    return `${FIELDS.text(at, "path")} ${sides.join(" → ")}`;
  });
  return said.join(" · ") + (fields.length > 3 ? ` · ${number.format(fields.length - 3)} more` : "");
}

function changeRow(row, open = state.open.has(row)) {
  const [action, risks, why] = [actionOf(row), risksOf(row), CHANGES.text(row, "why")];
  const status = statusOf(operationsOf[row]);
  const said = status === null ? action : `${action}: ${status}`;
  const toggle = el("button", { type: "button", class: "toggle", "aria-expanded": String(open), "data-row": row,
    "aria-label": `${CHANGES.resource(row)}, ${said}, ${risks.join(", ")}` },
    el("span", { class: "chevron", "aria-hidden": "true" }),
    el("span", { class: `icon ${css(action)}`, "aria-hidden": "true" }, CHANGES.text(row, "icon")),
    el("span", { class: "clip", title: CHANGES.resource(row) },
      el("span", { class: "of" }, `${CHANGES.text(row, "kind")}/`), CHANGES.text(row, "name")));
  const line = el("div", { class: "change" }, toggle,
    el("span", { class: "what" }, status === null ? "" : dot(status), said, why ? `, ${why}` : ""),
    el("span", { class: "risks" }, ...risks.filter((risk) => risk !== "safe").map(riskTag)),
    el("span", { class: "gist clip" }, gist(row)));
  return el("li", { class: open ? "row open" : "row", "data-row": row }, line, open ? detail(row) : "");
}

function flip(row) {
  if (!state.open.delete(row)) state.open.add(row);
  const line = byId("list").querySelector(`.row[data-row="${row}"]`);
  const open = state.open.has(row);
  line.classList.toggle("open", open);
  line.querySelector(".toggle").setAttribute("aria-expanded", String(open));
  if (open) line.append(detail(row));
  else line.querySelector(".detail").remove();
  toHash();
}

const riskTag = (risk) => el("span", { class: `tag ${css(risk)}` }, risk);

/** The risk of one field, and its cause. */
function fieldRisk(at) {
  const risk = DATA.risks[DATA.fields.risk[at]];
  return risk === "safe" ? "" : el("span", { class: "line" }, riskTag(risk), " ", FIELDS.text(at, "cause") ?? "");
}

function fieldRow(at) {
  const [before, after, note] = ["before", "after", "note"].map((column) => FIELDS.text(at, column));
  const cell = (title, text, parts, mark) => (text === null ? "" : el("td", { class: "value", "data-title": title },
    ...parts.map(([part, other]) => (other && before !== null && after !== null ? el(mark, {}, part) : part)),
    note !== null && mark === "ins" ? el("span", { class: "dim" }, ` (${note})`) : ""));
  const parts = differing(before ?? "", after ?? "");
  return el("tr", { class: note === "denied" ? "refused" : "" },
    el("td", { class: "c-path" }, FIELDS.text(at, "path"), fieldRisk(at)),
    el("td", { class: "c-op" }, FIELDS.text(at, "op") ?? ""),
    cell("before", before, parts.before, "del"), cell("after", after, parts.after, "ins"));
}

function fieldTable(row) {
  const fields = fieldsOf(row);
  if (!fields.length) return "";
  const sides = ["before", "after"].filter((side) => FIELDS.text(fields[0], side) !== null);
  const head = (css, text) => el("th", { scope: "col", class: css }, text);
  const title = { before: "Before", after: "After" };
  const body = el("tbody");
  const table = el("table", {}, el("thead", {}, el("tr", {}, head("c-path", "Field"), head("c-op", "Op"),
    ...sides.map((side) => head("", sides.length > 1 ? title[side] : "Value")))), body);
  const most = 200;
  const more = el("button", { type: "button", class: "plain", onclick: () => {
    body.append(...fields.slice(most).map(fieldRow));
    more.remove();
  } }, `Show ${plural(fields.length - most, "more field")}`);
  body.append(...fields.slice(0, most).map(fieldRow));
  return el("div", {}, table, fields.length > most ? more : "");
}

function detail(row) {
  const source = CHANGES.text(row, "source");
  const blocked = CHANGES.text(row, "blocked");
  const verdicts = verdictsOf.get(DATA.strings.indexOf(CHANGES.resource(row))) ?? [];
  const judged = verdicts.map((at) => el("p", {}, dot(DATA.strings[DATA.verdicts.judgement[at]]), DATA.strings[DATA.verdicts.text[at]]));
  const ops = operationsOf[row];
  const [owner, description] = [CHANGES.text(row, "owner"), CHANGES.text(row, "description")];
  return el("div", { class: "detail" }, blocked ? el("p", {}, el("b", {}, "blocked: "), blocked) : "",
    description ? el("p", {}, description) : "", owner ? el("p", {}, el("b", {}, "owner: "), owner) : "",
    fieldTable(row), ...judged,
    ops.length ? el("ul", { "aria-label": "Operations" }, ...ops.slice(0, 50).map((op) => el("li", {}, operationButton(op), ...ended(op)))) : "",
    ops.length > 50 ? el("p", { class: "dim" }, `and ${plural(ops.length - 50, "more operation")}`) : "",
    source ? el("p", { class: "dim" }, source) : "");
}

/** The result of an operation of a run. */
function ended(op) {
  if (!RUN) return [];
  const words = [RUN.error[op], RUN.message[op]].filter((at) => at >= 0).map((at) => DATA.strings[at]);
  const status = statusName(RUN.status[op]);
  return [el("span", {}, dot(status), status), words.length ? el("span", { class: "line" }, words.join(": ")) : ""];
}
