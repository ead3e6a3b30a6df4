// Transitions: apply actions to an image, or infer the action between two images.

import { decodeList, encodeList, updateAddress } from "../address.js";
import { ask, upload } from "../api.js";
import { blobOf, button, h, lead, notice, announce, title } from "../dom.js";
import { picker } from "../picker.js";
import { decoded, imageFigure } from "../image.js";

const MOST = 20;
const MOST_LISTED = 8;

export async function show(root, { run, address, signal }) {
  const { shape } = run;
  const labels = new Map(run.actions.map(({ id, label }) => [String(id), label.replace("-", "−")]));
  const now = imageFigure("After actions", { shape, class: "main" });
  const rebuilt = imageFigure("Reconstruction", { shape });
  const truth = imageFigure("Ground truth", { shape });
  const history = h("ol", { class: "frames history" });
  let [requested, image] = [null, null];
  let start = null;
  let applied = decodeList(address.actions).filter((id) => labels.has(id)).slice(0, MOST);
  let shown = null; // the last answer: image, actions, and decoded images from the start on
  let currentQuery = {}; // the newest retrieval request
  let turn = 0;

  const ids = new Map(run.actions.map(({ id }) => [String(id), id]));
  const actions = run.actions.map(({ id }) => button(title(labels.get(String(id))), () => press(String(id)), { class: "action" }));
  const undo = button("Undo", () => { applied = applied.slice(0, -1); applyActions(); });
  const reset = button("Reset", () => { applied = []; applyActions(); });
  const inferButton = button("Infer the last action", () => retrieveLast());
  const answer = h("div", { class: "bars", "aria-live": "polite" });

  function press(id) {
    if (applied.length >= MOST) return notice(`At most ${MOST} actions: undo some or reset.`);
    applied = [...applied, id];
    applyActions();
  }

  function enable() {
    const waiting = shown?.image !== image || shown?.applied !== applied;
    for (const one of actions) one.disabled = !image;
    const none = !image || !applied.length;
    [undo.disabled, reset.disabled, inferButton.disabled] = [none, none, none || waiting];
  }

  async function applyActions() {
    const mine = ++turn;
    updateAddress({ image, actions: encodeList(applied) });
    enable();
    if (currentQuery.last) newQuery();
    try {
      const done = applied.map((id) => ids.get(id));
      const found = done.length ? await ask(`runs/${run.id}/apply`, { body: { image, actions: done }, signal }) : { images: [], truths: null, valid_steps: null };
      if (mine !== turn) return;
      const outside = found.valid_steps !== null && applied.length > found.valid_steps;
      const real = applied.length ? found.truths?.at(-1) ?? null : image.startsWith("t-") ? start : null;
      shown = { image, applied, steps: [start, ...found.images], real, outside };
      enable();
      await draw(mine);
    } catch (error) {
      if (signal.aborted || mine !== turn) return;
      notice(error.message);
      revert();
    }
  }

  /** Show the last answer, unless another action was applied since. */
  async function draw(mine) {
    const last = applied.length ? labels.get(applied.at(-1)) : "no action";
    await now.show(shown.steps.at(-1), `After ${last}`, applied.length ? `after ${last}` : "start image");
    if (mine !== turn) return;
    await truth.show(shown.real, "Image in the data", shown.real ? "from the data" : shown.outside ? "outside the value range" : "not in the data");
    await drawHistory(mine);
    if (mine === turn && applied.length) announce(`${last}: step ${applied.length}.`);
  }

  /** Return to the actions of the last answer, or to none if the image has changed since. */
  function revert() {
    const other = shown?.image !== image && applied.length > 0;
    applied = shown?.image === image ? shown.applied : [];
    if (other) return applyActions();
    updateAddress({ image, actions: encodeList(applied) });
    enable();
    if (shown?.image === image) draw(turn); // the answer may not have been shown yet
  }

  async function drawHistory(mine) {
    const images = await Promise.all(shown.steps.map((url) => decoded(url)));
    if (mine !== turn) return;
    history.replaceChildren(...images.map((one, i) => {
      const label = i ? title(labels.get(applied[i - 1])) : "Start";
      return h("li", {}, button(one, () => { applied = applied.slice(0, i); applyActions(); }, { "aria-label": `Back to step ${i}, ${label}` }), h("span", {}, label));
    }));
    history.scrollLeft = history.scrollWidth;
  }

  /** A new retrieval request: answers to earlier ones are no longer shown. */
  function newQuery(about = {}) {
    answer.replaceChildren();
    return (currentQuery = about);
  }

  async function retrieveLast() {
    const [from, to] = [applied.length - 1, applied.length].map((i) => (i ? `step ${i}` : "the start image"));
    const mine = newQuery({ last: true, words: `From ${from} to ${to}, as decoded by the model:` });
    try {
      const stored = await Promise.all(shown.steps.slice(-2).map((url) => upload(run.id, blobOf(url), signal)));
      await retrieve(stored[0].image, stored[1].image, mine);
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
  }

  async function retrieve(before, after, mine) {
    try {
      const found = await ask(`runs/${run.id}/retrieve`, { body: { before, after }, signal });
      if (mine !== currentQuery) return;
      const rest = found.actions.length - MOST_LISTED;
      answer.replaceChildren(h("p", { class: "muted" }, mine.words), ...found.actions.slice(0, MOST_LISTED).map(({ id, label, probability }) => bar(title(labels.get(String(id)) ?? label), probability ?? 0)),
        rest > 0 ? h("p", { class: "muted" }, `${rest} others are less likely.`) : "");
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
  }

  async function choose(chosen) {
    requested = chosen;
    try {
      const details = await ask(`runs/${run.id}/images/${encodeURIComponent(chosen)}`, { signal });
      if (requested !== chosen) return;
      image = chosen;
      start = details.original;
      rebuilt.show(details.reconstruction, "Reconstruction of the start image", "start image");
      await applyActions();
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
  }

  enable();
  const pair = {};
  let ready = false; // strips choose their first image themselves, which is no request yet
  const pick = (slot) => (chosen) => {
    pair[slot] = chosen;
    if (ready && pair.before && pair.after) retrieve(pair.before, pair.after, newQuery({ words: "Between the two images above:" }));
  };
  const images = await picker({ run, chosen: address.image, signal, onpick: choose, label: "Start image" });
  const before = await picker({ run, signal, onpick: pick("before"), label: "Before" });
  const after = await picker({ run, signal, onpick: pick("after"), label: "After" });
  ready = true;
  root.append(
    lead("Transitions", "Apply actions to an image, or infer the action between two images."),
    h("section", { class: "choose" }, images.element),
    h("section", { class: "stage trio panel", "aria-label": "Images" }, h("div", { class: "images" }, rebuilt.element, now.element, truth.element)),
    h("section", { class: "side panel" }, h("h2", {}, "Apply an action"), h("div", { class: "actions" }, actions), h("div", { class: "tools" }, undo, reset)),
    h("section", { class: "sequence panel", "aria-label": "History" }, h("h2", {}, "History"), history),
    h("section", { class: "retrieval panel" },
      h("h2", {}, "Action retrieval"),
      h("p", { class: "muted" }, "Choose two images, or use the last step above. The model assumes that one of its actions turns the first image into the second; for any other pair the answer is meaningless."),
      h("div", {}, h("h3", {}, "Before"), before.element), h("div", {}, h("h3", {}, "After"), after.element), h("div", { class: "tools" }, inferButton), answer));
}

function bar(label, probability) {
  const percent = `${(100 * probability).toFixed(probability < 0.1 || probability > 0.9 ? 1 : 0)}%`;
  return h("div", { class: "bar-row" }, h("span", {}, label), h("span", { class: "meter", "--share": probability }), h("span", { class: "number" }, percent));
}
