// Helpers that create elements and format numbers. Text is only ever set as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element: h("button", {class: "muted", onclick: act}, "Reset"). */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element, in the same way. */
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export const button = (text, onclick, attributes = {}) => h("button", { type: "button", onclick, ...attributes }, text);

const SHORT = /^(kl|mic|tic|shd|sap|mig|dci|irs|elbo)\b/i;

/** "light_angle" -> "Light angle", "kl" -> "KL" */
export function title(text) {
  const words = text.replaceAll("_", " ").replace(SHORT, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A number in short form: 0.000051 -> "5.1e-5", 12.3456 -> "12.3". */
export function short(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e6) return value.toExponential(1).replace("e+", "e").replace("-", "−").replace("e-", "e−");
  const text = size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

/** One sentence on what a view does; its heading is for screen readers. */
export const lead = (name, text) => h("header", { class: "lead" }, h("h1", { class: "visually-hidden" }, name), h("p", { class: "muted" }, text));

let announcing;
/** Announce a text to screen readers, half a second after the last change. */
export function announce(text) {
  clearTimeout(announcing);
  announcing = setTimeout(() => (document.getElementById("announcer").textContent = text), 500);
}

let noticed;
/** A message at the foot of the page that disappears after some seconds. */
export function notice(text, { kind = "error" } = {}) {
  const box = document.getElementById("notice");
  clearTimeout(noticed);
  box.textContent = text;
  box.className = `notice ${kind}`;
  box.hidden = false;
  noticed = setTimeout(() => (box.hidden = true), kind === "error" ? 8000 : 2500);
}

/** The bytes of a data URL. */
export function blobOf(url) {
  const [head, body] = url.split(",");
  const bytes = Uint8Array.from(atob(body), (character) => character.charCodeAt(0));
  return new Blob([bytes], { type: head.slice(5).split(";")[0] });
}

/** Download a blob as a file. */
export function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
