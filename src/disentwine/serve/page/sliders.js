// One slider per concept, in its unit: inferred value, training range, intervention, affected value.

import { button, h, short, title } from "./dom.js";

const STEPS = 200;
const BEYOND = 0.06; // extension of a slider beyond the training range, as a fraction of it

/** A round step: 1, 2 or 5 times a power of ten. */
export function roundStep(span, steps = STEPS) {
  const raw = span / steps || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
}

/** The index of the nearest category, or the value itself if there are no categories. */
const nearest = (values, value) => (values.length ? Math.min(values.length - 1, Math.max(0, Math.round(value))) : value);

/** Ends and step of a slider, and how its values are written. */
export function scaleOf({ low, high, step, kind, values = [] }) {
  const free = kind === undefined || kind === "continuous";
  const by = step ?? roundStep(high - low);
  const margin = free ? BEYOND * (high - low) : 0;
  const decimals = Math.max(0, -Math.floor(Math.log10(by) + 1e-9));
  const places = Number.isInteger(by * 10 ** decimals) || decimals > 6 ? decimals : decimals + 1;
  const down = free ? Math.floor((low - margin) / by) * by : low;
  const up = free ? Math.ceil((high + margin) / by) * by : high;
  const write = (value) => nearest(values, value).toFixed(places).replace(/^-(0\.?0*)$/, "$1");
  return { min: down, max: up, step: by, write, say: (value) => values[nearest(values, value)] ?? write(value).replace("-", "−") };
}

/** A value of a concept as text: the name of a category, or a short number. */
export function formatValue({ values = [] } = {}, value) {
  return value === null || value === undefined || !values.length ? short(value) : values[nearest(values, value)];
}

/**
 * A group of sliders for concepts [{name, label, unit, kind, low, high, step}].
 * `range` names the range [low, high], `undo` the button that removes a value.
 * `onset(name, value)` is called for each change, with undefined when a value is removed.
 */
export function sliders(concepts, { onset, legend, range = "training range", undo = "Undo intervention" }) {
  const rows = new Map(concepts.map((concept) => [concept.name, row(concept, onset, range, undo)]));
  const elements = [...rows.values()].map((one) => one.element);
  return {
    element: h("fieldset", { class: "sliders" }, h("legend", {}, legend), elements),
    /** before, after: {name: value}; set: {name: value} */
    update({ before = {}, after = {}, set = {}, affected = [] }) {
      for (const [name, one] of rows) one.update(before[name] ?? undefined, set[name] ?? after[name] ?? before[name] ?? undefined, name in set, affected.includes(name));
    },
    focus: (name) => rows.get(name)?.range.focus(),
  };
}

function row(concept, onset, rangeName, undo) {
  const { name, unit = "", low, high } = concept;
  const label = title(concept.label ?? name);
  const scale = scaleOf(concept);
  const share = (value) => Math.min(1, Math.max(0, (value - scale.min) / (scale.max - scale.min)));
  const id = `slider-${encodeURIComponent(name)}`; // unique for each name, without spaces
  const bounds = { min: scale.min, max: scale.max, step: scale.step };
  const range = h("input", { type: "range", id, ...bounds, "aria-describedby": `${id}-about` });
  const number = concept.values?.length
    ? h("select", { "aria-label": `${label}, by name` }, concept.values.map((text, i) => h("option", { value: i }, text)))
    : h("input", { type: "number", step: "any", "aria-label": `${label}, as a number` });
  const inferredMark = h("span", { class: "inferred", hidden: true });
  const about = h("span", { class: "about", id: `${id}-about` });
  const undoButton = button(undo, removeValue, { class: "undo", "aria-label": `${undo} on ${label}`, hidden: true });
  const band = h("span", { class: "band" });
  const track = h("div", { class: "track", "--low": share(low), "--high": share(high) }, band, inferredMark, range);
  const heading = h("div", { class: "heading" }, h("label", { for: id }, label), h("span", { class: "entry" }, number, h("span", { class: "unit" }, unit)));
  const element = h("div", { class: "slider", "data-concept": name }, heading, track, h("div", { class: "below" }, about, undoButton));

  function removeValue() {
    onset(name, undefined);
    range.focus(); // the button is about to be hidden
  }
  range.addEventListener("input", () => {
    number.value = scale.write(range.valueAsNumber);
    onset(name, range.valueAsNumber);
  });
  number.addEventListener("input", () => number.value !== "" && Number.isFinite(Number(number.value)) && onset(name, Number(number.value)));

  number.addEventListener("blur", () => current !== undefined && (number.value = scale.write(current))); // restore an emptied field

  let current;
  function update(before, value, set, affected) {
    element.classList.toggle("set", set);
    element.classList.toggle("affected", affected);
    undoButton.hidden = !set;
    inferredMark.hidden = before === undefined;
    const trained = concept.values?.length ? `${concept.values.length} categories` : `${rangeName} ${scale.say(low)} to ${scale.say(high)}`;
    about.textContent = before === undefined ? trained : `inferred ${scale.say(before)} · ${trained}`;
    if (before !== undefined) track.style.setProperty("--inferred", share(before));
    current = value;
    if (value === undefined) return;
    range.value = value;
    if (document.activeElement !== number) number.value = scale.write(value);
    const state = set ? ", set" : affected ? ", recomputed from its causes" : "";
    range.setAttribute("aria-valuetext", `${scale.say(value)} ${unit}${state}`);
  }
  return { element, range, update };
}
