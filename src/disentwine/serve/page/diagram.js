// Causal graph as SVG: causes above effects; removed edges and affected nodes are highlighted.

import { h, s, short, title } from "./dom.js";

const HEIGHT = 46;
const LABEL = { width: 68, height: 18 };
const PLACES = [0.74, 0.5, 0.32, 0.62, 0.22, 0.8, 0.4]; // along an edge, for its numbers
const SAMPLES = Array.from({ length: 15 }, (_, i) => (i + 1) / 16);
const REMOVAL_MARK = 0.7; // along an edge

/** Depth of each node below its causes; a root lies just above its first effect. */
function depths(nodes, edges) {
  const depth = Object.fromEntries(nodes.map((node) => [node, 0]));
  for (let pass = 0; pass < nodes.length; pass++) {
    for (const { source, target } of edges) depth[target] = Math.max(depth[target], depth[source] + 1);
  }
  for (const node of nodes) {
    const effects = edges.filter((edge) => edge.source === node).map((edge) => depth[edge.target]);
    const rooted = edges.every((edge) => edge.target !== node);
    if (rooted && effects.length) depth[node] = Math.min(...effects) - 1;
  }
  return depth;
}

/** Centre of every node, and size of the drawing. */
export function layout(nodes, edges, { most = 4, wide = 132, gap = { x: 22, y: 58 } } = {}) {
  const depth = depths(nodes, edges);
  const layers = [];
  for (const node of nodes) (layers[depth[node]] ??= []).push(node);
  // Wide layers, as of many nodes without edges, are split into rows.
  const rows = layers.filter(Boolean).flatMap((layer) => {
    const parts = Math.ceil(layer.length / most);
    const size = Math.ceil(layer.length / parts);
    return Array.from({ length: parts }, (_, i) => layer.slice(i * size, (i + 1) * size));
  });
  const widest = Math.max(...rows.map((row) => row.length));
  const width = widest * wide + (widest - 1) * gap.x + 8;
  const at = {};
  const order = (row) => {
    const centre = (node) => {
      const above = edges.filter((edge) => edge.target === node && at[edge.source]).map((edge) => at[edge.source].x);
      return above.length ? above.reduce((a, b) => a + b) / above.length : width / 2;
    };
    return row.map((node) => [node, centre(node)]).sort((a, b) => a[1] - b[1]).map(([node]) => node);
  };
  rows.forEach((row, level) => {
    const step = width / row.length;
    order(row).forEach((node, i) => (at[node] = { x: step * (i + 0.5), y: 4 + HEIGHT / 2 + level * (HEIGHT + gap.y) }));
  });
  return { at, width, height: 8 + rows.length * HEIGHT + (rows.length - 1) * gap.y };
}

