// Shared by all pages: the embedded data, creation of elements, and the difference between two texts.

const DATA = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const sum = (counts) => counts.reduce((total, count) => total + count, 0);
const plural = (count, one) => `${number.format(count)} ${one}${count === 1 ? "" : "s"}`;
const SVG = new Set(["svg", "path", "line", "circle", "rect", "text", "title", "g"]);

/** Creates an element; text is inserted as text, never as markup. */
function el(tag, attributes = {}, ...children) {
  const svg = SVG.has(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

/** Rows by column; every cell is an index into the strings of the page. */
class Rows {
  constructor(columns) {
    this.columns = columns;
    this.length = Object.values(columns)[0].length;
  }
  text(row, column) {
    const at = this.columns[column][row];
    return at < 0 ? null : DATA.strings[at];
  }
  resource(row) {
    return `${this.text(row, "kind")}/${this.text(row, "name")}`;
  }
}

/** An id with a button that copies it; brief: the characters that are shown. Printed pages have the whole id. */
function copied(id, label, brief = id.length) {
  const whole = el("span", { class: "whole" }, id);
  const copy = el("button", { type: "button", class: "plain", "aria-label": label, onclick: async () => {
    try {
      await navigator.clipboard.writeText(id);
      copy.textContent = "Copied";
    } catch { // the browser forbids it: show the whole id, selected
      copy.parentElement.classList.add("shown");
      getSelection().selectAllChildren(whole);
    }
  } }, "Copy");
  return el("dd", { class: "long" }, el("span", { class: "brief", title: id }, id.slice(0, brief)), whole, " ", copy);
}

/** Links to the sections that are shown. */
function jumps(selector = "main > section[id][aria-labelledby]") {
  const panels = [...document.querySelectorAll(selector)].filter((panel) => !panel.hidden);
  byId("jumps").replaceChildren(...panels.map((panel) => el("button", { type: "button", class: "plain",
    onclick: () => panel.scrollIntoView({ block: "start" }) }, panel.querySelector("h2").textContent)));
}

const short = (count) => (count < 10000 ? String(count) : `${Math.round(count / 1000)}k`);

/**
 * Arrow keys move between non-empty cells; only one cell is in the tab order.
 * Cells have their row and column in data-r and data-c; width: the number of columns.
 */
function walk(event, grid, width) {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (!step || event.target.dataset.r === undefined) return;
  event.preventDefault();
  let [r, c] = [Number(event.target.dataset.r) + step[0], Number(event.target.dataset.c) + step[1]];
  while (grid[r] && c >= 0 && c < width && !grid[r][c]) [r, c] = [r + step[0], c + step[1]];
  const next = grid[r]?.[c];
  if (!next) return;
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

// Shortcuts that skip the content above a list: a link for screen readers, and "/" for the search field.
function shortcuts(list) {
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId(list).focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      byId("q").focus();
    }
  });
}

const TOKENS = /[\p{L}\p{N}_]+|\s+|[^]/gu;
const MANY = 1500;

/** Splits both sides into parts, each with a flag that is true if the other side does not have it. */
function differing(a, b) {
  const [left, right] = [a.match(TOKENS) ?? [], b.match(TOKENS) ?? []];
  let start = 0;
  while (start < left.length && left[start] === right[start]) start++;
  let end = 0;
  while (end < Math.min(left.length, right.length) - start && left.at(-1 - end) === right.at(-1 - end)) end++;
  const [midA, midB] = [left.slice(start, left.length - end), right.slice(start, right.length - end)];
  const same = midA.length <= MANY && midB.length <= MANY ? common(midA, midB) : { a: new Set(), b: new Set() };
  const parts = (all, mid, kept) => joined([
    ...all.slice(0, start).map((token) => [token, false]),
    ...mid.map((token, i) => [token, !kept.has(i)]),
    ...all.slice(all.length - end).map((token) => [token, false]),
  ]);
  return { before: parts(left, midA, same.a), after: parts(right, midB, same.b) };
}

/** The indexes of a longest common subsequence. */
function common(a, b) {
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1
        : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  const kept = { a: new Set(), b: new Set() };
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) { kept.a.add(i++); kept.b.add(j++); }
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
    else j++;
  }
  return kept;
}

function joined(parts) {
  const found = [];
  for (const [token, other] of parts) {
    if (found.length && found.at(-1)[1] === other) found.at(-1)[0] += token;
    else found.push([token, other]);
  }
  return found;
}
