// Transitions: press an action again and again; or give two pictures and ask which action it was.

import { joined, parted, remember } from "../address.js";
import { ask, upload } from "../api.js";
import { blobOf, button, h, lead, notice, speak, title } from "../dom.js";
import { picker } from "../picker.js";
import { decoded, picture } from "../image.js";

const MOST = 20;
const MOST_TOLD = 8;

export async function show(root, { run, address, signal }) {
  const { shape } = run;
  const labels = new Map(run.actions.map(({ id, label }) => [String(id), label.replace("-", "−")]));
  const now = picture("Now", { shape, class: "main" });
  const rebuilt = picture("Rebuilt", { shape });
  const truth = picture("Truth", { shape });
  const history = h("ol", { class: "frames history" });
  let [wanted, image] = [null, null];
  let start = null;
  let pressed = parted(address.actions).filter((id) => labels.has(id)).slice(0, MOST);
  let shown = null; // what was last answered: of which image, after which actions, and its pictures, the start first
  let asked = {}; // the newest question which action it was
  let turn = 0;

  const ids = new Map(run.actions.map(({ id }) => [String(id), id]));
  const actions = run.actions.map(({ id }) => button(title(labels.get(String(id))), () => press(String(id)), { class: "action" }));
  const undo = button("Undo", () => { pressed = pressed.slice(0, -1); act(); });
  const reset = button("Start again", () => { pressed = []; act(); });
  const guess = button("Which action was the last one?", () => retrieveLast());
  const answer = h("div", { class: "bars", "aria-live": "polite" });

  function press(id) {
    if (pressed.length >= MOST) return notice(`After ${MOST} actions, start again or undo some.`);
    pressed = [...pressed, id];
    act();
  }

  function enable() {
    const waiting = shown?.image !== image || shown?.pressed !== pressed;
    for (const one of actions) one.disabled = !image;
    const none = !image || !pressed.length;
    [undo.disabled, reset.disabled, guess.disabled] = [none, none, none || waiting];
  }

  async function act() {
    const mine = ++turn;
    remember({ image, actions: joined(pressed) });
    enable();
    if (asked.last) question();
    try {
      const done = pressed.map((id) => ids.get(id));
      const found = done.length ? await ask(`runs/${run.id}/apply`, { body: { image, actions: done }, signal }) : { images: [], truths: null, valid_steps: null };
      if (mine !== turn) return;
      const beyond = found.valid_steps !== null && pressed.length > found.valid_steps;
      const real = pressed.length ? found.truths?.at(-1) ?? null : image.startsWith("t-") ? start : null;
      shown = { image, pressed, steps: [start, ...found.images], real, beyond };
      enable();
      await draw(mine);
    } catch (error) {
      if (signal.aborted || mine !== turn) return;
      notice(error.message);
      takeBack();
    }
  }

  /** What was last answered, unless something was pressed since. */
  async function draw(mine) {
    const last = pressed.length ? labels.get(pressed.at(-1)) : "the start";
    await now.show(shown.steps.at(-1), `After ${last}`, pressed.length ? `after ${last}` : "the start");
    if (mine !== turn) return;
    await truth.show(shown.real, "What the data have", shown.real ? "from the data" : shown.beyond ? "beyond the last value" : "not known");
    await drawHistory(mine);
    if (mine === turn && pressed.length) speak(`${last}: step ${pressed.length}.`);
  }

  /** What is pressed is what was last answered; nothing, where the image is another one since. */
  function takeBack() {
    const other = shown?.image !== image && pressed.length > 0;
    pressed = shown?.image === image ? shown.pressed : [];
    if (other) return act();
    remember({ image, actions: joined(pressed) });
    enable();
    if (shown?.image === image) draw(turn); // what was answered may not have been drawn yet
  }

  async function drawHistory(mine) {
    const images = await Promise.all(shown.steps.map((url) => decoded(url)));
    if (mine !== turn) return;
    history.replaceChildren(...images.map((one, i) => {
      const label = i ? title(labels.get(pressed[i - 1])) : "Start";
      return h("li", {}, button(one, () => { pressed = pressed.slice(0, i); act(); }, { "aria-label": `Back to step ${i}, ${label}` }), h("span", {}, label));
    }));
    history.scrollLeft = history.scrollWidth;
  }

  /** A new question: what was answered to others, or will be, is no longer shown. */
  function question(about = {}) {
    answer.replaceChildren();
    return (asked = about);
  }

  async function retrieveLast() {
    const [from, to] = [pressed.length - 1, pressed.length].map((i) => (i ? `step ${i}` : "the start"));
    const mine = question({ last: true, words: `From ${from} to ${to}, as the model drew them:` });
    try {
      const kept = await Promise.all(shown.steps.slice(-2).map((url) => upload(run.id, blobOf(url), signal)));
      await retrieve(kept[0].image, kept[1].image, mine);
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
  }

  async function retrieve(before, after, mine) {
    try {
      const found = await ask(`runs/${run.id}/retrieve`, { body: { before, after }, signal });
      if (mine !== asked) return;
      const rest = found.actions.length - MOST_TOLD;
      answer.replaceChildren(h("p", { class: "quiet" }, mine.words), ...found.actions.slice(0, MOST_TOLD).map(({ id, label, probability }) => bar(title(labels.get(String(id)) ?? label), probability ?? 0)),
        rest > 0 ? h("p", { class: "quiet" }, `${rest} others are less likely.`) : "");
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
  }

  async function choose(chosen) {
    wanted = chosen;
    try {
      const facts = await ask(`runs/${run.id}/images/${encodeURIComponent(chosen)}`, { signal });
      if (wanted !== chosen) return;
      image = chosen;
      start = facts.original;
      rebuilt.show(facts.reconstruction, "What the model keeps of the start", "the start");
      await act();
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
  }

  enable();
  const pair = {};
  let ready = false; // strips choose their first picture themselves, which is no question yet
  const pick = (slot) => (chosen) => {
    pair[slot] = chosen;
    if (ready && pair.before && pair.after) retrieve(pair.before, pair.after, question({ words: "Of the two pictures above:" }));
  };
  const images = await picker({ run, chosen: address.image, signal, onpick: choose, label: "Start from" });
  const before = await picker({ run, signal, onpick: pick("before"), label: "Before" });
  const after = await picker({ run, signal, onpick: pick("after"), label: "After" });
  ready = true;
  root.append(
    lead("Transitions", "Press an action, and see what becomes of the picture; or show two pictures, and see which action it was."),
    h("section", { class: "choose" }, images.element),
    h("section", { class: "stage trio panel", "aria-label": "Pictures" }, h("div", { class: "pictures" }, rebuilt.element, now.element, truth.element)),
    h("section", { class: "side panel" }, h("h2", {}, "Press an action"), h("div", { class: "actions" }, actions), h("div", { class: "tools" }, undo, reset)),
    h("section", { class: "film panel", "aria-label": "History" }, h("h2", {}, "What happened"), history),
    h("section", { class: "asked panel" },
      h("h2", {}, "Which action was it?"),
      h("p", { class: "quiet" }, "Choose two pictures, or ask about the last step above. That one of the actions made the second of the first is taken for granted: of any other two pictures the answer says nothing."),
      h("div", {}, h("h3", {}, "Before"), before.element), h("div", {}, h("h3", {}, "After"), after.element), h("div", { class: "tools" }, guess), answer));
}

function bar(label, probability) {
  const percent = `${(100 * probability).toFixed(probability < 0.1 || probability > 0.9 ? 1 : 0)}%`;
  return h("div", { class: "bar-row" }, h("span", {}, label), h("span", { class: "meter", "--share": probability }), h("span", { class: "number" }, percent));
}
