/** An HTTP server between a client and a gateway, with faults that tests set. */

import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A fault of one request, the next one whose path has `path`. */
export interface Fault {
  path: string;
  /** Answer in place of the gateway. */
  answer?: { status: number; headers?: Record<string, string>; body?: string };
  /** Close the connection after this number of bytes of the gateway's response; its headers are not sent for -1. */
  cutAfter?: number;
  /** Send no more after this number of bytes of the gateway's response, until `cut`. */
  holdAfter?: number;
  /** Pass on this number of bytes of the request, and close the connection when the promise is fulfilled. */
  breakAfter?: { bytes: number; when: () => Promise<unknown> };
}

/** A request that the relay has received. */
export interface Received {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
}

export class Relay {
  readonly faults: Fault[] = [];
  readonly received: Received[] = [];
  readonly #open = new Map<ServerResponse, string>();
  readonly #target: URL;
  readonly #server = createServer((call, reply) => void this.#handle(call, reply));

  constructor(target: string) {
    this.#target = new URL(target);
  }

  /** Listen on a port of its own; returns the URL. */
  async listen(): Promise<string> {
    await new Promise<void>((ready) => this.#server.listen(0, "127.0.0.1", ready));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** The requests to paths with this part since `from`. */
  to(part: string, from = 0): Received[] {
    return this.received.slice(from).filter(({ path }) => path.includes(part));
  }

  /** Close the connections of open requests to paths with this part. */
  cut(part: string): void {
    for (const [reply, path] of this.#open) if (path.includes(part)) reply.socket?.destroy();
  }

  async #handle(call: IncomingMessage, reply: ServerResponse): Promise<void> {
    const { method = "GET", url: path = "/", headers } = call;
    this.received.push({ method, path, headers });
    const at = this.faults.findIndex((each) => path.includes(each.path));
    const [fault] = at < 0 ? [] : this.faults.splice(at, 1);
    if (fault?.answer) {
      call.resume();
      reply.writeHead(fault.answer.status, fault.answer.headers).end(fault.answer.body ?? "");
      return;
    }
    const { hostname, port } = this.#target;
    const sent = request(
      { hostname, port, method, path, headers },
      (response) => void this.#pass(response, reply, fault),
    );
    sent.on("error", () => reply.destroy());
    this.#open.set(reply, path);
    reply.on("close", () => {
      this.#open.delete(reply);
      sent.destroy();
    });
    let left = fault?.breakAfter?.bytes ?? Infinity;
    call.on("data", (chunk: Buffer) => {
      left -= chunk.length;
      if (left > 0) return;
      left = Infinity;
      call.unpipe(sent);
      void fault?.breakAfter?.when().then(() => reply.socket?.destroy());
    });
    call.pipe(sent);
  }

  async #pass(response: IncomingMessage, reply: ServerResponse, fault: Fault | undefined): Promise<void> {
    let left = fault?.cutAfter ?? fault?.holdAfter ?? Infinity;
    if (left >= 0) reply.writeHead(response.statusCode!, response.headers).flushHeaders();
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        const part = chunk.subarray(0, Math.max(left, 0));
        left -= part.length;
        if (part.length) await new Promise((done) => reply.write(part, done));
        if (left <= 0) break;
      }
    } catch {
      left = 0;
    }
    if (fault?.holdAfter !== undefined) return;
    // A client reads what has arrived before it sees that the connection was closed.
    if (left <= 0) reply.socket?.end();
    else reply.end();
  }
}