function edgePath(from, to, lane) {
  const [x1, y1, x2, y2] = [from.x + lane.out, from.y + HEIGHT / 2, to.x + lane.in, to.y - HEIGHT / 2 - 7];
  const bend = Math.max(22, (y2 - y1) * 0.5);
  const cubic = (t, a, b, c, d) => (1 - t) ** 3 * a + 3 * t * (1 - t) ** 2 * b + 3 * t ** 2 * (1 - t) * c + t ** 3 * d;
  const point = (t) => [cubic(t, x1, x1, x2, x2), cubic(t, y1, y1 + bend, y2 - bend, y2)];
  return { d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`, tip: [x2, y2 + 6], point };
}

/** Distribute the ends of edges along the side of a node, ordered by their other end. */
function lanes(edges, at, { most, side }) {
  const spread = (edge, mine, theirs) => {
    const mates = edges.filter((other) => other[mine] === edge[mine]).sort((a, b) => at[a[theirs]].x - at[b[theirs]].x);
    return (mates.indexOf(edge) - (mates.length - 1) / 2) * Math.min(most, side / mates.length);
  };
  return (edge) => ({ out: spread(edge, "source", "target"), in: spread(edge, "target", "source") });
}

/** Positions of the edge labels, as far as possible from other labels and edges. */
function places(paths) {
  const taken = [];
  const apart = ([x, y], [a, b]) => Math.max(Math.abs(a - x) / LABEL.width, Math.abs(b - y) / LABEL.height);
  return paths.map((path) => {
    const lines = paths.filter((other) => other !== path).flatMap(({ point }) => SAMPLES.map(point));
    const room = (place) => 4 * Math.min(1, ...taken.map((other) => apart(place, other))) + Math.min(0.8, ...lines.map((other) => apart(place, other)));
    const found = PLACES.map(path.point).reduce((best, place) => (room(place) > room(best) + 0.2 ? place : best));
    taken.push(found);
    return found;
  });
}

/**
 * Draw {nodes, edges: [{source, target, weight, confidence, kind}]}.
 * labels: {node: text}; weights: label edges with weight and confidence; onpick(node): called on a click.
 */
export function diagram({ nodes, edges }, { labels = {}, weights = false, onpick, most } = {}) {
  const name = (node) => title(labels[node] ?? node);
  const wide = Math.min(210, Math.max(weights ? 168 : 120, ...nodes.map((node) => 7.6 * name(node).length + 26)));
  const gap = weights ? { x: 90, y: 92 } : { x: 20, y: 60 };
  const { at, width, height } = layout(nodes, edges, { most, wide, gap });
  const lane = lanes(edges, at, { most: weights ? 72 : 26, side: wide - 24 });
  const heaviest = Math.max(...edges.map((edge) => Math.abs(edge.weight ?? 1)), 1e-9);
  const paths = edges.map((edge) => edgePath(at[edge.source], at[edge.target], lane(edge)));
  const numbers = places(paths);

  const lines = edges.map((edge, i) => {
    const { d, tip, point } = paths[i];
    const strength = 1.4 + 2.6 * (Math.abs(edge.weight ?? 1) / heaviest);
    const [x, y] = numbers[i];
    const removal = s("g", { class: "removal", transform: `translate(${point(REMOVAL_MARK)})` },
      s("circle", { r: 11 }), s("path", { d: "M-5-5L5 5M5-5L-5 5" }));
    const text = weights && s("g", { class: "weight", transform: `translate(${x} ${y})` },
      s("rect", { x: -LABEL.width / 2, y: -LABEL.height / 2, width: LABEL.width, height: LABEL.height, rx: 4 }), s("text", { y: 4 }, edgeText(edge)));
    const group = s("g", { class: `edge ${edge.kind ?? ""}`, "data-edge": `${edge.source}>${edge.target}` },
      s("path", { class: "line", d, "--strength": strength, "--confidence": edge.confidence ?? 1 }),
      s("path", { class: "head", d: `M${tip[0] - 5.5} ${tip[1] - 9}h11L${tip[0]} ${tip[1]}z` }), removal);
    return { edge, group, text };
  });
  const boxes = nodes.map((node) => {
    const { x, y } = at[node];
    const value = s("text", { class: "value", y: 14 });
    const label = s("text", { class: "label", y: onpick ? -3 : 4 }, name(node));
    const group = s("g", { class: "node", "data-node": node, transform: `translate(${x} ${y})`, onclick: onpick && (() => onpick(node)) },
      s("rect", { x: -wide / 2, y: -HEIGHT / 2, width: wide, height: HEIGHT, rx: 10 }), label, value);
    return { node, group, value, label };
  });
  const svg = s("svg", { class: `diagram${onpick ? " active" : ""}`, viewBox: `0 0 ${width} ${height}`, role: "img", "--wide": `${width}px` },
    lines.map(({ group }) => group), lines.map(({ text }) => text), boxes.map(({ group }) => group));

  /** set, affected: names of nodes; removed: [[source, target]]; values: {node: text}. */
  function update({ set = [], affected = [], removed = [], values = {} }) {
    const isRemoved = ({ source, target }) => removed.some(([a, b]) => a === source && b === target);
    for (const { edge, group } of lines) {
      group.classList.toggle("removed", isRemoved(edge));
      group.classList.toggle("affected", !isRemoved(edge) && affected.includes(edge.target) && (set.includes(edge.source) || affected.includes(edge.source)));
    }
    for (const { node, group, value } of boxes) {
      group.classList.toggle("set", set.includes(node));
      group.classList.toggle("affected", affected.includes(node));
      value.textContent = values[node] ?? "";
    }
    svg.setAttribute("aria-label", describe(edges, removed, name));
  }
  update({});
  return { element: h("div", { class: "diagram-box" }, svg), update };
}

const edgeText = ({ weight, confidence }) =>
  [weight !== null && weight !== undefined && short(weight, 2), confidence !== null && confidence !== undefined && `${Math.round(100 * confidence)}%`].filter(Boolean).join(" · ");

function describe(edges, removed, name) {
  const say = (list) => list.map(([a, b]) => `${name(a)} causes ${name(b)}`).join(", ");
  const all = `Causal graph: ${say(edges.map((edge) => [edge.source, edge.target])) || "no edges"}.`;
  return removed.length ? `${all} Removed by the intervention: ${say(removed)}.` : all;
}
