// Compare: two runs on one image under the same intervention.

import { flush, format, read, updateAddress } from "../address.js";
import { ask, newest, upload } from "../api.js";
import { blobOf, button, h, lead, notice, short, announce } from "../dom.js";
import { picker } from "../picker.js";
import { imageFigure } from "../image.js";
import { sliders } from "../sliders.js";

export async function show(root, { run, runs, address, signal }) {
  const others = runs.filter((one) => one.id !== run.id && one.capabilities.includes("intervenes"));
  const alike = others.find((one) => one.data === run.data) ?? others[0];
  const other = await ask(`runs/${others.find((one) => one.id === address.other)?.id ?? alike.id}`, { signal });
  const shared = run.concepts.filter(({ name }) => other.concepts.some((concept) => concept.name === name));
  let intervention = Object.fromEntries(Object.entries(address.do).filter(([name]) => shared.some((concept) => concept.name === name)));
  let agreed = {}; // the last intervention that both runs have answered
  let latest = null; // the last answer of the first run
  let [requested, image] = [null, null];
  const original = imageFigure("Original", { shape: run.shape });
  const truth = run.simulator && imageFigure("Ground truth", { shape: run.shape });
  const controls = sliders(shared, { onset, legend: "Shared concepts" });
  const sides = [side(run, { answers: (answer) => first(answer) }), side(other, {})];

  function first(answer) {
    latest = answer;
    update();
    truth?.show(answer.truth, "Ground truth of the simulator", answer.truth ? "simulator" : "unknown for this image");
  }

  /** Set the sliders to the last answer. */
  function update() {
    if (latest) controls.update({ before: latest.before, after: latest.after, set: intervention, affected: latest.affected });
  }

  /** One run: its counterfactual, the difference from the ground truth and the error; `same` is its id of the image. */
  function side(one, { answers }) {
    const made = imageFigure("Counterfactual", { shape: one.shape, class: "main" });
    const difference = one.simulator && imageFigure("Difference ×4", { shape: one.shape, class: "difference" });
    let [same, answered] = [null, null];
    const ask_ = newest(`runs/${one.id}/do`, {
      signal,
      onanswer: async (answer, body) => {
        if (body.image !== same) return;
        answered = body.do;
        if (sides.every((each) => each.answered === answered)) agreed = answered;
        answers?.(answer);
        const words = answer.error ? `error ${short(answer.error.model, 2)}` : "model";
        await Promise.all([made.show(answer.image, `Counterfactual of ${one.name}`, words), difference && difference.show(answer.difference, "Difference between model and ground truth", answer.difference ? "" : "unknown")]);
        announce(`${one.name}: ${words}`);
      },
      onerror: (error, body) => {
        notice(`${one.name}: ${error.message}`);
        if (body.image !== same || body.do !== intervention) return; // a newer request decides
        if (!Object.keys(intervention).length) return;
        // Both return to the last intervention that both have answered; if that is refused too, to none.
        intervention = agreed;
        if (error.status) { // 0 if the server does not answer; then it is not asked again
          agreed = {};
          send();
        } else {
          updateAddress({ do: intervention });
          update();
        }
      },
    });
    return {
      element: h("section", { class: "panel", "aria-label": one.name }, h("h2", {}, one.name), h("p", { class: "muted" }, `${one.model} on ${one.data}`),
        h("div", { class: "images" }, made.element, difference ? difference.element : "")),
      get answered() { return answered; },
      use: (id) => ([same, answered] = [id, null]),
      send: () => same && ask_({ image: same, do: intervention }),
    };
  }

  function onset(name, value) {
    const { [name]: _, ...others } = intervention;
    intervention = value === undefined ? others : { ...others, [name]: value };
    send();
  }

  function send() {
    updateAddress({ do: intervention, image, other: other.id });
    sides.forEach((one) => one.send());
  }

  async function choose(chosen) {
    requested = chosen;
    try {
      const path = `images/${encodeURIComponent(chosen)}`;
      const [mine, theirs] = await Promise.all([
        ask(`runs/${run.id}/${path}`, { signal }),
        ask(`runs/${other.id}/${path}`, { signal }).catch(() => null),
      ]);
      // The same id may be another image there, as with other data or another split: then the image is uploaded.
      const same = theirs?.original === mine.original ? chosen : (await upload(other.id, blobOf(mine.original), signal)).image;
      if (requested !== chosen) return;
      image = chosen;
      original.show(mine.original, "The original image");
      sides[0].use(chosen);
      sides[1].use(same);
      send();
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
  }

  const select = h("select", { id: "other", onchange: change },
    others.map((one) => h("option", { value: one.id }, `${one.name} (${one.model}, ${one.data})`)));
  select.value = other.id;
  function change() {
    flush();
    location.hash = format({ ...read(), other: select.value });
  }
  const images = await picker({ run, chosen: address.image, signal, onpick: choose });
  root.append(lead("Compare", "Two models, the same image and the same intervention."),
    h("section", { class: "choose" }, images.element),
    h("section", { class: "side panel" }, h("div", { class: "images" }, original.element, truth ? truth.element : ""), controls.element,
      h("div", { class: "tools" }, button("Reset", () => { intervention = {}; send(); }), h("label", {}, "Other run ", select))),
    ...sides.map((one) => one.element));
}
