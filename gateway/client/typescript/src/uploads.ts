/** Sends a file to an application; resumes after a broken connection if the application allows it. */

import { GatewayError } from "./errors.js";
import { growingPause, sleep } from "./retries.js";
import type { components } from "./schema.js";
import type { ApiRequest, Session } from "./session.js";

type Answer = components["schemas"]["Answer"];
type Upload = components["schemas"]["Upload"];

/** Files of at most this many bytes are sent in one request: sending them again costs no more than resuming. */
const SMALL = 1 << 20;
/** Errors after which the upload can continue. */
const INTERRUPTIONS: ReadonlySet<string> = new Set(["unavailable", "upload_offset_mismatch"]);

/** @internal Send a file in one request, or as a resumable upload; raises GatewayError. */
export async function sendFile(session: Session, call: ApiRequest, file: Blob): Promise<Answer> {
  if (file.size > SMALL) {
    try {
      return await resumable(session, call, file);
    } catch (error) {
      // Such an application accepts a file only in one request.
      if (!(error instanceof GatewayError) || error.code !== "not_resumable") throw error;
    }
  }
  return await session.json<Answer>({ ...call, content: () => file });
}

/** Begin the upload without content, then send the file; after a break, from the offset that the gateway has. */
async function resumable(session: Session, call: ApiRequest, file: Blob): Promise<Answer> {
  const headers = { ...call.headers, "Upload-Complete": "?0", "Upload-Length": String(file.size) };
  const begun = await session.reply({ ...call, headers });
  const { signal } = call;
  const path = begun.headers.get("Location")!;
  for (let [offset, breaks] = [0, 0]; ;) {
    const rest = {
      "Content-Type": "application/partial-upload",
      "Upload-Offset": String(offset),
      "Upload-Complete": "?1",
    };
    const from = offset;
    try {
      return await session.json<Answer>({
        method: "PATCH",
        path,
        headers: rest,
        content: () => file.slice(from),
        signal,
      });
    } catch (error) {
      breaks += 1;
      await pause(session, error, breaks, signal);
    }
    const state = await session.json<Upload>({ method: "GET", path, signal });
    if (state.answer) return state.answer;
    if (state.offset > offset) breaks = 0;
    offset = state.offset;
  }
}

/** Wait before the upload continues; raises the error after too many breaks without progress, or if it is final. */
async function pause(session: Session, error: unknown, breaks: number, signal: AbortSignal | undefined): Promise<void> {
  const { policy } = session.settings;
  const isBreak =
    error instanceof GatewayError && (INTERRUPTIONS.has(error.code) || (error.upstream && error.retryable));
  if (!isBreak || breaks > policy.retries) throw error;
  const seconds = Math.min(error.retryAfter ?? growingPause(policy, breaks), policy.longestPause);
  await sleep(seconds, signal);
}
