// The search of the catalog, which hides rows and owners. All rows are in the page without it.

const owners = [...document.querySelectorAll(".owner")].map((section) => {
  const owner = section.querySelector("h2").textContent;
  const rows = [...section.querySelectorAll("tbody tr")];
  return { section, rows: rows.map((row) => ({ row, text: `${owner}\n${row.textContent}`.toLowerCase() })) };
});
const total = sum(owners.map(({ rows }) => rows.length));

/** Shows the rows that contain all words. */
function search() {
  const words = byId("q").value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const { section, rows } of owners) {
    let any = false;
    for (const { row, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) { any = true; shown++; }
    }
    section.hidden = !any;
  }
  byId("count").textContent = words.length ? `${plural(shown, "resource")} of ${number.format(total)}` : "";
}

byId("search").hidden = false;
byId("q").addEventListener("input", search);
shortcuts("list");
