// Intervene: set concepts of one image and show the counterfactual.

import { flush, updateAddress } from "../address.js";
import { ask, newest } from "../api.js";
import { diagram } from "../diagram.js";
import { blobOf, button, h, lead, notice, save, short, announce, title } from "../dom.js";
import { sweepStrip } from "../sweep.js";
import { picker } from "../picker.js";
import { imageFigure } from "../image.js";
import { formatValue, sliders } from "../sliders.js";

const HINT = "Set a concept: its effects are recomputed, its causes stay unchanged.";
const LEAD = "What would this image look like under an intervention? Set a concept to see the counterfactual.";

export async function show(root, { run, address, signal }) {
  const known = new Map(run.concepts.map((concept) => [concept.name, concept]));
  const units = (name) => known.get(name)?.unit ?? "";
  const say = (name) => title(known.get(name)?.label ?? name);
  const textOf = (name, value) => formatValue(known.get(name), value);
  let [requested, image] = [null, null];
  let details = null; // the server's details of the image
  let last = null; // the newest answer
  let intervention = Object.fromEntries(Object.entries(address.do).filter(([name]) => known.has(name)));

  const { shape } = run;
  const original = imageFigure("Original", { shape });
  const after = imageFigure("Counterfactual", { shape, class: "main" });
  const truth = run.simulator && imageFigure("Ground truth", { shape });
  const difference = run.simulator && imageFigure("Difference ×4", { shape, class: "difference" });
  const comparison = h("p");
  const controls = sliders(run.concepts, { onset, legend: "Concepts" });
  const labels = Object.fromEntries(run.concepts.map(({ name, label }) => [name, label]));
  const graph = run.graph && diagram(run.graph, { labels, onpick: controls.focus, most: 3 });
  const sweep = sweepStrip(run, { signal, chosen: address.sweep, onpick: onset, onconcept: (name) => updateAddress({ sweep: name }) });

  const counterfactual = newest(`runs/${run.id}/do`, {
    signal,
    onanswer: async (answer, body) => {
      if (body.image !== image || !Object.keys(intervention).length) return;
      last = { ...answer, do: body.do };
      await draw();
      if (body.do === intervention) stage.setAttribute("aria-busy", "false");
    },
    onerror: (error, body) => {
      notice(error.message);
      if (body.image !== image || body.do !== intervention) return; // a newer request decides
      // Sliders and address return to the last answer, which is still shown.
      intervention = last?.do ?? {};
      updateAddress({ do: intervention });
      sweep.update(image, intervention);
      draw().then(() => stage.setAttribute("aria-busy", "false"));
    },
  });

  function onset(name, value) {
    const { [name]: _, ...others } = intervention;
    intervention = value === undefined ? others : { ...others, [name]: value };
    changed();
  }

  function changed() {
    updateAddress({ do: intervention, image });
    if (!details) return;
    stage.setAttribute("aria-busy", "true");
    if (Object.keys(intervention).length) counterfactual({ image, do: intervention });
    else {
      last = null;
      draw().then(() => stage.setAttribute("aria-busy", "false"));
    }
    controls.update({ before: details.values ?? {}, after: last?.after ?? details.values ?? {}, set: intervention, affected: last?.affected });
    sweep.update(image, intervention);
  }

  async function choose(chosen) {
    requested = chosen;
    try {
      const found = await ask(`runs/${run.id}/images/${encodeURIComponent(chosen)}`, { signal });
      if (requested !== chosen) return;
      image = chosen;
      details = found;
      last = null;
      await draw({ keep: Object.keys(intervention).length > 0 });
      changed();
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
  }

  async function draw({ keep = false } = {}) {
    const answer = Object.keys(intervention).length ? last : null;
    const done = answer?.do ?? intervention; // the sliders may already show a newer intervention
    const set = Object.keys(done);
    const before = answer?.before ?? details.values ?? {};
    const now = answer?.after ?? before;
    const affected = answer?.affected ?? [];
    const words = set.map((name) => `${say(name)} ${textOf(name, done[name])} ${units(name)}`.trim()).join(", ");
    controls.update({ before, after: now, set: intervention, affected });
    const values = Object.fromEntries(Object.keys(now).map((name) => [name, valueText(textOf(name, before[name]), textOf(name, now[name]), units(name))]));
    graph?.update({ set, affected, removed: answer?.removed_edges ?? [], values });
    const real = answer ? answer.truth : details.truth && details.original;
    if (keep) return original.show(details.original, "The original image");
    await Promise.all([
      original.show(details.original, "The original image"),
      after.show(answer?.image ?? details.reconstruction, answer ? `Counterfactual with ${words}` : "Reconstruction of the original image", answer ? "model" : "unchanged"),
      truth && truth.show(real, "Ground truth of the simulator", real ? "simulator" : "unknown for this image"),
      difference && difference.show(answer?.difference ?? null, "Difference between model and ground truth", answer?.error ? `error ${short(answer.error.model, 2)}` : ""),
    ]);
    const beyond = answer?.outside_range ?? [];
    comparison.replaceChildren(...compareErrors(answer), beyond.length ? h("span", { class: "beyond" }, `${beyond.map(say).join(", ")}: outside the training range, so the image is an extrapolation.`) : "");
    if (answer) announce(`${words}. ${affected.length ? `Affected: ${affected.map((name) => `${say(name)} to ${textOf(name, now[name])} ${units(name)}`).join(", ")}.` : "No other concept is affected."} ${comparison.textContent}`);
  }

  const tools = h("div", { class: "tools" },
    button("Reset", () => { intervention = {}; changed(); }),
    button("Copy link", copyLink),
    button("Save image", () => after.url && save(blobOf(after.url), `${run.name}-${image}-counterfactual.png`), { "aria-label": "Download the counterfactual as PNG" }),
    button("Save values", () => details && save(new Blob([JSON.stringify(summary(), null, 2)], { type: "application/json" }), `${run.name}-${image}.json`), { "aria-label": "Download the values as JSON" }));

  async function copyLink() {
    flush();
    try {
      await navigator.clipboard.writeText(location.href);
      notice(image?.startsWith("u-") ? "Link copied. Your uploaded image is kept for a limited time only." : "Link copied.", { kind: "done" });
    } catch {
      notice("Copy the address of this page instead.", { kind: "done" });
    }
  }

  function summary() {
    const { before = details.values, after: values = details.values, error = null, removed_edges = [], affected = [], do: done = {} } = last ?? {};
    return { run: run.name, model: run.model, data: run.data, image, do: done, before, after: values, error, removed_edges, affected };
  }

  const stage = h("section", { class: `stage panel${truth ? "" : " pair"}`, "aria-label": "Images" },
    h("div", { class: "images" }, [original, after, truth, difference].filter(Boolean).map((one) => one.element)));
  const side = h("section", { class: "side panel" }, controls.element);
  const words = h("section", { class: "comparison panel", "aria-label": "Error" }, comparison, tools);
  const causes = graph && h("section", { class: "causes panel", "aria-label": "Graph" }, h("h2", {}, "Causal graph"), graph.element);
  const images = await picker({ run, chosen: address.image, signal, onpick: choose });
  root.append(lead("Intervene", LEAD), h("section", { class: "choose" }, images.element), stage, side, causes ?? "", words, sweep.element);
}

function valueText(before, now, unit) {
  const to = `${now}${unit === "degrees" ? "°" : ""}`;
  return before === now ? to : `${before} → ${to}`;
}

function compareErrors(answer) {
  if (!answer) return [h("span", { class: "muted" }, HINT)];
  if (!answer.error) return [];
  const { model, unchanged } = answer.error;
  const times = unchanged / model;
  const closer = times >= 1.05 ? `${short(times, 2)} times closer to the ground truth than the unchanged image` : "no closer to the ground truth than the unchanged image";
  return [h("b", {}, title(closer)), h("span", { class: "muted" }, `Mean squared error ${short(model, 2)}; of the unchanged image ${short(unchanged, 2)}.`)];
}
