// Choice of an image: thumbnails as radio buttons, so that arrow keys work, and uploads.

import { ask, upload } from "./api.js";
import { button, h, notice } from "./dom.js";

const COUNT = 24;
const uploads = new Map(); // run -> thumbnails of this visit
let groups = 0;

/** Whether the image of a link is available; uploads are stored for a limited time only. */
async function isAvailable(run, image, signal, strip) {
  if (!image || [...strip.querySelectorAll("input")].some(({ value }) => value === image)) return Boolean(image);
  try {
    await ask(`runs/${run.id}/images/${encodeURIComponent(image)}`, { signal });
    return true;
  } catch (error) {
    if (error.status === 404) notice("The image in this link is not available. Another one is shown.");
    return error.status !== 404;
  }
}

/** A strip of thumbnails; `onpick(image)` is called for each choice, including the first. */
export async function picker({ run, chosen, onpick, signal, label = "Image" }) {
  const name = `image-${++groups}`;
  const uploaded = uploads.get(run.id) ?? uploads.set(run.id, []).get(run.id);
  const strip = h("div", { class: "strip", role: "radiogroup", "aria-label": label });
  const file = h("input", { type: "file", accept: "image/png,image/jpeg", class: "visually-hidden" });
  const tile = h("label", { class: "tile", title: "PNG or JPEG; drag and drop works too" }, file, h("span", {}, "Upload image"));
  const more = button("More", load, { class: "tile" });
  const none = run.examples === 0 && h("p", { class: "muted" }, `No test images are available: upload an image. ${run.unavailable}`);
  const element = h("div", { class: "picker" }, tile, strip, none);
  strip.append(more);

  function thumbnail({ image, thumbnail }, kind = "example") {
    const radio = h("input", { type: "radio", name, value: image, class: "visually-hidden", onchange: () => onpick(image) });
    const alt = kind === "upload" ? "Uploaded image" : `Image ${image.replace(/^t-/, "")}`;
    return h("label", { class: "thumbnail" }, radio, h("img", { src: thumbnail, alt, title: alt }));
  }

  let offset = 0;
  async function load() {
    more.disabled = true; // a second click would load the same images twice
    try {
      const found = await ask(`runs/${run.id}/images?offset=${offset}&count=${COUNT}`, { signal });
      offset += found.length;
      more.before(...found.map((one) => thumbnail(one)));
      more.hidden = found.length < COUNT || (run.examples && offset >= run.examples);
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
    more.disabled = false;
  }

  function choose(image) {
    const radio = [...strip.querySelectorAll("input")].find((one) => one.value === image);
    if (radio) radio.checked = true;
    else strip.querySelectorAll("input").forEach((one) => (one.checked = false));
    // Only the strip may scroll, not the page.
    if (radio) strip.scrollLeft = radio.parentElement.offsetLeft - strip.offsetLeft - strip.clientWidth / 2 + 28;
  }

  async function addUpload(file) {
    if (!file) return;
    try {
      const stored = await upload(run.id, file, signal);
      uploaded.unshift(stored);
      document.dispatchEvent(new CustomEvent("upload", { detail: { run: run.id, stored } }));
      choose(stored.image);
      onpick(stored.image);
    } catch (error) {
      if (!signal.aborted) notice(error.message);
    }
  }

  file.addEventListener("change", () => addUpload(file.files[0]).then(() => (file.value = "")));
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    element.classList.add("over");
  });
  element.addEventListener("dragleave", () => element.classList.remove("over"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("over");
    addUpload(event.dataTransfer.files[0]);
  });

  // Every strip of the run shows an upload.
  document.addEventListener("upload", ({ detail }) => detail.run === run.id && strip.prepend(thumbnail(detail.stored, "upload")), { signal });

  strip.prepend(...uploaded.map((stored) => thumbnail(stored, "upload")));
  await load();
  const first = (await isAvailable(run, chosen, signal, strip)) ? chosen : strip.querySelector("input")?.value;
  if (first) {
    choose(first);
    onpick(first);
  }
  return { element, choose };
}
