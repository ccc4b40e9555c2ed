// The graph of operations, and the drawer with the details of one operation.

const [WIDE, HIGH, LINE, BETWEEN, BELOW, HEAD] = [204, 46, 15, 58, 12, 22];
const PER_LINE = 30; // characters

/** Splits a text into lines that fit into a node, after punctuation where possible. */
function linesOf(text) {
  const lines = [];
  for (let rest = text; rest;) {
    const cut = rest.length <= PER_LINE ? rest.length : rest.slice(0, PER_LINE).search(/[^/._ -]*$/) || PER_LINE;
    lines.push(rest.slice(0, cut));
    rest = rest.slice(cut);
  }
  return lines;
}

/** What the operations of a node are about, in lines. */
function subjectOf(at) {
  const members = DATA.graph.members[at];
  const status = statusOf(members);
  if (members.length === 1) return linesOf(OPERATIONS.resource(members[0]));
  const kind = DATA.strings[DATA.graph.nodes[at][3]];
  return linesOf(status && status !== "done" ? `${kind}, ${status}` : kind);
}

const nodeHeight = (nodes) => HIGH + LINE * (Math.max(1, ...nodes.map((at) => subjectOf(at).length)) - 1);

function node(at, high) {
  const [, , verb, kind, critical] = DATA.graph.nodes[at];
  const members = DATA.graph.members[at];
  const [said, of] = [DATA.strings[verb], members.length > 1 ? DATA.strings[kind] : OPERATIONS.resource(members[0])];
  const count = members.length > 1 ? number.format(members.length) : "";
  const status = statusOf(members);
  const title = [said, count ? `${plural(members.length, "operation")} on ${of}` : `on ${of}`, critical ? "critical path" : "",
    status && status !== "done" ? `result: ${status}` : ""].filter(Boolean).join(", ");
  const drawn = el("g", { class: `node ${critical ? "critical" : ""} ${status ? css(status) : ""}`, role: "button", tabindex: "-1",
    "aria-label": title, "aria-haspopup": "dialog", "data-node": at, onclick: (event) => open(event.currentTarget),
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open(event.currentTarget);
    } }, el("title", {}, title),
    el("rect", { class: "box", width: WIDE, height: high, rx: 7 }), el("rect", { class: "mark", width: 4, height: high, rx: 2 }),
    el("text", { x: 13, y: 19 }, said),
    ...subjectOf(at).map((line, i) => el("text", { class: "of", x: 13, y: 36 + LINE * i }, line)),
    count ? el("text", { class: "count", x: WIDE - 10, y: 19, "text-anchor": "end" }, `× ${count}`) : "");
  const open = (from) => (members.length > 1 ? tellOf(`${said} × ${count}`, members, from) : tell(members[0], from));
  return drawn;
}

/** Whether each node has no dependency, so that its operations can run at any time. */
function isolated() {
  const joined = new Set(DATA.graph.edges.flatMap(([a, b]) => [a, b]));
  return DATA.graph.nodes.map((one, at) => !joined.has(at) && !one[4]);
}

function graph() {
  byId("graph-panel").hidden = !DATA.graph.nodes.length;
  if (!DATA.graph.nodes.length) return;
  const alone = isolated();
  const last = DATA.graph.columns.at(-1)[1];
  byId("graph-note").textContent = `${plural(OPERATIONS.length, "operation")} in ${plural(last, "step")}`;
  const { critical } = DATA.graph;
  byId("critical").hidden = !critical.length;
  byId("critical").textContent = `critical path: ${plural(critical.length, "operation")}`;
  byId("critical").addEventListener("click", (event) => tellOf("Critical path", critical, event.currentTarget));
  path(critical);
  byId("graph").hidden = alone.every(Boolean);
  if (!byId("graph").hidden) drawGraph(alone);
  apart(alone);
}

const MOST_ON_PATH = 20;

/** The critical path as a list that wraps, with the first operations and the last one. */
function path(critical) {
  const shown = critical.length <= MOST_ON_PATH ? critical : [...critical.slice(0, MOST_ON_PATH - 1), critical.at(-1)];
  const items = shown.map((op) => el("li", {}, operationButton(op)));
  const left = critical.length - shown.length;
  if (left) items.splice(-1, 0, el("li", {}, el("button", { type: "button", class: "plain",
    onclick: (event) => tellOf("Critical path", critical, event.currentTarget) }, `${number.format(left)} more`)));
  byId("path").hidden = !items.length;
  byId("path").replaceChildren(...items);
}

/** The operations without dependencies, folded unless one of them failed. */
function apart(alone) {
  const nodes = alone.flatMap((is, at) => (is ? [at] : []));
  const ops = nodes.flatMap((at) => DATA.graph.members[at]);
  byId("apart").hidden = !nodes.length;
  byId("apart").open = byId("graph").hidden || nodes.some((at) => ![null, "done"].includes(statusOf(DATA.graph.members[at])));
  byId("apart").querySelector("summary").textContent = `${plural(ops.length, "operation")} without dependencies`;
  const size = nodeHeight(nodes) + BELOW;
  const columns = Math.max(1, Math.floor((byId("graph-panel").clientWidth - 30) / (WIDE + BELOW)));
  const drawn = nodes.map((at, i) => {
    const made = node(at, size - BELOW);
    made.setAttribute("transform", `translate(${2 + (i % columns) * (WIDE + BELOW)} ${2 + Math.floor(i / columns) * size})`);
    made.setAttribute("tabindex", "0");
    return made;
  });
  const [width, height] = [Math.min(columns, nodes.length) * (WIDE + BELOW), Math.ceil(nodes.length / columns) * size + 4];
  byId("apart").querySelector("div").replaceChildren(nodes.length ? el("svg", { width, height, viewBox: `0 0 ${width} ${height}`,
    role: "group", "aria-label": "Operations without dependencies" }, ...drawn) : "");
}

