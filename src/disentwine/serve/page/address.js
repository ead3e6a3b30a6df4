// The state of the view in the address: #/intervene/<run>?image=t-3&do=light_angle:60,hole:4

/** {view, run, image, do, ...} of the address. */
export function read(hash = location.hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", run = ""] = path.split("/").map(decoded);
  const rest = Object.fromEntries(new URLSearchParams(query));
  return { ...rest, view, run, do: pairs(rest.do) };
}

/** "a:1,b:2" -> {a: 1, b: 2}; values that are not numbers are left out. */
export function pairs(text = "") {
  const entries = text.split(",").map((pair) => {
    const at = pair.lastIndexOf(":");
    return [decoded(pair.slice(0, at)), pair.slice(at + 1).trim() ? Number(pair.slice(at + 1)) : NaN];
  });
  return Object.fromEntries(entries.filter(([name, value]) => name && Number.isFinite(value)));
}

/** Names as one text, with any characters: ["+a", "+b,c"] -> "+a,+b%2Cc". */
export const encodeList = (names) => names.map((name) => name.replace(/[%,]/g, encodeURIComponent)).join(",");

/** Inverse of `encodeList`. */
export const decodeList = (text = "") => (text ? text.split(",").map(decoded) : []);

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // a link that was cut off or written by hand
  }
}

/** The address of a state; empty values are left out. */
export function format({ view, run, do: intervention = {}, ...rest }) {
  const set = Object.entries(intervention).map(([name, value]) => `${encodeURIComponent(name)}:${Number(value.toPrecision(6))}`);
  const query = Object.entries({ ...rest, do: set.join(",") })
    .filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => `${name}=${String(value).replace(/[^\w:,.-]/gu, encodeURIComponent)}`);
  const path = `#/${[view, run].map(encodeURIComponent).join("/")}`;
  return query.length ? `${path}?${query.join("&")}` : path;
}

let pending = {};
let later;

/** Change a part of the address without a new history entry; delayed, because browsers limit the rate. */
export function updateAddress(changes) {
  pending = { ...pending, ...changes };
  clearTimeout(later);
  later = setTimeout(flush, 150);
}

/** Write pending changes now, as before a link is copied. */
export function flush() {
  const changes = pending;
  cancelPending();
  if (Object.keys(changes).length) history.replaceState(null, "", format({ ...read(), ...changes }));
}

/** Drop pending changes, as when the visitor leaves the view. */
export function cancelPending() {
  clearTimeout(later);
  pending = {};
}
