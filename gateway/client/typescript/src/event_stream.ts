/** Server-sent events (WHATWG HTML §9.2), and a stream of them that is resumed after its connection breaks. */

import { GatewayError } from "./errors.js";
import { parsed } from "./json.js";
import { growingPause, sleep } from "./retries.js";
import type { Query, Session } from "./session.js";

/** One event of a stream. */
export interface StreamedEvent {
  id: string;
  name: string;
  data: any;
}

/** @internal A stream of events, and the id after which it begins. */
export interface EventSource {
  path: string;
  query?: Query;
  lastId: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Consecutive broken connections without an event, after which a stream fails. */
const BREAKS = 5;
/** A connection that lasted this many milliseconds does not count as broken. */
const LASTING = 5000;

/** @internal The events of a stream without end; after a broken connection it continues with `Last-Event-ID`. */
export async function* followed(session: Session, source: EventSource): AsyncGenerator<StreamedEvent> {
  let { lastId } = source;
  for (let breaks = 1; ; breaks += 1) {
    const begun = performance.now();
    let reason: unknown;
    try {
      for await (const event of events(session, { ...source, lastId })) {
        [lastId, breaks] = [event.id, 1];
        yield event;
      }
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== "unavailable") throw error;
      reason = error;
    }
    if (performance.now() - begun > LASTING) breaks = 1;
    if (breaks > BREAKS)
      throw reason ?? new GatewayError({ code: "unavailable", detail: "the stream of events ended early" });
    await sleep(growingPause(session.settings.policy, breaks), source.signal);
  }
}

/** The events of one connection. */
async function* events(session: Session, { path, query, lastId, signal }: EventSource): AsyncGenerator<StreamedEvent> {
  const headers = { Accept: "text/event-stream", ...(lastId === undefined ? {} : { "Last-Event-ID": lastId }) };
  const call = { method: "GET", path, query, headers, signal };
  const decoder = new TextDecoder();
  let [rest, event] = ["", { id: lastId ?? "", name: "message", lines: [] as string[] }];
  for await (const chunk of session.chunks(await session.open(call), call)) {
    rest += decoder.decode(chunk, { stream: true });
    // A carriage return at the end may be the first half of a line end.
    const end = rest.endsWith("\r") ? rest.length - 1 : rest.length;
    const lines = rest.slice(0, end).split(/\r\n|\r|\n/);
    rest = lines.pop()! + rest.slice(end);
    for (const line of lines) {
      if (line) {
        take(event, line);
        continue;
      }
      const { id, name, lines: data } = event;
      event = { id, name: "message", lines: [] };
      if (data.length) yield { id, name, data: parsed(data.join("\n")) };
    }
  }
}

function take(event: { id: string; name: string; lines: string[] }, line: string): void {
  const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line)!;
  if (field === "data") event.lines.push(value);
  if (field === "event") event.name = value;
  if (field === "id") event.id = value;
}
