// Graph: learnt graph with weights and confidence, and the true graph.

import { diagram } from "../diagram.js";
import { h, lead, short, title } from "../dom.js";

const key = ({ source, target }) => `${source}>${target}`;

export async function show(root, { run }) {
  const { graph: learnt, true_graph: truth } = run;
  const labels = Object.fromEntries(run.concepts.map(({ name, label }) => [name, label]));
  const true_ = truth && new Set(truth.edges.map(key));
  const found = new Set((learnt?.edges ?? []).map(key));
  const kind = (edge) => (!true_ ? "" : true_.has(key(edge)) ? "correct" : true_.has(`${edge.target}>${edge.source}`) ? "reversed" : "extra");
  let numbers = "";
  const none = run.actions.length ? "This model learns a graph over codes for each action; see its report." : "This model learns no graph.";
  const words = learnt ? "Arrows lead from cause to effect, labelled with weight and confidence." : `${none} The graph below is the ground truth.`;
  root.append(lead("Graph", words));
  if (learnt) {
    const missing = truth ? truth.edges.filter((edge) => !found.has(key(edge)) && !found.has(`${edge.target}>${edge.source}`)) : [];
    const edges = learnt.edges.map((edge) => ({ ...edge, kind: kind(edge) }));
    root.append(panel("Learnt graph", sentence(edges, missing, truth), diagram({ ...learnt, edges }, { labels, weights: true })));
    numbers = table(edges, missing, labels, Boolean(truth));
  }
  if (truth) root.append(panel("Ground truth", "The graph that generated the data.", diagram({ ...truth, edges: truth.edges.map((edge) => ({ ...edge, weight: 1 })) }, { labels })));
  root.append(numbers);
}

function panel(heading, text, drawing) {
  return h("section", { class: "panel" }, h("h2", {}, heading), h("p", { class: "muted" }, text), drawing.element);
}

function sentence(edges, missing, truth) {
  if (!truth) return "Line width: weight. Fainter lines: lower confidence.";
  const count = (kind) => edges.filter((edge) => edge.kind === kind).length;
  const parts = [[count("correct"), "correct"], [count("reversed"), "reversed"], [count("extra"), "extra"], [missing.length, "missing"]];
  const said = parts.filter(([n]) => n).map(([n, what]) => `${n} ${n === 1 ? "edge" : "edges"} ${what}`).join(", ");
  return `${said || "No edges"}. Line width: weight. Fainter lines: lower confidence.`;
}

const MATCH = { correct: "yes", reversed: "no, reversed", extra: "no, not in the true graph", missing: "no, missing" };

function table(edges, absent, labels, hasTruth) {
  const name = (node) => title(labels[node] ?? node);
  const percent = (value) => (value === null || value === undefined ? "–" : `${Math.round(100 * value)}%`);
  const all = [...edges, ...absent.map((edge) => ({ ...edge, weight: null, confidence: null, kind: "missing" }))];
  const rows = all.map((edge) => h("tr", { class: edge.kind },
    h("th", { scope: "row" }, `${name(edge.source)} → ${name(edge.target)}`),
    h("td", { class: "number" }, short(edge.weight, 2)), h("td", { class: "number" }, percent(edge.confidence)),
    hasTruth && h("td", { class: "match" }, MATCH[edge.kind])));
  const heads = ["Edge", "Weight", "Confidence", hasTruth && "Match"].filter(Boolean);
  return h("section", { class: "panel wide" }, h("table", {}, h("caption", { class: "visually-hidden" }, "Edges"),
    h("thead", {}, h("tr", {}, heads.map((text, i) => h("th", { scope: "col", class: i === 1 || i === 2 ? "number" : null }, text)))), h("tbody", {}, rows)));
}