/** Draws the operations with dependencies, one column per step. */
function drawGraph(alone) {
  const { nodes, edges, columns } = DATA.graph;
  const members = columns.map((_, column) => nodes.flatMap((one, at) => (one[0] === column && !alone[at] ? [at] : [])));
  const high = nodeHeight(members.flat());
  const most = Math.max(...members.map((all) => all.length));
  const [width, height] = [columns.length * (WIDE + BETWEEN) - BETWEEN + 4, HEAD + most * (high + BELOW)];
  const x = (at) => 2 + nodes[at][0] * (WIDE + BETWEEN);
  const y = (at) => {
    const column = members[nodes[at][0]];
    return HEAD + (column.indexOf(at) + (most - column.length) / 2) * (high + BELOW);
  };
  const steps = columns.map(([first, last], column) => el("text", { class: "step", x: 2 + column * (WIDE + BETWEEN), y: 12 },
    first === last ? `step ${number.format(first)}` : `steps ${number.format(first)}–${number.format(last)}`));
  const paths = edges.toSorted((a, b) => a[3] - b[3]).map(([a, b, count, critical]) => {
    const [x1, y1, y2] = [x(a) + WIDE, y(a) + high / 2, y(b) + high / 2];
    const beside = nodes[a][0] === nodes[b][0]; // steps that share a column
    const x2 = beside ? x1 : x(b);
    const bend = beside ? 34 : (x2 - x1) / 2;
    return el("path", { class: `edge ${critical ? "critical" : ""}`, "stroke-width": Math.min(5, 1.4 + Math.log10(count)).toFixed(1),
      d: `M${x1} ${y1}C${x1 + bend} ${y1} ${beside ? x2 + bend : x2 - bend} ${y2} ${x2} ${y2}` });
  });
  const drawn = new Map(members.flat().map((at) => {
    const made = node(at, high);
    made.setAttribute("transform", `translate(${x(at)} ${y(at)})`);
    return [at, made];
  }));
  byId("graph").replaceChildren(el("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group",
    "aria-label": "Operations by step; use the arrow keys to move, Enter for details",
    onkeydown: (event) => step(event, drawn, members, y) }, ...steps, ...paths, ...drawn.values()));
  [...drawn.values()][0].setAttribute("tabindex", "0");
}

/** Arrow keys move within a column, or to the nearest node of the next column. Only one node is in the tab order. */
function step(event, drawn, members, y) {
  const way = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
  if (!way || event.target.dataset.node === undefined) return;
  event.preventDefault();
  const at = Number(event.target.dataset.node);
  const column = DATA.graph.nodes[at][0];
  const found = (members[column + way[0]] ?? []).filter((other) =>
    way[0] || members[column].indexOf(other) === members[column].indexOf(at) + way[1]);
  if (!found.length) return;
  const next = found.reduce((best, other) => (Math.abs(y(other) - y(at)) < Math.abs(y(best) - y(at)) ? other : best));
  drawn.get(at).setAttribute("tabindex", "-1");
  drawn.get(next).setAttribute("tabindex", "0");
  drawn.get(next).focus();
}

// The drawer. When the drawer is closed, the element that opened it gets the focus again.
let opener = null;

function draw(title, from, ...content) {
  if (from && !byId("drawer").contains(from)) opener = from;
  byId("drawer-title").textContent = title;
  byId("drawer-body").replaceChildren(...content);
  byId("drawer").hidden = false;
  byId("drawer").scrollTop = 0;
  byId("drawer").focus();
}

function shut() {
  if (byId("drawer").hidden) return;
  byId("drawer").hidden = true;
  byId("drawer-body").replaceChildren();
  opener?.focus();
  opener = null;
}

const operationButton = (op) => el("button", { type: "button", class: "plain", "data-operation": op,
  onclick: (event) => tell(op, event.currentTarget) }, operationName(op));

/** Several operations, in the order of the plan. */
function tellOf(title, ops, from) {
  const list = el("div");
  draw(title, from, list);
  lazily(list, ops.length, (i) => el("li", {}, operationButton(ops[i]), ...ended(ops[i])), byId("drawer"));
}

/** One operation: its predecessors with the reasons, and its followers. */
function tell(op, from) {
  const before = DATA.after[op].filter((_, i) => i % 2 === 0).map((at, i) => [at, DATA.strings[DATA.after[op][2 * i + 1]]]);
  const row = DATA.operations.change[op];
  const list = (title, items) => {
    const made = el("div");
    if (items.length) lazily(made, items.length, (i) => el("li", {}, operationButton(items[i][0]), el("span", { class: "line" }, items[i][1])), byId("drawer"));
    return items.length ? [el("h3", {}, title), made] : [];
  };
  const lost = OPERATIONS.text(op, "irreversible");
  const cause = RUN && RUN.cause[op] >= 0 ? el("p", {}, "because of ", operationButton(RUN.cause[op])) : "";
  draw(operationName(op), from, el("p", {}, ...ended(op)), cause,
    lost ? el("p", {}, el("b", { class: "tag k-irreversible" }, "irreversible: "), lost) : "",
    row >= 0 ? el("p", {}, el("button", { type: "button", class: "plain", onclick: () => reveal(row) }, "Show the change")) : "",
    ...list("Runs after", before),
    ...list("Runs before", followers[op].map((at) => [at, ""])),
    before.length || followers[op].length ? "" : el("p", { class: "dim" }, "This operation has no dependencies and no dependents."));
}
