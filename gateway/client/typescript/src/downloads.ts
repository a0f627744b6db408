/** Files as streams that are resumed after a broken connection. */

import { randomUUID } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { GatewayError } from "./errors.js";
import { growingPause, sleep } from "./retries.js";
import type { ApiRequest, Query, Session } from "./session.js";

/** @internal A file at the gateway. */
export interface FileRequest {
  path: string;
  query?: Query;
  range?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** A file, or a range of it. It can be read once, as `stream`, with `for await`, or with `save` or `bytes`. */
export class Download implements AsyncIterable<Uint8Array> {
  readonly #session: Session;
  readonly #request: FileRequest;
  #response: Response;
  /** The offset of the next byte, and the offset after the last one, if it is known. */
  #at: number;
  readonly #end: number | undefined;

  /** @internal */
  constructor(session: Session, request: FileRequest, response: Response) {
    [this.#session, this.#request, this.#response] = [session, request, response];
    const range = rangeOf(response);
    const length = numberIn(response.headers.get("Content-Length"));
    this.#at = range?.start ?? 0;
    this.#end = range?.end ?? length;
  }

  /** The headers of the response. */
  get headers(): Headers {
    return this.#response.headers;
  }

  /** Bytes that are still to be read; undefined if the application does not say. */
  get size(): number | undefined {
    return this.#end === undefined ? undefined : this.#end - this.#at;
  }

  /** The media type. */
  get contentType(): string | undefined {
    return this.headers.get("Content-Type") ?? undefined;
  }

  /** The file's name, without a folder, a drive and leading dots. */
  get filename(): string | undefined {
    return filenameIn(this.headers.get("Content-Disposition") ?? "");
  }

  /** The bytes as they arrive; raises GatewayError if the file ends early, or changes while it is read. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const call = fileCall(this.#request);
    for (let breaks = 0; ;) {
      const before = this.#at;
      try {
        for await (const chunk of this.#session.chunks(this.#response, call)) {
          this.#at += chunk.byteLength;
          yield chunk;
        }
        if (this.#end === undefined || this.#at === this.#end) return;
        throw truncated(this.#at, this.#end);
      } catch (error) {
        breaks = this.#at > before ? 1 : breaks + 1;
        await this.#resume(error, breaks);
      }
    }
  }

  /** The bytes as a stream, for `Readable.fromWeb` or `new Response`. */
  get stream(): ReadableStream<Uint8Array> {
    const chunks = this[Symbol.asyncIterator]();
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value, done } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return(undefined);
      },
    });
  }

  /** All bytes, in memory. */
  async bytes(): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  /** Save the file under the path, or in the folder, `to`; the name appears when the file is complete. Returns its path. */
  async save(to: string): Promise<string> {
    const isFolder = await stat(to).then(
      (found) => found.isDirectory(),
      () => false,
    );
    const path = isFolder ? join(to, this.filename ?? "download") : to;
    const partial = join(dirname(path), `.${basename(path)}.${randomUUID()}.part`);
    const file = await open(partial, "wx");
    try {
      for await (const chunk of this) await file.writeFile(chunk);
      await file.close();
      await rename(partial, path);
    } catch (error) {
      await file.close().catch(() => undefined);
      await rm(partial, { force: true });
      throw error;
    }
    return path;
  }

  /** Request the rest of the file after a break; raises the error if it is final, or the file has changed. */
  async #resume(error: unknown, breaks: number): Promise<void> {
    const { policy } = this.#session.settings;
    const validator = validatorOf(this.headers);
    const isBreak = error instanceof GatewayError && ["unavailable", "upstream_truncated"].includes(error.code);
    if (!isBreak || breaks > policy.retries || validator === undefined) throw error;
    await sleep(growingPause(policy, breaks), this.#request.signal);
    const end = this.#end === undefined ? "" : this.#end - 1;
    const headers = { ...FILE_HEADERS, Range: `bytes=${this.#at}-${end}`, "If-Range": validator };
    const response = await this.#session.open({ ...fileCall(this.#request), headers });
    if (response.status !== 206 || rangeOf(response)?.start !== this.#at) {
      await response.body?.cancel();
      const detail =
        "the file cannot be continued: it has changed, or the application has no ranges; download it again";
      throw new GatewayError({ code: "conflict", detail }, { cause: error });
    }
    this.#response = response;
  }
}

const FILE_HEADERS = { Accept: "*/*", "Accept-Encoding": "identity" };

/** @internal Request a file; its bytes are read when the caller reads them. */
export async function download(session: Session, request: FileRequest): Promise<Download> {
  return new Download(session, request, await session.open(fileCall(request)));
}

function fileCall({ path, query, range, signal }: FileRequest): ApiRequest {
  return { method: "GET", path, query, headers: { ...FILE_HEADERS, ...(range ? { Range: range } : {}) }, signal };
}

/** The bytes of a 206: from `start` to before `end`. */
function rangeOf(response: Response): { start: number; end: number } | undefined {
  const found = /^bytes (\d+)-(\d+)\//.exec(response.headers.get("Content-Range") ?? "");
  return response.status === 206 && found ? { start: Number(found[1]), end: Number(found[2]) + 1 } : undefined;
}

/** What shows that the file is the same: RFC 9110 allows only a strong entity tag or a date. */
function validatorOf(headers: Headers): string | undefined {
  const tag = headers.get("ETag");
  return tag && !tag.startsWith("W/") ? tag : (headers.get("Last-Modified") ?? undefined);
}

function filenameIn(disposition: string): string | undefined {
  const encoded = /filename\*=utf-8''([^;]+)/i.exec(disposition)?.[1];
  const plain = /filename="((?:[^"\\]|\\.)*)"|filename=([^;]+)/i.exec(disposition);
  const name = decoded(encoded) ?? plain?.[1]?.replace(/\\(.)/g, "$1") ?? plain?.[2]?.trim();
  const last = name
    ?.split(/[/\\:]/)
    .at(-1)
    ?.replace(/[\u0000-\u001f\u007f]/g, "")
    .replace(/^\.+/, "");
  return last || undefined;
}

/** The text of an extended value (RFC 8187); undefined if there is none, or it is not UTF-8. */
function decoded(encoded: string | undefined): string | undefined {
  try {
    return encoded && decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

function numberIn(text: string | null): number | undefined {
  return text !== null && /^\d+$/.test(text) ? Number(text) : undefined;
}

function truncated(at: number, end: number): GatewayError {
  return new GatewayError({ code: "upstream_truncated", detail: `the file ended after ${at} of ${end} bytes` });
}
