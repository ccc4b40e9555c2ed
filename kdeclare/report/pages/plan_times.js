// The timeline of the operations of a run.

function ticks(seconds) {
  const unit = 10 ** Math.floor(Math.log10(seconds / 4));
  const step = [1, 2, 5, 10].map((f) => f * unit).find((size) => size >= seconds / 4);
  return Array.from({ length: Math.floor(seconds / step) + 1 }, (_, i) => i * step).filter((at) => at <= 0.93 * seconds);
}

function times(chunk = 100) {
  byId("times-panel").hidden = !RUN?.bars.length;
  if (!RUN?.bars.length) return;
  const whole = Math.max(RUN.span, 0.001);
  const axis = el("div", { class: "track" }, ...ticks(whole).map((at) => {
    const mark = el("b", {}, at ? duration(at) : "0");
    mark.style.left = `${(100 * at) / whole}%`;
    return mark;
  }));
  byId("times").replaceChildren(el("div", { class: "axis", "aria-hidden": "true" }, el("span", {}), axis, el("span", {})));
  lazily(byId("times"), RUN.bars.length, (at) => timeRow(at, whole), byId("times"), chunk);
  const never = RUN.status.length - sum(RUN.steps.map((steps) => steps.length));
  byId("times-note").textContent = `from ${RUN.began}, ${duration(RUN.seconds)}`
    + (never ? `; ${plural(never, "operation")} not started` : "");
}

function timeRow(at, whole) {
  const [begun, end, verb, status] = RUN.bars[at];
  const steps = RUN.steps[at];
  const name = steps.length > 1 ? `${DATA.strings[verb]} × ${number.format(steps.length)}` : operationName(steps[0]);
  const ending = statusName(status);
  const took = end === null ? "?" : duration(end - begun);
  const bar = el("i", { class: `${css(ending)} ${end === null ? "open" : ""}` });
  bar.style.left = `${(100 * begun) / whole}%`;
  bar.style.width = `${(100 * ((end ?? whole) - begun)) / whole}%`;
  return el("button", { type: "button", class: "time", "aria-haspopup": "dialog",
    "aria-label": `${name}: ${ending}, started after ${duration(begun)}, ${end === null ? "unknown duration" : `took ${took}`}`,
    onclick: (event) => (steps.length > 1 ? tellOf(name, steps, event.currentTarget) : tell(steps[0], event.currentTarget)) },
    el("span", { class: "clip" }, dot(ending), name), el("span", { class: "track" }, bar), el("span", { class: "took" }, took));
}
