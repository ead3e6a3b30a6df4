// Questions to the server. `newest` is for sliders: one question at a time, and then the newest one.

export class Refused extends Error {
  constructor(status, detail, wait) {
    super(detail);
    this.status = status;
    this.wait = wait;
  }
}

const UNREACHABLE = "The server does not answer. Is “disentwine serve” still running?";

/** Ask /api/<path>; a body is sent as JSON, or as it is where it is a Blob. */
export async function ask(path, { body, signal, headers = {} } = {}) {
  const bytes = body instanceof Blob;
  const options = { signal, headers: { ...headers } };
  if (body !== undefined) {
    options.method = "POST";
    options.body = bytes ? body : JSON.stringify(body);
    options.headers["Content-Type"] = bytes ? body.type : "application/json";
  }
  let answer;
  try {
    answer = await fetch(`api/${path}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, UNREACHABLE);
  }
  if (answer.ok) return answer.json();
  const { detail } = await answer.json().catch(() => ({}));
  const sentence = typeof detail === "string" ? detail : `The server refused (${answer.status}).`;
  throw new Refused(answer.status, sentence, Number(answer.headers.get("Retry-After")) || 1);
}

/** Put a picture of the visitor into the server's memory. */
export function upload(run, blob, signal) {
  return ask(`uploads?run=${encodeURIComponent(run)}`, { body: blob, signal });
}

const pause = (seconds) => new Promise((resume) => setTimeout(resume, 1000 * seconds));

/**
 * A function that sends a body at once, or, while an answer is awaited, keeps only the newest one.
 * Aborting every older request instead would show nothing at all while a slider is being dragged.
 */
export function newest(path, { onanswer, onerror, signal }) {
  const client = Array.from(crypto.getRandomValues(new Uint32Array(2)), (n) => n.toString(36)).join("");
  let sequence = 0;
  let busy = false;
  let waiting = null;

  async function send(body) {
    busy = true;
    const headers = { "X-Client": client, "X-Sequence": String(++sequence) };
    try {
      const answer = await ask(path, { body, signal, headers });
      if (!signal.aborted) await onanswer(answer, body);
    } catch (error) {
      if (error.status === 503) {
        await pause(error.wait);
        waiting ??= body;
      } else if (!signal.aborted && error.status !== 409) onerror(error, body);
    }
    busy = false;
    if (waiting && !signal.aborted) {
      const next = waiting;
      waiting = null;
      send(next);
    }
  }

  return (body) => {
    if (busy) waiting = body;
    else send(body);
  };
}
