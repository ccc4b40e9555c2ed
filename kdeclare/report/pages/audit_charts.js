// Tiles, heat map, trend and teams.

const dot = (at) => el("span", { class: `dot k-${KINDS[at].name}`, "aria-hidden": "true" });

function spark(counts) {
  const [least, most] = [Math.min(...counts), Math.max(1, ...counts)];
  const base = Math.max(0, Math.min(least, most * 0.75)); // so that small changes of large counts look small
  const x = (i) => 2 + (i * 60) / Math.max(1, counts.length - 1);
  const y = (count) => 18 - ((count - base) / (most - base)) * 16;
  const line = counts.map((count, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(count).toFixed(1)}`).join("");
  const last = counts.length - 1;
  return el("svg", { class: "spark", viewBox: "0 0 64 20", "aria-hidden": "true", focusable: "false" },
    el("path", { d: line }), el("circle", { cx: x(last), cy: y(counts[last]), r: 2 }));
}

function delta(counts) {
  const before = counts.at(-2);
  if (before === undefined) return "";
  const more = counts.at(-1) - before;
  const said = more > 0 ? `▲ ${number.format(more)}` : more < 0 ? `▼ ${number.format(-more)}` : "= 0";
  const spoken = more > 0 ? "more" : more < 0 ? "fewer" : "more or fewer";
  return el("span", { class: `delta ${more > 0 ? "worse" : more < 0 ? "better" : ""}`,
    title: `${number.format(Math.abs(more))} ${spoken} than in the previous audit` }, said);
}

function tiles() {
  byId("tiles").replaceChildren(...KINDS.flatMap((kind, at) => {
    const counts = DATA.trend.map((point) => point.found[at]);
    if (kind.name === "unused" && !sum(counts)) return []; // audits do not look for it unless the fleet file says so
    const unseen = DATA.unseen[at]; // included in the count, as in the trend, but not in the list
    return el("button", { type: "button", class: `tile k-${kind.name}${counts.at(-1) ? "" : " none"}`,
      "aria-pressed": "false", "data-kind": kind.name, onclick: () => toggleKind(at) },
      el("span", { class: "tile-name" }, dot(at), kind.name),
      el("span", { class: "tile-count" }, number.format(counts.at(-1))),
      el("span", { class: "tile-trend" }, delta(counts), counts.length > 1 ? spark(counts) : ""),
      el("span", { class: "tile-meaning" },
        `${kind.meaning}${unseen ? `; ${number.format(unseen)} of them not checked again` : ""}`));
  }));
}

let heatSort = { by: "total", down: true };

function heatRows() {
  const { paths, cluster, path, count } = DATA.heat;
  const counts = DATA.clusters.map(() => new Array(paths.length).fill(0));
  count.forEach((many, i) => (counts[cluster[i]][path[i]] = many));
  const rows = DATA.clusters.map((one, at) => ({ one, total: sum(one.found), counts: counts[at] }));
  const found = rows.filter((row) => row.total || row.one.error !== null);
  const by = heatSort.by;
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const order = (a, b) =>
    by === "name" ? compare(a.one.name, b.one.name) : by === "total" ? a.total - b.total : a.counts[by] - b.counts[by];
  return found.sort((a, b) => order(a, b) * (heatSort.down ? -1 : 1) || b.total - a.total);
}

function heat() {
  const rows = heatRows();
  const { paths } = DATA.heat;
  const most = Math.max(1, ...DATA.heat.count);
  const level = (count) => 1 + Math.min(5, Math.floor((6 * Math.log(count)) / Math.log(most + 1)));
  const grid = [];
  const sorter = (by, name, css) => el("th", { scope: "col", class: css,
    "aria-sort": heatSort.by === by ? (heatSort.down ? "descending" : "ascending") : "none" },
    el("button", { type: "button", title: `Sort by ${name}`, onclick: (event) => {
      heatSort = { by, down: heatSort.by === by ? !heatSort.down : by !== "name" };
      heat();
      byId("heat").querySelectorAll("thead button")[by === "name" ? 0 : by === "total" ? 1 : by + 2].focus();
      event.stopPropagation();
    } }, el("span", {}, name)));
  const head = el("tr", {}, sorter("name", "cluster", "corner"), sorter("total", "total", "sum"),
    ...paths.map((path, at) => sorter(at, keyOf(path), "key")));
  const body = rows.map(({ one, total, counts }, r) => {
    const button = (c, attributes, text) => {
      const made = el("button", { type: "button", tabindex: "-1", "data-r": r, "data-c": c, ...attributes }, text);
      (grid[r] ??= [])[c] = made;
      return made;
    };
    const labels = Object.entries(one.labels).map(([key, value]) => `${key}=${value}`).join(", ");
    const name = button(0, { title: [one.name, labels, one.error].filter(Boolean).join("\n"),
      onclick: () => filter({ cluster: one.name, key: null }) }, one.name);
    const cells = counts.map((count, c) => {
      if (!count) return el("td");
      const said = `${one.name}, ${keyOf(paths[c])}: ${plural(count, "finding")}`;
      return el("td", {}, button(c + 1, { class: `l${level(count)}`, title: said, "aria-label": said,
        "data-cluster": one.name, "data-path": paths[c] ?? "",
        onclick: () => filter({ cluster: one.name, key: paths[c] ?? "" }) }, short(count)));
    });
    return el("tr", { "data-cluster": one.name }, el("th", { scope: "row", class: one.error === null ? "" : "unread" }, name),
      el("td", { class: "sum" }, number.format(total)), ...cells);
  });
  const table = el("table", { "aria-label": "Findings by cluster and field", onkeydown: (event) => walk(event, grid, paths.length + 1) },
    el("thead", {}, head), el("tbody", {}, ...body));
  if (grid.length) grid[0][0].tabIndex = 0;
  byId("heat").replaceChildren(rows.length ? table : el("p", { class: "empty" }, "No findings in any cluster."));
  const size = rows.length ? `${plural(rows.length, "cluster")} × ${plural(paths.length, "field")}` : "";
  byId("heat-note").replaceChildren(size, ...rows.length > 12 ? [el("span", { class: "screen-only" }, ", scroll for more")] : []);
  markHeat();
}

function markHeat() {
  for (const row of byId("heat").querySelectorAll("tbody tr")) {
    row.classList.toggle("on", row.dataset.cluster === state.cluster);
    for (const cell of row.querySelectorAll("td button")) {
      const on = cell.dataset.cluster === state.cluster && cell.dataset.path === state.key;
      cell.setAttribute("aria-pressed", String(on));
    }
  }
}

function ticks(most) {
  const raw = most / 4;
  const unit = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  const step = Math.max(1, [1, 2, 5, 10].map((f) => f * unit).find((size) => size >= raw) ?? unit);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
}

function trend() {
  const points = DATA.trend;
  const box = byId("trend");
  if (points.length < 2) {
    byId("trend-note").textContent = "";
    box.replaceChildren(el("p", { class: "empty" }, "This is the first audit; the trend starts with the next one."));
    return;
  }
  const shown = KINDS.map((_, at) => at).filter((at) =>
    state.kinds.size ? state.kinds.has(at) : points.some((point) => point.found[at]));
  byId("trend-note").textContent = plural(points.length, "audit");
  const [width, height, left, right, top, bottom] = [420, 190, 44, 10, 8, 22];
  const times = points.map((point) => Date.parse(point.taken));
  const span = Math.max(1, times.at(-1) - times[0]);
  const marks = ticks(Math.max(1, ...points.flatMap((point) => shown.map((at) => point.found[at]))));
  const x = (i) => left + ((times[i] - times[0]) / span) * (width - left - right);
  const y = (count) => height - bottom - (count / marks.at(-1)) * (height - top - bottom);
  const lines = marks.map((mark) => el("g", {},
    el("line", { class: "grid", x1: left, x2: width - right, y1: y(mark), y2: y(mark) }),
    el("text", { x: left - 6, y: y(mark) + 4, "text-anchor": "end" }, number.format(mark))));
  const day = (taken) => taken.slice(0, 10);
  const moment = day(points[0].taken) === day(points.at(-1).taken) ? minutes : day;
  const ends = [[0, "start"], [points.length - 1, "end"]].map(([i, anchor]) =>
    el("text", { x: x(i), y: height - 6, "text-anchor": anchor }, moment(points[i].taken)));
  const paths = shown.map((at) => el("path", { class: `series k-${KINDS[at].name}`,
    d: points.map((point, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(point.found[at]).toFixed(1)}`).join("") }));
  const rule = el("line", { class: "rule", y1: top, y2: height - bottom });
  const dots = el("g", {});
  const svg = el("svg", { class: "trend", viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: "0",
    "aria-label": `Findings of ${points.length} audits by kind; use the arrow keys to read them one by one` },
    ...lines, ...ends, rule, ...paths, dots);
  const says = el("p", { class: "reading", "aria-live": "polite" });
  let at = points.length - 1;
  const read = (i) => {
    at = Math.min(points.length - 1, Math.max(0, i));
    rule.setAttribute("x1", x(at));
    rule.setAttribute("x2", x(at));
    dots.replaceChildren(...shown.map((kind) =>
      el("circle", { class: `k-${KINDS[kind].name}`, cx: x(at), cy: y(points[at].found[kind]), r: 3 })));
    says.replaceChildren(el("time", {}, minutes(points[at].taken)), ...shown.map((kind) =>
      el("span", {}, dot(kind), `${KINDS[kind].name} `, el("b", {}, number.format(points[at].found[kind])))));
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * width;
    read(times.reduce((best, _, i) => (Math.abs(x(i) - place) < Math.abs(x(best) - place) ? i : best), 0));
  });
  svg.addEventListener("pointerleave", () => read(points.length - 1));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) { event.preventDefault(); read(at + step); }
  });
  read(at);
  box.replaceChildren(svg, says);
}

function teams() {
  byId("teams-panel").hidden = !DATA.teams.some(([team]) => team !== "");
  const most = Math.max(1, ...DATA.teams.map(([, counts]) => sum(counts)));
  byId("teams").replaceChildren(...DATA.teams.map(([team, counts]) => {
    const bar = el("span", { class: "bar", "aria-hidden": "true" });
    counts.forEach((count, at) => {
      if (!count) return;
      const part = el("span", { class: `k-${KINDS[at].name}` });
      part.style.width = `${(100 * count) / most}%`;
      bar.append(part);
    });
    const said = counts.flatMap((count, at) => (count ? [`${number.format(count)} ${KINDS[at].name}`] : [])).join(", ");
    return el("li", {}, el("button", { type: "button", title: said, "data-team": team, "aria-pressed": "false",
      onclick: () => filter({ team: state.team === team ? null : team }, false) },
      el("span", { class: "team-name" }, team || NO_TEAM), bar,
      el("span", { class: "team-count" }, number.format(sum(counts)))));
  }));
}
