// Training: losses of a run, updated while it trains.

import { ask } from "../api.js";
import { chart } from "../chart.js";
import { h, lead, notice, announce, title } from "../dom.js";

const EVERY = 2000;
const NO_TERM = new Set(["step", "kind", "seconds", "epoch"]);

export async function show(root, { run, signal }) {
  const loadError = run.loadError && h("p", { class: "load-error" }, h("b", {}, "Only the losses of this run can be shown. "), run.loadError);
  const state = h("p", { class: "state" });
  const progress = h("progress", { max: 1, "aria-label": "Training progress" });
  const charts = h("div", { class: "charts" });
  const recipe = h("details", {}, h("summary", {}, "Recipe"), h("pre", { tabindex: "0" }, run.recipe));
  root.append(lead("Training", "Training losses, term by term."), h("section", { class: "panel wide" }, loadError, state, progress), charts, h("section", { class: "panel wide" }, recipe));
  const none = h("p", { class: "muted" }, "Nothing has been logged yet.");
  const drawn = new Map();
  let rows = [];
  let [timer, announced] = [0, null];
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });

  async function look() {
    const found = await ask(`runs/${run.id}/training?after=0`, { signal });
    rows = found.rows;
    const [step, steps] = [found.step, found.steps].map((count) => count.toLocaleString("en"));
    state.textContent = found.finished ? `Finished after ${step} steps.` : `Step ${step} of ${steps}, ${found.running ? "training now" : "stopped; run the same command to resume"}.`;
    if (found.finished !== announced) announce(state.textContent);
    announced = found.finished;
    progress.hidden = found.finished;
    progress.value = found.steps ? found.step / found.steps : 0;
    // Logged scalars, such as the weights of a graph, come after the losses.
    const losses = rows.filter(({ kind }) => kind !== "watched");
    const terms = [...new Set([...losses, ...rows].flatMap((row) => Object.keys(row)))].filter((term) => !NO_TERM.has(term) && rows.some((row) => typeof row[term] === "number"));
    for (const term of terms) {
      if (!drawn.has(term)) {
        drawn.set(term, chart(/^l_/.test(term) ? term : title(term)));
        charts.append(drawn.get(term).element);
      }
      const points = (kind) => rows.filter((row) => (row.kind === "watched" ? "train" : row.kind ?? "train") === kind && Number.isFinite(row[term])).map((row) => [row.step, row[term]]);
      drawn.get(term).update({ train: points("train"), validation: points("validation"), last: found.steps });
    }
    if (terms.length) none.remove();
    else charts.replaceChildren(none);
    return found.finished;
  }

  async function watch() {
    try {
      if (await look()) return;
    } catch (error) {
      if (signal.aborted) return;
      notice(error.message);
    }
    if (!signal.aborted) timer = setTimeout(watch, document.hidden ? 5 * EVERY : EVERY);
  }
  await watch();
}
