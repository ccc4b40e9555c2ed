// Replicas by broker and rack, before and after.

const SIDES = ["before", "after", "difference"];
const held = { side: "difference", by: "broker" };

/** Columns of the heat map: brokers, or racks with their brokers. */
function holders() {
  const { brokers, racks } = DATA.moves;
  const rack = (at) => (racks[at] < 0 ? "no rack" : DATA.strings[racks[at]]);
  if (held.by === "broker") return brokers.map((id, at) => ({ name: String(id), said: `broker ${id}`, rack: rack(at), of: [at] }));
  const names = [...new Set(brokers.map((_, at) => racks[at]))];
  return names.map((place) => {
    const of = brokers.flatMap((_, at) => (racks[at] === place ? [at] : []));
    return { name: rack(of[0]), said: place < 0 ? "brokers without a rack" : `rack ${rack(of[0])}`, rack: "", of };
  });
}

function cellsOf(columns) {
  const columnOf = [];
  columns.forEach((column, c) => column.of.forEach((broker) => (columnOf[broker] = c)));
  const cells = DATA.moves.topics.map(() => columns.map(() => [0, 0, 0, 0]));
  for (const [topic, broker, ...counts] of DATA.moves.cells)
    counts.forEach((count, i) => (cells[topic][columnOf[broker]][i] += count));
  return cells;
}

const shownOf = ([before, after]) => ({ before, after, difference: after - before })[held.side];
const signed = (count) => (held.side === "difference" && count > 0 ? `+${number.format(count)}` : number.format(count));

function shade(count, most) {
  if (held.side !== "difference") return count ? `l${1 + Math.min(5, Math.floor((6 * Math.log(count)) / Math.log(most + 1)))}` : "";
  if (!count) return "same";
  const level = 1 + Math.min(2, Math.floor((3 * Math.log(Math.abs(count))) / Math.log(most + 1)));
  return `${count > 0 ? "up" : "down"}${level}`;
}

function heat() {
  const { topics, others } = DATA.moves;
  const columns = holders();
  const cells = cellsOf(columns);
  const all = columns.map((_, c) => [0, 1, 2, 3].map((i) => sum(cells.map((row) => row[c][i]))));
  const grid = [];
  const line = (counts, r, name, css, click) => {
    const most = Math.max(1, ...counts.map((cell) => Math.abs(shownOf(cell))), ...(css ? [] : [mostOf]));
    const made = (c, attributes, text) => {
      const button = el("button", { type: "button", tabindex: "-1", "data-r": r, "data-c": c, ...attributes }, text);
      (grid[r] ??= [])[c] = button;
      return button;
    };
    return el("tr", { class: css }, el("th", { scope: "row" }, made(0, { title: name, onclick: click }, name)),
      ...counts.map((cell, c) => {
        if (!cell.some(Boolean)) return el("td");
        const [before, after, led, leads] = cell;
        const said = `${name}, ${columns[c].said}: ${number.format(before)} → ${number.format(after)} replicas, leads ${number.format(led)} → ${number.format(leads)}`;
        return el("td", {}, made(c + 1, { class: shade(shownOf(cell), most), title: said, "aria-label": said, onclick: click }, signed(shownOf(cell))));
      }));
  };
  const mostOf = Math.max(1, ...cells.flat().map((cell) => Math.abs(shownOf(cell))));
  const names = topics.map((at) => (at < 0 ? `${plural(others, "other topic")}` : DATA.strings[at]));
  const body = [line(all, 0, "all topics", "all", () => filter({ q: "" }, false)),
    ...names.map((name, t) => line(cells[t], t + 1, name, "", () => topics[t] >= 0 && filter({ q: name })))];
  const groups = [];
  for (const { rack } of columns) {
    if (groups.at(-1)?.rack === rack) groups.at(-1).count++;
    else groups.push({ rack, count: 1 });
  }
  const known = held.by === "broker" && DATA.moves.racks.some((at) => at >= 0);
  const head = [known ? el("tr", {}, el("th", { class: "rack" }), ...groups.map(({ rack, count }) =>
    el("th", { scope: "colgroup", class: "rack", colspan: count, title: `rack ${rack}` }, rack))) : "",
    el("tr", {}, el("th", { scope: "col" }), ...columns.map((column) => el("th", { scope: "col", class: "broker", title: column.said }, column.name)))];
  grid[0][0].tabIndex = 0;
  byId("heat").replaceChildren(el("table", { "aria-label": `Replicas by topic and ${held.by}: ${held.side}`,
    onkeydown: (event) => walk(event, grid, columns.length + 1) }, el("thead", {}, ...head), el("tbody", {}, ...body)));
  for (const button of document.querySelectorAll(".switch button"))
    button.setAttribute("aria-pressed", String(held[button.dataset.of] === button.textContent));
}

function moves() {
  const found = DATA.moves;
  byId("moves-panel").hidden = !found;
  if (!found) return;
  const switchOf = (of, names) => byId(of).replaceChildren(...names.map((name) => el("button", { type: "button", "data-of": of, onclick: () => {
    held[of] = name;
    heat();
  } }, name)));
  switchOf("side", SIDES);
  switchOf("by", found.racks.some((at) => at >= 0) ? ["broker", "rack"] : []);
  byId("moves-note").textContent = [`${plural(found.partitions, "partition")} placed by the plan; ${plural(found.copied, "replica")} to copy or create`,
    found.narrowed ? `${plural(found.narrowed, "partition")} on fewer racks than before` : "",
    found.unplaced ? `${plural(found.unplaced, "new topic")} placed by the brokers` : ""].filter(Boolean).join("; ");
  heat();
}
