// The graph of operations, and the drawer with the details of one operation.

const [WIDE, HIGH, BETWEEN, BELOW, HEAD] = [204, 46, 58, 12, 22];

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function node(at) {
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
    el("rect", { class: "box", width: WIDE, height: HIGH, rx: 7 }), el("rect", { class: "mark", width: 4, height: HIGH, rx: 2 }),
    el("text", { x: 13, y: 19 }, cut(said, count ? 20 : 27)),
    el("text", { class: "of", x: 13, y: 36 }, cut(count && status && status !== "done" ? `${of}, ${status}` : of, 30)),
    count ? el("text", { class: "count", x: WIDE - 10, y: 19, "text-anchor": "end" }, `× ${count}`) : "");
  const open = (from) => (members.length > 1 ? tellOf(`${said} × ${count}`, members, from) : tell(members[0], from));
  return drawn;
}

function graph() {
  const { nodes, edges, columns } = DATA.graph;
  byId("graph-panel").hidden = !nodes.length;
  if (!nodes.length) return;
  const heights = columns.map((_, column) => nodes.filter((one) => one[0] === column).length);
  const most = Math.max(...heights);
  const [width, height] = [columns.length * (WIDE + BETWEEN) - BETWEEN + 4, HEAD + most * (HIGH + BELOW)];
  const x = (at) => 2 + nodes[at][0] * (WIDE + BETWEEN);
  const y = (at) => HEAD + (nodes[at][1] + (most - heights[nodes[at][0]]) / 2) * (HIGH + BELOW);
  const steps = columns.map(([first, last], column) => el("text", { class: "step", x: 2 + column * (WIDE + BETWEEN), y: 12 },
    first === last ? `step ${number.format(first)}` : `steps ${number.format(first)}–${number.format(last)}`));
  const paths = edges.toSorted((a, b) => a[3] - b[3]).map(([a, b, count, critical]) => {
    const [x1, y1, y2] = [x(a) + WIDE, y(a) + HIGH / 2, y(b) + HIGH / 2];
    const beside = nodes[a][0] === nodes[b][0]; // steps that share a column
    const x2 = beside ? x1 : x(b);
    const bend = beside ? 34 : (x2 - x1) / 2;
    return el("path", { class: `edge ${critical ? "critical" : ""}`, "stroke-width": Math.min(5, 1.4 + Math.log10(count)).toFixed(1),
      d: `M${x1} ${y1}C${x1 + bend} ${y1} ${beside ? x2 + bend : x2 - bend} ${y2} ${x2} ${y2}` });
  });
  const drawn = nodes.map((one, at) => {
    const made = node(at);
    made.setAttribute("transform", `translate(${x(at)} ${y(at)})`);
    return made;
  });
  byId("graph").replaceChildren(el("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group",
    "aria-label": "Operations by step; use the arrow keys to move, Enter for details",
    onkeydown: (event) => step(event, drawn, y) }, ...steps, ...paths, ...drawn));
  drawn[0].setAttribute("tabindex", "0");
  const last = columns.at(-1)[1];
  byId("graph-note").textContent = `${plural(OPERATIONS.length, "operation")} in ${plural(last, "step")}`;
  const { critical } = DATA.graph;
  byId("critical").hidden = !critical.length;
  byId("critical").textContent = `critical path: ${plural(critical.length, "operation")}`;
  byId("critical").addEventListener("click", (event) => tellOf("Critical path", critical, event.currentTarget));
}

/** Arrow keys move within a column, or to the nearest node of the next column. Only one node is in the tab order. */
function step(event, drawn, y) {
  const way = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
  const at = drawn.indexOf(event.target);
  if (!way || at < 0) return;
  event.preventDefault();
  const [column, row] = DATA.graph.nodes[at];
  const found = drawn.map((_, other) => other).filter((other) => {
    const [c, r] = DATA.graph.nodes[other];
    return c === column + way[0] && (way[0] || r === row + way[1]);
  });
  if (!found.length) return;
  const next = found.reduce((best, other) => (Math.abs(y(other) - y(at)) < Math.abs(y(best) - y(at)) ? other : best));
  drawn[at].setAttribute("tabindex", "-1");
  drawn[next].setAttribute("tabindex", "0");
  drawn[next].focus();
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
