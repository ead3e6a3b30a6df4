// Requests to the server. `newest` is for sliders: one request at a time, then only the newest.

export class Refused extends Error {
  constructor(status, detail, wait) {
    super(detail);
    this.status = status;
    this.wait = wait;
  }
}

const UNREACHABLE = "The server does not answer. Is “disentwine serve” still running?";

const AGAIN = 3;

/** Request /api/<path>. A body is sent as JSON, a Blob as it is. Requests without a body are repeated while the server is busy. */
export async function ask(path, { body, signal, headers = {} } = {}, again = body === undefined ? AGAIN : 0) {
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
  const wait = Number(answer.headers.get("Retry-After")) || 1;
  if (answer.status !== 503 || !again || signal?.aborted) throw new Refused(answer.status, sentence, wait);
  await pause(wait);
  return ask(path, { body, signal, headers }, again - 1);
}

const [MOST_BYTES, MOST_PIXELS] = [3.5e6, 1024]; // the server takes 4 MB, and models far less

/** Upload an image into the server's memory; large images, as from phones, are scaled down first. */
export async function upload(run, blob, signal) {
  const body = blob.size > MOST_BYTES ? await smaller(blob) : blob;
  return ask(`uploads?run=${encodeURIComponent(run)}`, { body, signal });
}

async function smaller(blob) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(blob);
  } catch {
    throw new Refused(0, "This file cannot be read as an image; use PNG or JPEG.");
  }
  const scale = Math.min(1, MOST_PIXELS / Math.max(bitmap.width, bitmap.height));
  const canvas = new OffscreenCanvas(Math.max(1, Math.round(bitmap.width * scale)), Math.max(1, Math.round(bitmap.height * scale)));
  const context = canvas.getContext("2d");
  context.fillStyle = "white"; // a JPEG has no transparency, and the server lays it over white
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: "image/jpeg", quality: 0.92 });
}

const pause = (seconds) => new Promise((resume) => setTimeout(resume, 1000 * seconds));

/**
 * A function that sends a body at once. While a request is running, only the newest body is kept and sent next.
 * Aborting older requests instead would show no image at all while a slider is dragged.
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
