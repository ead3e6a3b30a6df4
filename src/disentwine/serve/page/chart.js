// A small line chart of one loss over training steps.

import { h, s, short } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [360, 170, 52, 10, 10, 22];

/** Range of the vertical axis: all validation values, and training values after the first tenth, which would dominate the scale. */
function bounds(train, validation, last) {
  const late = train.filter(([step]) => step >= last / 10);
  const values = [...(late.length + validation.length > 1 ? late : train), ...validation].map(([, value]) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [low - margin, high + margin];
}

export function chart(name) {
  const readout = h("span", { class: "number" });
  const svg = s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  const element = h("figure", { class: "panel" }, h("figcaption", {}, h("b", {}, name), readout), svg);
  const clip = `clip-${name.replace(/\W/g, "-")}`;
  let shown = { train: [], validation: [], x: Number, y: Number };
  const cursor = s("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM });

  function update({ train, validation: validations, last }) {
    // The loss before the first step is so large that it would dominate the scale.
    const begun = validations.filter(([step]) => step > 0);
    const validation = begun.length ? begun : validations;
    const all = [...train, ...validation];
    const end = Math.max(last || 0, ...all.map(([step]) => step), 1);
    const reached = Math.max(...all.map(([step]) => step), 1);
    const [low, high] = bounds(train, validation, reached);
    const x = (step) => LEFT + (step / end) * (WIDTH - LEFT - RIGHT);
    const y = (value) => TOP + ((high - value) / (high - low)) * (HEIGHT - TOP - BOTTOM);
    shown = { train, validation, x, y };
    const path = (points) => points.map(([step, value], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${Math.max(-999, Math.min(999, y(value))).toFixed(1)}`).join("");
    const ticks = [0.1, 0.5, 0.9].map((share) => low + share * (high - low));
    svg.replaceChildren(
      s("clipPath", { id: clip }, s("rect", { x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM })),
      ...ticks.flatMap((value) => [s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }), s("text", { x: LEFT - 6, y: y(value) + 3.5, "text-anchor": "end" }, tick(value, high - low))]),
      s("text", { x: LEFT, y: HEIGHT - 6 }, "0"), s("text", { x: WIDTH - RIGHT, y: HEIGHT - 6, "text-anchor": "end" }, end.toLocaleString("en")),
      s("g", { "clip-path": `url(#${clip})` }, s("path", { class: "train", d: path(train) }), s("path", { class: "validation", d: path(validation) })),
      ...validation.map(([step, value]) => s("circle", { class: "validation", cx: x(step), cy: y(value), r: 2.6 })), cursor);
    cursor.setAttribute("visibility", "hidden");
    shown.final = () => readout.replaceChildren(...[key("train", train), key("validation", validation)].filter(Boolean));
    const final = (points) => (points.length ? short(points.at(-1)[1], 4) : "–");
    const key = (kind, points) => points.length > 0 && h("span", { class: `key-${kind}` }, `${kind} ${final(points)} `);
    shown.final();
    svg.setAttribute("aria-label", `${name}, from ${short((train[0] ?? validation[0])?.[1])} to ${final(train.length ? train : validation)}`);
  }

  svg.addEventListener("pointermove", (event) => {
    const points = shown.train.length ? shown.train : shown.validation;
    if (!points.length) return;
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    const near = points.reduce((best, point) => (Math.abs(shown.x(point[0]) - at) < Math.abs(shown.x(best[0]) - at) ? point : best));
    cursor.setAttribute("x1", shown.x(near[0]));
    cursor.setAttribute("x2", shown.x(near[0]));
    cursor.setAttribute("visibility", "visible");
    readout.textContent = `step ${near[0].toLocaleString("en")}: ${short(near[1], 4)}`;
  });
  svg.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    shown.final?.();
  });
  return { element, update };
}

/** As many digits as neighbouring ticks need to differ. */
function tick(value, span) {
  const size = Math.max(Math.abs(value), span);
  if (size < 1e-4) return value.toExponential(0).replaceAll("-", "−");
  if (size >= 1e4) return `${(value / 1000).toFixed(span < 2000 ? 1 : 0)}k`.replace("-", "−");
  return value.toFixed(Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(span))))).replace("-", "−");
}
