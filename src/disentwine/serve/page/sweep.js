// Sweep: images of one concept over its range, with the other interventions fixed.

import { newest } from "./api.js";
import { button, h, notice, title } from "./dom.js";
import { decoded } from "./image.js";
import { formatValue } from "./sliders.js";

const COUNT = 9;
const REST = 250; // milliseconds without a change before a sweep is requested

export function sweepStrip(run, { signal, chosen, onpick, onconcept }) {
  const options = run.concepts.map(({ name, label }) => h("option", { value: name }, title(label ?? name)));
  const select = h("select", { id: "sweep" }, options);
  if (run.concepts.some(({ name }) => name === chosen)) select.value = chosen;
  const frames = h("ol", { class: "frames" });
  const heading = h("h2", {}, h("label", { for: "sweep" }, "Sweep"), select);
  const below = h("p", { class: "muted", hidden: true }, "Above: model. Below: ground truth. Click an image to set its value.");
  const element = h("section", { class: "sequence panel", "aria-label": "Sweep" }, heading, frames, below);
  let [image, intervention, later, key] = [null, {}, 0, ""];

  const sweep = newest(`runs/${run.id}/sweep`, {
    signal,
    onanswer: async ({ values, images: urls, truths }, { concept }) => {
      const swept = run.concepts.find(({ name }) => name === concept);
      const images = await Promise.all(urls.map((url) => decoded(url)));
      const true_ = await Promise.all((truths ?? []).map((url) => decoded(url, "Ground truth")));
      if (concept !== select.value) return;
      frames.replaceChildren(...values.map((value, i) => {
        const words = `${formatValue(swept, value)} ${swept.unit ?? ""}`.trim();
        const set = button([images[i], true_[i] ?? ""], () => onpick(concept, value), { "aria-label": `Set ${title(concept)} to ${words}` });
        return h("li", {}, set, h("span", {}, formatValue(swept, value)));
      }));
      below.hidden = !true_.length;
    },
    onerror: (error) => {
      key = ""; // so that it is requested again
      notice(error.message);
    },
  });

  function send() {
    const { [select.value]: _, ...others } = intervention;
    sweep({ image, concept: select.value, do: others, count: COUNT });
  }

  function update(nextImage, nextDo) {
    [image, intervention] = [nextImage, nextDo];
    // Changing the swept concept itself does not change the sweep.
    const { [select.value]: _, ...others } = intervention;
    const next = JSON.stringify([image, select.value, others]);
    if (!image || next === key) return;
    key = next;
    clearTimeout(later);
    later = setTimeout(() => signal.aborted || send(), frames.childElementCount ? REST : 0);
  }

  select.addEventListener("change", () => {
    onconcept(select.value);
    update(image, intervention);
  });
  return { element, update };
}
