// Images without flicker: the old image stays until the new one is decoded.

import { h } from "./dom.js";

/** A figure with a caption; `show(url, alt, note)` changes its image, null shows a blank. */
export function imageFigure(caption, { class: kind = "", shape } = {}) {
  const note = h("span", { class: "note" });
  const blank = h("div", { class: "blank" });
  const frame = h("div", { class: "frame", "--ratio": shape ? `${shape[1]} / ${shape[0]}` : "1" }, blank);
  const element = h("figure", { class: `image ${kind}` }, frame, h("figcaption", {}, h("b", {}, caption), note));
  let latest = 0;
  let shown = null;

  async function show(url, alt, text = "") {
    const turn = ++latest;
    if (url !== shown) {
      const next = url ? await decoded(url) : blank;
      if (turn !== latest) return;
      frame.replaceChildren(next);
      shown = url;
    }
    if (url) frame.firstChild.alt = alt;
    note.textContent = text;
  }
  return { element, show, get url() { return shown; } };
}

/** An image element that is decoded and ready to display. */
export async function decoded(url, alt = "") {
  const image = new Image();
  image.src = url;
  image.alt = alt;
  image.draggable = false;
  await image.decode();
  // Images of few pixels are shown as squares, larger ones are smoothed.
  image.classList.toggle("pixels", image.naturalWidth <= 32);
  return image;
}
