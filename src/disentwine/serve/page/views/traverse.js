// Traverse: latent traversals of any model, and samples if it generates.

import { ask, newest } from "../api.js";
import { pairs, updateAddress } from "../address.js";
import { button, h, lead, notice, short, announce, title } from "../dom.js";
import { picker } from "../picker.js";
import { decoded, imageFigure } from "../image.js";
import { sliders } from "../sliders.js";

const FIRST = 12;

export async function show(root, { run, address, signal }) {
  const { shape } = run;
  const original = imageFigure("Original", { shape });
  const after = imageFigure("Decoded", { shape, class: "main" });
  const names = Array.from({ length: run.latent_count }, (_, i) => run.latent_names?.[i] ?? `latent ${i}`);
  // Layers of a hierarchy are separate groups, the top one first, with active latents first.
  const groups = run.latent_layers.length
    ? run.latent_layers.map(({ name, latents, first }) => ({ layer: name, latents, first }))
    : [{ layer: "", latents: [...names.keys()], first: run.latent_count <= FIRST + 3 ? run.latent_count : FIRST }];
  let [requested, image] = [null, null];
  let inferred = [];
  // A link may be older than the run and name latents that no longer exist.
  const known = new Set(Object.keys(names));
  let codes = Object.fromEntries(Object.entries(pairs(address.latents)).filter(([i]) => known.has(i)));
  let answered = {};
  let latest = null; // all latents of the last answer
  let controls = [];
  let ranges = null;
  const whole = run.capabilities.includes("quantizes") ? { kind: "ordinal", step: 1 } : {};
  const side = h("section", { class: "side panel" });

  const traverse = newest(`runs/${run.id}/traverse`, {
    signal,
    onanswer: async (answer, body) => {
      if (body.image !== image) return;
      // Codes of a codebook are discrete: the answer has the nearest ones.
      answered = Object.fromEntries(Object.keys(body.latents).map((i) => [i, answer.latents[i]]));
      if (body.latents === codes) {
        codes = answered;
        keep();
      }
      if (!ranges) build((ranges = answer.ranges));
      latest = answer.latents;
      update();
      await after.show(answer.image, "Image decoded from these latents", Object.keys(body.latents).length ? "model" : "model, no change");
      announce(Object.keys(body.latents).map((i) => `${title(names[i])} ${short(answer.latents[i])}`).join(", ") || "No latent is changed.");
    },
    onerror: (error, body) => {
      notice(error.message);
      if (body.image !== image || body.latents !== codes) return; // a newer request decides
      if (!Object.keys(codes).length) return;
      // Return to the last answer; if that is refused too, to no change.
      codes = answered;
      if (error.status) { // 0 if the server does not answer; then it is not asked again
        answered = {};
        changed();
      } else {
        keep();
        update();
      }
    },
  });

  /** Set the sliders to the last answer. */
  function update() {
    const values = (list) => Object.fromEntries(list.map((value, i) => [i, value]));
    for (const one of controls) one.update({ before: values(inferred), after: values(latest ?? inferred), set: codes });
  }

  function build(ranges, all = groups.every(({ latents, first }) => first === latents.length)) {
    const slider = (i, layer) => ({ name: String(i), label: layer ? names[i].replace(`${layer}, `, "") : names[i], low: ranges[i][0], high: ranges[i][1], ...whole });
    const parts = groups.map(({ layer, latents, first }) => ({ layer, of: latents.length, shown: all ? latents : latents.slice(0, first) })).filter(({ shown }) => shown.length);
    const legend = ({ layer, of, shown }) => (layer ? `${title(layer)}${shown.length < of ? `, ${shown.length} of ${of}` : ""}` : whole.kind ? "Codes" : "Latents");
    controls = parts.map((part) => sliders(part.shown.map((i) => slider(i, part.layer)), { onset, legend: legend(part), range: whole.kind ? "codes" : "usual range", undo: "Reset" }));
    const more = !all && button(`Show all ${run.latent_count}`, () => { build(ranges, true); traverse({ image, latents: codes }); });
    side.replaceChildren(...controls.map((one) => one.element), h("div", { class: "tools" }, button("Reset", () => { codes = {}; changed(); }), more || ""));
  }

  function onset(index, value) {
    const { [index]: _, ...others } = codes;
    codes = value === undefined ? others : { ...others, [index]: value };
    changed();
  }

  function keep() {
    updateAddress({ image, latents: Object.entries(codes).map(([i, value]) => `${i}:${Number(value.toPrecision(5))}`).join(",") });
  }

  function changed() {
    keep();
    traverse({ image, latents: codes });
  }

  async function choose(chosen) {
    requested = chosen;
    try {
      const details = await ask(`runs/${run.id}/images/${encodeURIComponent(chosen)}`, { signal });
      if (requested !== chosen) return;
      image = chosen;
      inferred = details.latents ?? [];
      await original.show(details.original, "The original image");
      changed();
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
  }

  const images = await picker({ run, chosen: address.image, signal, onpick: choose });
  const stage = h("section", { class: "stage pair panel", "aria-label": "Images" }, h("div", { class: "images" }, original.element, after.element));
  const said = run.concepts.length ? "Latent traversal: vary one concept with all others fixed, also its effects." : "Latent traversal: vary one latent with all others fixed.";
  root.append(lead("Traverse", said), h("section", { class: "choose" }, images.element), stage, side);
  if (run.capabilities.includes("generates")) root.append(samples(run, signal));
}

/** Images sampled from the prior. */
function samples(run, signal) {
  const grid = h("div", { class: "samples" });
  const sample = async () => {
    try {
      const { images } = await ask(`runs/${run.id}/sample`, { body: { count: 16, do: {} }, signal });
      grid.replaceChildren(...(await Promise.all(images.map((url, i) => decoded(url, `Sample ${i + 1}`)))));
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
  };
  sample();
  return h("section", { class: "sequence panel" }, h("h2", {}, "Samples", button("Sample again", sample)), grid);
}
