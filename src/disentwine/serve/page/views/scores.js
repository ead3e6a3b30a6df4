// Scores: metrics of the run and their chance levels.

import { ask } from "../api.js";
import { h, lead, short, title } from "../dom.js";

export async function show(root, { run, signal }) {
  const scores = await ask(`runs/${run.id}/scores`, { signal });
  root.append(lead("Scores", "Metrics on held-out images."));
  if (!scores.length) {
    const command = h("code", {}, `disentwine evaluate …/${run.name}`);
    root.append(h("div", { class: "panel empty" }, h("p", {}, "No scores yet. Run ", command, " with the path of the run folder, then reload this view.")));
    return;
  }
  const rows = scores.map(({ name, value, n, noise_floor: floor, about }) => {
    const [metric, concept] = name.split(":");
    const words = [title(metric.replaceAll("-", " ")), concept && h("span", { class: "of" }, ` ${concept.replaceAll("_", " ")}`)].filter(Boolean);
    return h("tr", {}, h("th", { scope: "row" }, words, about ? h("small", {}, about) : ""),
      h("td", { class: "number strong" }, short(value)), h("td", { class: "number" }, short(floor)),
      h("td", { class: "gauge" }, gauge(value, floor)), h("td", { class: "number" }, n === null ? "–" : n.toLocaleString("en")));
  });
  const heads = [["Score"], ["Value", "number"], ["Noise floor", "number"], ["0 to 1"], ["Images", "number"]];
  root.append(h("section", { class: "panel wide" },
    h("p", { class: "muted" }, "Noise floor: the chance level (score with shuffled latents) where larger is better, the lowest reachable value where smaller is better."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of scores" },
      h("table", {}, h("caption", { class: "visually-hidden" }, `Scores of ${run.name}`),
        h("thead", {}, h("tr", {}, heads.map(([text, kind]) => h("th", { scope: "col", class: kind ?? null }, text)))), h("tbody", {}, rows)))));
}

/** A bar for scores between 0 and 1 that have a chance level. */
function gauge(value, floor) {
  if (floor === null || floor === undefined || value === null || value < 0 || value > 1) return "";
  return h("span", { class: "meter floor", "--share": value, "--floor": Math.min(1, Math.max(0, floor)), "aria-hidden": "true" });
}
