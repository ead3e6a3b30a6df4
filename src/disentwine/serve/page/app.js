// Frame of the page: run, view, colour theme. Views are modules with `show(root, context)`.

import { ask } from "./api.js";
import { cancelPending, format, read, flush } from "./address.js";
import { h, notice, title } from "./dom.js";

const can = (ability) => (run) => run.capabilities.includes(ability);
const VIEWS = {
  intervene: can("intervenes"),
  transitions: (run) => run.actions.length > 0,
  traverse: (run) => run.latent_count > 0,
  graph: (run) => Boolean(run.graph ?? run.true_graph),
  scores: (run) => run.capabilities.length > 0,
  compare: (run, runs) => can("intervenes")(run) && runs.filter(can("intervenes")).length > 1,
  training: () => true,
};
const TITLE = document.title;

let leaving = new AbortController();

/** Stop the current view, with its pending changes of the address; returns the signal of the next view. */
function leave() {
  cancelPending();
  leaving.abort();
  leaving = new AbortController();
  return leaving.signal;
}

async function open(runs, signal) {
  const main = document.getElementById("main");
  const requested = read();
  const short = runs.find((run) => run.id === requested.run) ?? runs[0];
  try {
    const run = await describe(short, signal);
    const views = Object.keys(VIEWS).filter((view) => VIEWS[view](run, runs));
    const view = views.includes(requested.view) ? requested.view : views[0];
    const address = requested.run === short.id || !requested.run ? requested : { do: {} };
    history.replaceState(null, "", format({ ...address, view, run: run.id }));
    drawFrame(runs, run, views, view);
    main.setAttribute("aria-busy", "true");
    const module = await import(`./views/${view}.js`);
    const root = h("div", { class: `view ${view}` });
    await module.show(root, { run, runs, address: read(), signal });
    if (signal.aborted) return;
    main.replaceChildren(root);
    main.setAttribute("aria-busy", "false");
    if (requested.run && requested.run !== short.id) notice("The run in this link is not served here. Another one is shown.");
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}

/** Details of a run. A run that cannot be loaded, as before its first checkpoint, has only its training losses. */
async function describe(short, signal) {
  try {
    return await ask(`runs/${encodeURIComponent(short.id)}`, { signal });
  } catch (error) {
    if (error.status !== 404) throw error;
    return { ...short, loadError: error.message, capabilities: [], concepts: [], actions: [], latent_count: null, graph: null, true_graph: null, recipe: "" };
  }
}

function drawFrame(runs, run, views, view) {
  const select = document.getElementById("runs");
  const options = runs.map((one) => h("option", { value: one.id }, runLabel(one)));
  select.replaceChildren(...options);
  select.value = run.id;
  select.disabled = runs.length < 2;
  const focused = document.activeElement?.closest("#tabs");
  const links = views.map((name) => {
    const current = name === view ? "page" : null;
    const link = h("a", { href: format({ view: name, run: run.id }), "aria-current": current, onclick: keep }, title(name));
    // The image and its intervention are kept in the next view.
    function keep() {
      flush();
      const { image, do: intervention } = read();
      link.href = format({ view: name, run: run.id, image, do: intervention });
    }
    return h("li", {}, link);
  });
  document.getElementById("tabs").replaceChildren(...links);
  const here = document.querySelector("#tabs [aria-current]");
  here?.scrollIntoView({ block: "nearest", inline: "center" });
  if (focused) here?.focus();
  document.title = `${title(view)} · ${run.name} · ${TITLE}`;
}

export const runLabel = (run) => `${run.name} (${run.model}, ${run.data})`;

function fail(error) {
  document.getElementById("main").setAttribute("aria-busy", "false");
  const again = h("button", { type: "button", onclick: () => location.reload() }, "Try again");
  document.getElementById("main").replaceChildren(h("div", { class: "panel empty" }, h("p", {}, error.message), again));
}

function switchTheme() {
  const root = document.documentElement;
  const dark = getComputedStyle(root).colorScheme.includes("light dark")
    ? matchMedia("(prefers-color-scheme: dark)").matches
    : root.dataset.theme === "dark";
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("disentwine-theme", root.dataset.theme);
}

async function start() {
  // An image dropped beside its target must not replace the page.
  for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
  document.getElementById("theme").addEventListener("click", switchTheme);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the hash of the address holds the state of the view
    document.getElementById("main").focus();
  });
  try {
    const runs = await ask("runs");
    if (!runs.length) throw new Error("No run is served. Start the server with one: disentwine serve runs/demo");
    document.getElementById("runs").addEventListener("change", (event) => {
      location.hash = format({ view: read().view, run: event.target.value, do: {} });
    });
    // Runs may have written their first checkpoint since.
    addEventListener("hashchange", () => {
      const signal = leave();
      ask("runs", { signal }).then((runs) => open(runs, signal), (error) => signal.aborted || fail(error));
    });
    await open(runs, leave());
  } catch (error) {
    fail(error);
  }
}

start();
