// Server-sent events, read with fetch because EventSource cannot send an Authorization header.

import { ApiError, request } from "./api.js";

const SILENT_MS = 60000;
const MOST_MS = 30000;

/** The data of each whole event in `text`, and the rest that is not whole yet. */
export function eventsIn(text) {
  const parts = text.split(/\r?\n\r?\n/);
  const rest = parts.pop();
  const events = parts.map((part) => {
    const event = { type: "message", data: "" };
    for (const line of part.split(/\r?\n/)) {
      if (line.startsWith("event:")) event.type = line.slice(6).trim();
      else if (line.startsWith("data:")) event.data += `${event.data ? "\n" : ""}${line.slice(5).replace(/^ /, "")}`;
    }
    return event;
  });
  return [events, rest];
}

/** Stay connected. `onState` gets live or down, `onOpen` a new connection, `onChange` each change. Returns a stop. */
export function follow({ onState, onOpen, onChange }) {
  let stopped = false;
  let attempts = 0;
  let abort = null;
  let wake = () => {};

  async function read() {
    abort = new AbortController();
    let alarm;
    const heard = () => {
      clearTimeout(alarm);
      alarm = setTimeout(() => abort.abort(), SILENT_MS);
    };
    try {
      heard();
      const answer = await request("stream", { signal: abort.signal, headers: { Accept: "text/event-stream" } });
      if (!answer.ok) throw new ApiError(answer.status, "no stream");
      attempts = 0;
      onOpen();
      onState("live");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let kept = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        heard();
        const [events, rest] = eventsIn(kept + value);
        kept = rest;
        for (const event of events) if (event.type === "change") onChange(JSON.parse(event.data));
      }
    } finally {
      clearTimeout(alarm);
    }
  }

  async function stay() {
    while (!stopped) {
      try {
        await read();
      } catch (error) {
        if (error instanceof ApiError && [401, 403].includes(error.status)) attempts = 10;
      }
      if (stopped) return;
      attempts += 1;
      const wait = Math.min(MOST_MS, 500 * 2 ** Math.min(attempts, 10)) * (0.7 + 0.6 * Math.random());
      onState("down", wait / 1000);
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, wait);
      });
    }
  }

  stay();
  const soon = () => wake();
  addEventListener("online", soon);
  return () => {
    stopped = true;
    removeEventListener("online", soon);
    abort?.abort();
    wake();
  };
}
