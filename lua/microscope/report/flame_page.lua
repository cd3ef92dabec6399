--- flame_page.lua - the flame graph's page: what stands around the title and the data.
--
-- The script draws only what is at least a third of a pixel wide, so that trees of a hundred
-- thousand nodes stay quick.  It keeps no state but the node that is zoomed to and the search.

local M = {}

M.HEAD_BEFORE_TITLE = [==[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>]==]

M.HEAD_AFTER_TITLE = [==[
</title>
<style>
:root { color-scheme: light dark; --ink: #1c1b1a; --paper: #fdfcfa; --line: #d8d4cc;
  --hit: #7b2fbe; --dim: #8a857c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eceae6; --paper: #1d1c1b; --line: #45423d; --hit: #c58bff; --dim: #98938a; } }
body { margin: 0; font: 14px/1.4 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
header { position: sticky; top: 0; padding: 8px 12px; background: var(--paper);
  border-bottom: 1px solid var(--line); }
h1 { font-size: 16px; margin: 0; overflow-wrap: anywhere; }
p { margin: 2px 0; color: var(--dim); }
form { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin-top: 6px; }
input { font: inherit; padding: 3px 6px; min-width: 16em; }
button { font: inherit; padding: 3px 10px; }
#details { min-height: 1.4em; overflow-wrap: anywhere; }
svg { display: block; width: 100%; font: 12px ui-monospace, monospace; }
g.frame { cursor: pointer; }
g.frame rect { stroke: var(--paper); stroke-width: 0.5; }
g.frame text { fill: #1c1b1a; pointer-events: none; }
g.frame:hover rect, g.frame:focus rect { stroke: var(--ink); stroke-width: 1; }
g.frame:focus { outline: none; }
g.frame.above { opacity: 0.55; }
g.frame.hit rect { fill: var(--hit); }
g.frame.hit text { fill: var(--paper); }
</style>
</head>
<body>
<header>
<h1>]==]

M.BEFORE_SUBTITLE = [==[
</h1>
<p>]==]

M.BEFORE_DATA = [==[
</p>
<form id="controls">
<label>Search <input id="search" type="search" autocomplete="off" spellcheck="false"
  placeholder="a name, or /an expression/"></label>
<button id="reset" type="button" disabled>Zoom out</button>
<output id="matched"></output>
</form>
<p id="details"></p>
</header>
<main><svg id="graph" xmlns="http://www.w3.org/2000/svg" role="tree"
  aria-label="flame graph, callers above"></svg></main>
<script id="data" type="application/json">
]==]

M.AFTER_DATA = [==[

</script>
<script>
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg", ROW = 18, CHAR = 7.3, LEAST = 0.3;
  const data = JSON.parse(document.getElementById("data").textContent);
  const count = data.nodes.length / 4 + 1;
  // Node 0 stands for all; the others come in the order in which they are drawn.
  const name = new Uint32Array(count), parent = new Uint32Array(count);
  const total = new Float64Array(count), self = new Float64Array(count);
  const left = new Float64Array(count), filled = new Float64Array(count);
  const depth = new Uint32Array(count), past = new Uint32Array(count).fill(count);
  const hit = new Uint8Array(count);
  total[0] = data.total;
  for (let i = 1; i < count; i++) {
    const at = (i - 1) * 4, up = data.nodes[at + 1];
    name[i] = data.nodes[at]; parent[i] = up;
    total[i] = data.nodes[at + 2]; self[i] = data.nodes[at + 3];
    left[i] = filled[up]; filled[up] += total[i]; filled[i] = left[i];
    depth[i] = depth[up] + 1;
  }
  // A subtree ends where the next node that is no deeper begins.
  const open = [];
  for (let i = 0; i < count; i++) {
    while (open.length && depth[open[open.length - 1]] >= depth[i]) past[open.pop()] = i;
    open.push(i);
  }
  const labelOf = (i) => i === 0 ? "all" : data.names[name[i]][0];
  const moduleOf = (i) => i === 0 ? "" : data.names[name[i]][1];

  function amount(value) {
    if (data.unit === "ns") {
      for (const [scale, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]])
        if (value >= scale) return (value / scale).toPrecision(3) + " " + unit;
      return value.toFixed(0) + " ns";
    }
    return value.toLocaleString("en") + (data.unit === "count" ? "" : " " + data.unit);
  }
  const percent = (value) => (total[0] > 0 ? value / total[0] * 100 : 0).toFixed(2) + " %";

  // A warm colour by module, its lightness by name: the same in every graph.
  function colour(i) {
    if (i === 0) return "hsl(40 15% 75%)";
    const mix = (text) => {
      let h = 2166136261;
      for (let k = 0; k < text.length; k++) h = Math.imul(h ^ text.charCodeAt(k), 16777619);
      return h >>> 0;
    };
    if (labelOf(i).startsWith("[")) return "hsl(210 12% 72%)";
    return `hsl(${mix(moduleOf(i)) % 75 - 10} 78% ${62 + mix(labelOf(i)) % 14}%)`;
  }

  const svg = document.getElementById("graph"), details = document.getElementById("details");
  const reset = document.getElementById("reset"), matched = document.getElementById("matched");
  let zoomed = 0;

  function element(kind, attributes, to) {
    const e = document.createElementNS(SVG, kind);
    for (const key in attributes) e.setAttribute(key, attributes[key]);
    to.appendChild(e);
    return e;
  }
  const describe = (i) => labelOf(i) + (moduleOf(i) ? " (" + moduleOf(i) + ")" : "")
    + ": " + amount(total[i]) + ", " + percent(total[i])
    + (self[i] > 0 ? "; itself " + amount(self[i]) + ", " + percent(self[i]) : "");

  function draw_frame(i, x, width, above) {
    const g = element("g", { class: "frame" + (above ? " above" : "") + (hit[i] ? " hit" : ""),
      "data-node": i, tabindex: 0, role: "treeitem" }, svg);
    g.setAttribute("aria-label", describe(i));
    element("title", {}, g).textContent = describe(i);
    element("rect", { x, y: depth[i] * ROW, width, height: ROW - 1, fill: colour(i), rx: 1 }, g);
    const room = Math.floor((width - 6) / CHAR), label = labelOf(i);
    if (room < 3) return;
    const letters = Array.from(label);
    element("text", { x: x + 3, y: depth[i] * ROW + 13 }, g).textContent =
      letters.length <= room ? label : letters.slice(0, room - 1).join("") + "\u2026";
  }

  function draw() {
    const width = svg.clientWidth || 1200, scale = width / (total[zoomed] || 1);
    let deepest = 0;
    svg.replaceChildren();
    for (let i = zoomed; ; i = parent[i]) {
      if (i !== zoomed) draw_frame(i, 0, width, true);
      if (i === 0) break;
    }
    for (let i = zoomed; i < past[zoomed];) {
      const w = total[i] * scale;
      if (w < LEAST) { i = past[i]; continue; }
      draw_frame(i, (left[i] - left[zoomed]) * scale, w, false);
      deepest = Math.max(deepest, depth[i]);
      i++;
    }
    const height = (deepest + 1) * ROW + 8;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    reset.disabled = zoomed === 0;
    details.textContent = describe(zoomed) + (zoomed === 0 && data.hidden > 0
      ? "; " + data.hidden.toLocaleString("en") + " nodes too small to see are left out" : "");
  }

  function zoom(i) {
    zoomed = i;
    draw();
  }

  function test_of(text) {
    const whole = /^\/(.+)\/$/.exec(text);
    if (whole) {
      try {
        const expression = new RegExp(whole[1], "i");
        return (label) => expression.test(label);
      } catch (error) {
        return null;
      }
    }
    const lower = text.toLowerCase();
    return (label) => label.toLowerCase().includes(lower);
  }

  function search(text) {
    const test = text ? test_of(text) : () => false;
    let sum = 0, found = 0;
    if (!test) { matched.textContent = "not an expression"; return; }
    const is_hit = data.names.map((entry) => test(entry[0]));
    for (let i = 1, covered = 0; i < count; i++) {
      hit[i] = is_hit[name[i]] ? 1 : 0;
      if (!hit[i]) continue;
      found++;
      // What lies under another match is in that one's time.
      if (i >= covered) { sum += total[i]; covered = past[i]; }
    }
    matched.textContent = text ? `${found} frames, ${percent(sum)}` : "";
    draw();
  }

  const frame_of = (event) => event.target.closest("g.frame");
  svg.addEventListener("click", (event) => {
    const g = frame_of(event);
    if (g) zoom(Number(g.dataset.node));
  });
  svg.addEventListener("mouseover", (event) => {
    const g = frame_of(event);
    if (g) details.textContent = describe(Number(g.dataset.node));
  });
  svg.addEventListener("keydown", (event) => {
    const g = frame_of(event);
    if (g && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      zoom(Number(g.dataset.node));
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && zoomed !== 0) zoom(parent[zoomed]);
  });
  reset.addEventListener("click", () => zoom(0));
  document.getElementById("search").addEventListener("input", (event) =>
    search(event.target.value));
  document.getElementById("controls").addEventListener("submit", (event) =>
    event.preventDefault());
  window.addEventListener("resize", draw);
  draw();
})();
</script>
</body>
</html>
]==]

return M
