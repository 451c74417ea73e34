// What every page does: choose light or dark, print, and sort tables. No data are known here.
"use strict";
const page = (() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const theme = document.getElementById("theme");
  const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
  system.addEventListener("change", name);
  name();
  document.getElementById("print").addEventListener("click", () => window.print());
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });

  // A cell's data-value, if it has one, says what it is worth; what is no number sorts as text.
  const worth = (cell) => {
    const text = cell.dataset.value ?? cell.textContent.trim();
    const number = parseFloat(text.replace(/[−–]/g, "-").replace(/[,\s≤<>≈~]/g, ""));
    return Number.isNaN(number) ? text.toLowerCase() : number;
  };
  const compare = (a, b) => {
    const [p, q] = [worth(a), worth(b)];
    if (typeof p === typeof q) return p < q ? -1 : p > q ? 1 : 0;
    return typeof p === "number" ? -1 : 1; // numbers before what stands for none
  };
  // Put the rows into the order that the heads say, after a click or with new rows.
  const sort = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    const column = heads.findIndex((head) => head.hasAttribute("aria-sort"));
    if (column < 0) return;
    const up = heads[column].getAttribute("aria-sort") === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => up * compare(a.cells[column], b.cells[column]));
    table.tBodies[0].append(...rows);
  };
  const sortable = (table) => {
    if (table.tHead.rows.length !== 1) return;
    for (const head of table.tHead.rows[0].cells) {
      if (!head.textContent.trim()) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending"
          || (!head.hasAttribute("aria-sort") && head.classList.contains("number"));
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sort(table);
      });
    }
  };
  for (const table of document.querySelectorAll("table")) sortable(table);
  return { sort, sortable };
})();
