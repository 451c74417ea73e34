// First what any page does: choose light or dark, print, and sort tables. No data are known there.
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
// The figures and tables of an audit, drawn from the data in the page. One state (radius, models
// switched on, model looked at closely) and one function that draws everything from it. Data are
// only ever set as text.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const models = data.models.map((model, i) => ({
    ...model, i, color: `var(--m${i % 6})`,
    dash: ["", "7 4", "2 4", "9 3 2 3"][(i + Math.floor(i / 6)) % 4],
  }));
  const several = models.length > 1;
  const state = { k: data.start, on: new Set(models.slice(0, 6).map((m) => m.i)), focus: models.length - 1 };
  const byId = (id) => document.getElementById(id);

  // --- words and numbers ------------------------------------------------------------------------
  const percent = (x, digits = 1) => `${(100 * x).toFixed(digits)}\u00a0%`;
  const nats = (x) => x.toFixed(3);
  const short = (x) => String(Number(x.toPrecision(3)));
  const exact = (x) => String(Number(x.toPrecision(6)));
  const list = (words) => words.length < 2 ? words.join("")
    : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;

  // --- elements ---------------------------------------------------------------------------------
  const build = (element, attributes, children) => {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "style") element.style.cssText = value; else element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  };
  const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) =>
    build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const key = (m) => s("svg", { class: "key", "aria-hidden": "true", viewBox: "0 0 27 11" },
    s("line", { x1: 1, x2: 26, y1: 5.5, y2: 5.5, stroke: m.color, "stroke-width": 3,
      "stroke-dasharray": m.dash }));
  const name = (m) => h("span", { class: "model", style: `color: ${m.color}` }, m.name);
  const fill = (id, ...children) => byId(id)?.replaceChildren(...children.flat().filter((c) => c !== null));
  const shown = () => models.filter((m) => state.on.has(m.i));

  // --- a tooltip --------------------------------------------------------------------------------
  const tip = h("div", { class: "tip", hidden: "", "aria-hidden": "true" });
  document.body.append(tip);
  const hide = () => { tip.hidden = true; };
  const tell = (event, title, lines) => {
    tip.replaceChildren(h("strong", {}, title), ...lines.map(([label, value, m]) =>
      h("div", {}, h("span", {}, m ? key(m) : null, label), h("span", {}, value))));
    tip.hidden = false;
    const left = Math.min(event.pageX + 14, scrollX + innerWidth - tip.offsetWidth - 12);
    tip.style.left = `${Math.max(left, scrollX + 8)}px`;
    tip.style.top = `${event.pageY + 16}px`;
  };
  const telling = (element, title, lines) => {
    element.addEventListener("pointermove", (event) => tell(event, title, lines));
    element.addEventListener("pointerleave", hide);
    return element;
  };

  // --- tables -----------------------------------------------------------------------------------
  // Columns are [head, is a number]; cells are text, elements, or [shown, worth].
  const tables = new Map();
  const table = (id, caption, columns, rows) => {
    const place = byId(id);
    if (!place) return;
    const heads = JSON.stringify(columns);
    let known = tables.get(id);
    if (!known || known.heads !== heads) {
      const body = h("tbody", {});
      const element = h("table", {}, h("caption", {}, h("span", {}, caption)),
        h("thead", {}, h("tr", {}, columns.map(([head, number]) =>
          h("th", { scope: "col", class: number && "number" }, head)))), body);
      place.replaceChildren(h("div", { class: rows.length > 20 ? "scroll tall" : "scroll", role: "region", tabindex: 0,
        "aria-label": caption }, element));
      page.sortable(element);
      known = { heads, element, body };
      tables.set(id, known);
    }
    known.element.caption.firstChild.textContent = caption;
    known.element.parentNode.setAttribute("aria-label", caption);
    known.body.replaceChildren(...rows.map((row) => h("tr", {}, row.map((cell, j) => {
      const [content, worth] = Array.isArray(cell) ? cell : [cell, null];
      return h(j ? "td" : "th", { scope: j ? null : "row", class: columns[j][1] && "number",
        "data-value": worth }, content ?? "–");
    }))));
    page.sort(known.element);
  };

  // --- axes -------------------------------------------------------------------------------------
  const ticks = (low, high, count) => {
    const raw = (high - low) / count || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((x) => x * power).find((x) => x >= raw * 0.999);
    const found = [];
    for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + 1e-9 * step; t += step) {
      found.push(Number(t.toPrecision(10)));
    }
    return found;
  };
  const frame = (id, label, height, margin, x, y, most = Infinity) => {
    const place = byId(id);
    const width = Math.min(Math.max(place.clientWidth, 240), most);
    const [left, right, top, bottom] = margin;
    const px = (v) => left + ((v - x.low) / (x.high - x.low || 1)) * (width - left - right);
    const py = (v) => height - bottom - ((v - y.low) / (y.high - y.low || 1)) * (height - top - bottom);
    const svg = s("svg", { role: "img", "aria-label": label, viewBox: `0 0 ${width} ${height}`,
      width, height });
    for (const t of y.ticks ?? ticks(y.low, y.high, 4)) {
      svg.append(s("line", { class: "grid", x1: left, x2: width - right, y1: py(t), y2: py(t) }),
        s("text", { x: left - 8, y: py(t) + 4, "text-anchor": "end" }, y.format(t)));
    }
    for (const t of x.ticks ?? ticks(x.low, x.high, width < 420 ? 4 : 6)) {
      svg.append(s("line", { class: "axis", x1: px(t), x2: px(t), y1: height - bottom,
        y2: height - bottom + 4 }),
      s("text", { x: px(t), y: height - bottom + 17, "text-anchor": "middle" }, x.format(t)));
    }
    svg.append(s("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom,
      y2: height - bottom }),
    s("text", { x: width - right, y: height - 3, "text-anchor": "end" }, x.name));
    place.replaceChildren(svg);
    return { svg, px, py, width, height, left, right, top, bottom };
  };
  const path = (values, xs, box) =>
    values.map((v, i) => `${i ? "L" : "M"}${box.px(xs[i]).toFixed(1)} ${box.py(v).toFixed(1)}`).join("");

  // Lines of all models against a common axis; the nearest point under the pointer is told exactly.
  const lines = (id, label, options) => {
    const { xs, ys, thin, format, xName, cursor, pick, low = 0, reference } = options;
    const seen = shown();
    const top = Math.max(1e-9, ...seen.flatMap((m) => ys(m)));
    const roomy = byId(id).clientWidth > 460 && several && seen.length <= 4;
    const longest = Math.max(...seen.map((m) => m.name.length), 0);
    const right = roomy ? Math.min(12 + 7 * longest, 130) : 12;
    const box = frame(id, label, 270, [46, right, 12, 38],
      { low: xs[0], high: xs[xs.length - 1], format: short, name: xName },
      { low, high: top * 1.04, format });
    if (reference && reference < top) {
      box.svg.append(s("line", { class: "axis", "stroke-dasharray": "4 3", x1: box.left,
        x2: box.width - box.right, y1: box.py(reference), y2: box.py(reference) }));
    }
    const ends = [];
    for (const m of seen) {
      if (thin) box.svg.append(s("path", { class: "curve thin", d: path(thin(m), xs, box),
        stroke: m.color, "stroke-dasharray": m.dash }));
      box.svg.append(s("path", { class: "curve", d: path(ys(m), xs, box), stroke: m.color,
        "stroke-dasharray": m.dash }));
      ends.push({ m, y: box.py(ys(m)[xs.length - 1]) });
    }
    if (roomy) {
      ends.sort((a, b) => a.y - b.y);
      ends.forEach((end, i) => { if (i) end.y = Math.max(end.y, ends[i - 1].y + 15); });
      for (const { m, y } of ends) {
        const text = m.name.length > 17 ? `${m.name.slice(0, 16)}…` : m.name;
        box.svg.append(s("text", { class: "name", x: box.width - right + 7, y: y + 4,
          style: `fill: ${m.color}` }, text));
      }
    }
    if (cursor !== undefined) {
      box.svg.append(s("line", { class: "now", x1: box.px(xs[cursor]), x2: box.px(xs[cursor]),
        y1: box.top, y2: box.height - box.bottom }));
      for (const m of seen) box.svg.append(s("circle", { cx: box.px(xs[cursor]), r: 4,
        cy: box.py(ys(m)[cursor]), fill: m.color }));
    }
    const hover = s("line", { class: "cursor", y1: box.top, y2: box.height - box.bottom, opacity: 0 });
    box.svg.append(hover);
    const nearest = (event) => {
      const at = box.svg.getBoundingClientRect();
      const x = ((event.clientX - at.left) / at.width) * box.width;
      let best = 0;
      xs.forEach((v, i) => { if (Math.abs(box.px(v) - x) < Math.abs(box.px(xs[best]) - x)) best = i; });
      return best;
    };
    box.svg.addEventListener("pointermove", (event) => {
      const i = nearest(event);
      hover.setAttribute("x1", box.px(xs[i]));
      hover.setAttribute("x2", box.px(xs[i]));
      hover.setAttribute("opacity", 1);
      tell(event, `${xName} ${exact(xs[i])}`, seen.map((m) => [m.name, thin
        ? `${exact(thin(m)[i])} to ${exact(ys(m)[i])}` : exact(ys(m)[i]), m]));
    });
    box.svg.addEventListener("pointerleave", () => { hover.setAttribute("opacity", 0); hide(); });
    if (pick) box.svg.addEventListener("click", (event) => move(nearest(event)));
  };

  // --- sections ---------------------------------------------------------------------------------
  const summary = () => {
    const { k } = state;
    const seen = shown();
    const items = seen.map((m) => h("li", {}, name(m), ` is wrong on ${percent(m.error)} of the samples `
      + `as they are, with a log-loss of ${nats(m.loss)}. Within this radius, `
      + `at most ${percent(m.worst_error[k])} of its predictions can be wrong, and its log-loss is at `
      + `most ${nats(m.worst_loss[k])}.`));
    if (seen.length > 1) {
      for (const [measure, words] of [["worst_loss", "log-loss"], ["worst_error", "error"]]) {
        items.push(h("li", {}, best(seen, measure, words)));
      }
    }
    fill("summary", items);
  };
  // Who has the smallest worst case, from which radius to which.
  const best = (seen, measure, words) => {
    const winner = data.radii.map((_, k) =>
      seen.reduce((a, b) => (b[measure][k] < a[measure][k] - 1e-9 ? b : a)));
    const runs = [];
    winner.forEach((m, k) => {
      if (!runs.length || runs[runs.length - 1].m !== m) runs.push({ m, from: k });
    });
    if (runs.length === 1) return `${runs[0].m.name} has the smallest worst-case ${words} at every radius shown.`;
    const told = runs.map(({ m, from }, i) => (i ? `${m.name} from ε\u00a0=\u00a0${short(data.radii[from])} on`
      : `${m.name} at first`));
    return `The smallest worst-case ${words}: ${list(told)}.`;
  };

  const worst = () => {
    const { k } = state;
    const ends = (measure, format) => shown().map((m) => `${m.name} from ${format(m[measure][0])} to `
      + `${format(m[measure][data.radii.length - 1])}`).join("; ");
    const common = { xs: data.radii, xName: "radius ε", cursor: k, pick: true };
    lines("loss-chart", `Worst-case log-loss against the radius: ${ends("worst_loss", nats)}`,
      { ...common, ys: (m) => m.worst_loss, format: short, reference: Math.log(data.classes.length) });
    lines("error-chart", `Worst-case error against the radius: ${ends("worst_error", percent)}`,
      { ...common, ys: (m) => m.worst_error, thin: (m) => m.best_error,
        format: (x) => percent(x, 0) });
    const flips = data.kappa !== null;
    table("now-table", `Loss and error at ε = ${short(data.radii[k])}`, [
      ["model", false], ["log-loss now", true], ["log-loss, worst case", true], ["error now", true],
      ["error, best case", true], ["error, worst case", true], ...(flips ? [["labels it flips", true]] : []),
      ["half can be wrong from ε", true],
    ], shown().map((m) => [name(m), [m.loss.toFixed(4), m.loss],
      [m.worst_loss[k].toFixed(4), m.worst_loss[k]], [percent(m.error, 2), m.error],
      [percent(m.best_error[k], 2), m.best_error[k]], [percent(m.worst_error[k], 2), m.worst_error[k]],
      ...(flips ? [[percent(m.flips[k], 2), m.flips[k]]] : []),
      m.half_wrong === null ? "never" : [short(m.half_wrong), m.half_wrong]]));
  };

  // Decisions at the threshold, at one radius: bands are [as the samples are, least, largest].
  const LABELS = "wrong labels";
  const risk = () => {
    const { k } = state;
    const right = byId("labels-right").checked;
    const seen = shown().map((m) => ({ m, b: right ? m.moves : m.budget }));
    const total = data.radii[k];
    const share = (x) => (total > 0 ? x / total : 0);
    const entries = new Map();
    const add = (what, i, use, without) => {
      if (!entries.has(what)) entries.set(what, new Map());
      entries.get(what).set(i, { share: share(use[k]), without: without ? without[k] : null });
    };
    for (const { m, b } of seen) {
      if (!right && data.kappa !== null) add(LABELS, m.i, b.flips, b.without_flips);
      for (const f of b.features) add(f.name, m.i, f.use, f.without);
      if (b.others.some((x) => x > 0)) add("other features", m.i, b.others, null);
      if (b.unspent.some((x) => x > 0)) add("not spent", m.i, b.unspent, null);
    }
    const largest = (cells) => Math.max(...[...cells.values()].map((cell) => cell.share));
    const rows = [...entries].sort((a, b) => largest(b[1]) - largest(a[1]));
    const words = total === 0 ? h("li", {}, "Nothing is spent at ε = 0: move the slider.") : seen.map(({ m }) => {
      const parts = rows.map(([what, cells]) => [what, cells.get(m.i)?.share ?? 0])
        .filter(([what, x]) => x >= 0.005 && what !== "not spent").sort((p, q) => q[1] - p[1]).slice(0, 3);
      return h("li", {}, name(m), parts.length
        ? `: ${list(parts.map(([what, x]) => `${what} ${percent(x, 0)}`))} of the budget.`
        : ": nothing that can change raises the loss.");
    });
    fill("risk-words", [words].flat());
    fill("risk-bars", rows.slice(0, 12).filter(([, cells]) => largest(cells) > 0).flatMap(([what, cells]) => [
      h("div", { class: "what" }, what),
      h("div", {}, seen.map(({ m }) => {
        const x = cells.get(m.i)?.share ?? 0;
        return telling(h("div", { class: "bar" },
          x > 0 ? h("i", { style: `width: calc(${(100 * x).toFixed(2)}% * 0.85); background: ${m.color}` }) : null,
          h("b", {}, percent(x))), what,
        [[m.name, `${exact(x * total)} of ${exact(total)}`, m]]);
      })),
    ]));
    const columns = [["feature", false]];
    for (const { m } of seen) columns.push([`${m.name}: budget`, true], [`${m.name}: loss without`, true]);
    // Holding what takes nothing changes nothing, where all that take something are listed.
    const without = (b, cell) => cell?.without ?? (b.n_moved <= b.features.length ? b.loss[k] : null);
    table("risk-table", `Share of the budget at ε = ${short(total)}, and the worst-case log-loss without the `
      + `feature, if it could not change (with all: ${list(seen.map(({ m, b }) => `${m.name} ${b.loss[k].toFixed(4)}`))})`,
    columns, rows.map(([what, cells]) => [what, ...seen.flatMap(({ m, b }) => {
      const cell = cells.get(m.i);
      const loss = what === "not spent" || what === "other features" ? null : without(b, cell);
      return [cell ? [percent(cell.share), cell.share] : [percent(0), 0],
        loss === null ? null : [loss.toFixed(4), loss]];
    })]));
  };

  const groups = () => {
    if (!data.groups.length) return;
    const { k } = state;
    const seen = shown();
    const title = (g) => (new Set(data.groups.map((other) => other.column)).size > 1
      ? `${g.column}: ${g.value}` : g.value);
    fill("group-words", seen.map((m) => {
      const known = data.groups.map((g) => ({ g, r: g.models[m.i] })).filter(({ r }) => r);
      const sorted = [...known].sort((a, b) => b.r.worst_error[k] - a.r.worst_error[k]);
      if (sorted.length < 2) return null;
      const [high, low] = [sorted[0], sorted[sorted.length - 1]];
      return h("li", {}, name(m), `: the worst-case error is ${percent(high.r.worst_error[k])} for ${title(high.g)} `
        + `(now ${percent(high.r.error)}) and ${percent(low.r.worst_error[k])} for ${title(low.g)} `
        + `(now ${percent(low.r.error)}).`);
    }));
    for (const [id, now, then, format] of [["group-error", "error", "worst_error", (x) => percent(x, 0)],
      ["group-loss", "loss", "worst_loss", short]]) {
      const step = 14 * seen.length + 14;
      const high = Math.max(1e-9, ...data.groups.flatMap((g) => seen.map((m) =>
        (g.models[m.i] ? g.models[m.i][then][data.radii.length - 1] : 0))));
      const longest = Math.max(...data.groups.map((g) => title(g).length));
      const left = Math.min(14 + 6.4 * longest, byId(id).clientWidth * 0.36);
      const letters = Math.floor((left - 14) / 6.2);
      const box = frame(id, `${now} of each subgroup, as it is and in the worst case: `
        + data.groups.map((g) => `${title(g)} ${seen.map((m) => (g.models[m.i]
          ? `${m.name} ${exact(g.models[m.i][now])} and ${exact(g.models[m.i][then][k])}` : "")).join(", ")}`).join("; "),
      step * data.groups.length + 40, [left, 14, 6, 34],
      { low: 0, high: high * 1.03, format, name: "" }, { low: 0, high: 1, ticks: [], format });
      data.groups.forEach((g, j) => {
        const words = title(g);
        box.svg.append(s("text", { x: left - 10, y: 6 + step * (j + 0.5) + 4, "text-anchor": "end",
          style: "fill: var(--ink)" }, words.length > letters ? `${words.slice(0, letters - 1)}…` : words));
        seen.forEach((m, i) => {
          const r = g.models[m.i];
          if (!r) return;
          const y = 6 + step * j + 14 * (i + 1);
          const [a, b] = [box.px(r[now]), box.px(r[then][k])];
          box.svg.append(telling(s("g", {},
            s("line", { x1: a, x2: b, y1: y, y2: y, stroke: m.color, "stroke-width": 2 }),
            s("circle", { cx: a, cy: y, r: 4, fill: "var(--paper)", stroke: m.color, "stroke-width": 2 }),
            s("circle", { cx: b, cy: y, r: 4.5, fill: m.color })), `${words}, ${g.size.toLocaleString("en")} samples`,
          [[m.name, `${exact(r[now])} → ${exact(r[then][k])}`, m]]));
        });
      });
    }
    table("group-table", `Subgroups at ε = ${short(data.radii[k])}`, [["subgroup", false], ["samples", true],
      ["model", false], ["error now", true], ["error, worst case", true], ["log-loss now", true],
      ["log-loss, worst case", true]],
    data.groups.flatMap((g) => seen.filter((m) => g.models[m.i]).map((m) => {
      const r = g.models[m.i];
      return [title(g), [g.size.toLocaleString("en"), g.size], name(m), [percent(r.error, 2), r.error],
        [percent(r.worst_error[k], 2), r.worst_error[k]], [r.loss.toFixed(4), r.loss],
        [r.worst_loss[k].toFixed(4), r.worst_loss[k]]];
    })));
  };

  const samples = () => {
    const m = models[state.focus];
    table("fragile-table", `The predictions of ${m.name} that take least to break`, [["row", true], ["change", false],
      [m.fragile.some((f) => !f.cheapest) ? "cost, at most" : "cost", true], ["label", false], ["its probability", true]],
    m.fragile.map((f) => [[String(f.row), f.row], h("span", { class: "change" }, f.changes.join("; ")
      + (f.n_changed > f.changes.length ? `; and ${f.n_changed - f.changes.length} more` : "")),
    [short(f.cost), f.cost], f.label, [percent(f.probability, 2), f.probability]]));
    fill("broken-words", shown().map((each) => h("li", {}, name(each), each.broken.median === null
      ? ": less than half of its right predictions can be broken."
      : `: half of its right predictions break for a change that costs ${short(each.broken.median)} or less.`)));
    const { costs } = m.broken;
    lines("broken-chart", `Share of right predictions that a change breaks, against its cost: ${shown().map((each) =>
      `${each.name} half at ${each.broken.median === null ? "no cost" : short(each.broken.median)}`).join("; ")}`,
    { xs: costs, ys: (each) => each.broken.shares, xName: "cost of the change", format: (x) => percent(x, 0) });
    const probability = (margin) => 1 / (1 + Math.exp(-margin));
    const place = byId("label-tables");
    if (!place.firstChild) place.append(h("div", { id: "surprising" }), h("div", { id: "flipped" }));
    table("surprising", `Labels that surprise ${m.name} most: if labels may be wrong, check these first`,
      [["row", true], ["label", false], ["probability", true]], m.surprising.map((x) => [[String(x.row), x.row],
        x.label, [percent(probability(x.margin), 2), probability(x.margin)]]));
    if (m.first_flipped.length) {
      table("flipped", "Labels that the worst case flips first: they are not suspicious, but an error there costs most",
        [["row", true], ["label", false], ["probability", true], ["flipped from ε", true]],
        m.first_flipped.map((x) => [[String(x.row), x.row], x.label,
          [percent(probability(x.margin), 2), probability(x.margin)], [short(x.epsilon), x.epsilon]]));
    } else {
      tables.delete("flipped");
      fill("flipped", h("p", {}, "No label is worth flipping: moving features hurts this model more."));
    }
  };

  const confusion = () => {
    const some = shown().filter((m) => m.confusion);
    const cell = (m, j) => h("span", {}, percent(m.confusion[j]), h("span", { class: "arrow" }, "→"),
      h("strong", {}, percent(m.worst_confusion[state.k][j])));
    fill("confusion-table", some.map((m) => h("div", { class: "scroll", role: "region", tabindex: 0,
      "aria-label": some.length > 1 ? `Right and wrong, ${m.name}` : "Right and wrong" },
    h("table", { class: "confusion" }, some.length > 1 ? h("caption", {}, name(m)) : null,
      h("thead", {}, h("tr", {}, h("td", {}), m.classes.map((label) => h("th", { scope: "col" }, `predicted ${label}`)))),
      h("tbody", {}, m.classes.map((label, row) => h("tr", {}, h("th", { scope: "row" }, `is ${label}`),
        m.classes.map((_, j) => h("td", {}, cell(m, m.classes.length * row + j))))))))));
    fill("confusion-words", data.two_classes ? some.map((m) => {
      const [negative, positive] = m.classes;
      const [now, then] = [m.confusion, m.worst_confusion[state.k]];
      return h("li", {}, name(m), `: in the worst case ${percent(missed(then, 1))} of the samples that are ${positive} `
        + `are predicted ${negative} (now ${percent(missed(now, 1))}), and ${percent(missed(then, 0))} of those that `
        + `are ${negative} are predicted ${positive} (now ${percent(missed(now, 0))}).`);
    }) : []);
  };
  const missed = (cells, row) => {
    const total = cells[2 * row] + cells[2 * row + 1];
    return total > 0 ? cells[row ? 2 : 1] / total : 0;
  };

  const facts = () => {
    const known = models.filter((m) => m.facts.gap !== undefined);
    if (!known.length) return;
    table("fact-table", "Models that carry a certificate: on the data they were fitted to, no linear model has a worst-case loss below the bound",
      [["model", false], ["fitted for ε", true], ["κ", true], ["worst-case loss in training", true], ["bound", true],
        ["gap", true]], known.map(({ name: words, facts: f }) => [words, [short(f.epsilon), f.epsilon],
        f.kappa === null ? "∞" : typeof f.kappa === "string" ? f.kappa : [short(f.kappa), f.kappa], [f.objective.toFixed(6), f.objective],
        [f.bound.toFixed(6), f.bound], [f.gap.toExponential(1), f.gap]]));
  };

  // --- the state and its controls ---------------------------------------------------------------
  const slider = byId("radius");
  const radius = () => {
    const { k } = state;
    slider.value = k;
    byId("epsilon").textContent = `ε = ${short(data.radii[k])}`;
    const allowed = data.allowed[k].join("; ");
    slider.setAttribute("aria-valuetext", `epsilon ${short(data.radii[k])}: ${allowed}`);
    fill("allowed", data.radii[k] === 0 ? "ε = 0: the data are taken as they are."
      : `This allows: ${allowed}. `);
  };
  const draw = () => {
    hide();
    radius();
    summary();
    worst();
    risk();
    groups();
    confusion();
    if (data.two_classes) samples();
  };
  const move = (k) => { state.k = k; draw(); };
  slider.addEventListener("input", () => move(Number(slider.value)));
  fill("models", h("legend", {}, "Models"), models.map((m) => {
    const box = h("input", { type: "checkbox", checked: state.on.has(m.i) ? "" : null });
    box.addEventListener("change", () => {
      if (box.checked) state.on.add(m.i); else state.on.delete(m.i);
      if (!state.on.size) { state.on.add(m.i); box.checked = true; } // one is always looked at
      draw();
    });
    return h("label", {}, several ? box : null, key(m), m.name);
  }));
  const focus = byId("focus");
  focus?.append(...models.map((m) => h("option", { value: m.i, selected: m.i === state.focus ? "" : null }, m.name)));
  focus?.addEventListener("change", () => { state.focus = Number(focus.value); draw(); });
  const labelsRight = byId("labels-right");
  labelsRight.addEventListener("change", risk);
  if (data.kappa === null) labelsRight.closest("p").hidden = true;
  else {
    // Where flips take everything, there is more to see without them.
    labelsRight.checked = models.every((m) => m.budget.flips[state.k] > 0.98 * data.radii[state.k]);
  }
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
  addEventListener("beforeprint", draw);
  draw();
  facts();
})();
