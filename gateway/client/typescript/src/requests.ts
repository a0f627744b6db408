/** The types of `gateway.request`: every path of the API with its parameters, body and response. */

import { GatewayError } from "./errors.js";
import type { Waiting } from "./jobs.js";
import type { paths } from "./schema.js";
import type { Content } from "./session.js";

/** The HTTP methods of the API. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The paths that have a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: Lowercase<M> extends keyof paths[P] ? P : never;
}[keyof paths];

type Operation<M extends Method, P extends PathOf<M>> = paths[P][Lowercase<M> & keyof paths[P]];
type Json<C> = C extends { content: { "application/json": infer J } } ? J : undefined;
type BodyOf<B> = B extends { content: { "application/json": infer J } } ? J : Content;

/** The parameters of an operation by their place (`path`, `query`, `headers`), and its `body`. */
export type RequestOptions<M extends Method, P extends PathOf<M>> = Waiting &
  (Operation<M, P> extends { parameters: infer A }
    ? { [K in keyof A as K extends "header" ? "headers" : K]: A[K] }
    : unknown) & {
    [K in keyof Operation<M, P> as K extends "requestBody" ? "body" : never]: BodyOf<NonNullable<Operation<M, P>[K]>>;
  };

/** The JSON of an operation's successful responses; undefined where a response has none. */
export type ResponseOf<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { responses: infer R }
    ? { [S in Exclude<keyof R, "default">]: Json<R[S]> }[Exclude<keyof R, "default">]
    : never;

/** The options of a request, which may be left out if all are optional. */
export type RequestArguments<M extends Method, P extends PathOf<M>> =
  object extends RequestOptions<M, P> ? [options?: RequestOptions<M, P>] : [options: RequestOptions<M, P>];

/**
 * @internal One segment of a path, percent-encoded (RFC 3986 §3.3). Raises GatewayError `invalid_params` for a missing,
 * empty or relative one, with which the request would go to another path.
 */
export function segment(value: unknown): string {
  const text = String(value ?? "");
  if (!["", ".", ".."].includes(text)) return encodeURIComponent(text);
  const detail = `'${text}' is no id and no name; give that of the item you mean`;
  throw new GatewayError({ code: "invalid_params", detail }, { sent: false });
}

/** @internal The path with its variables replaced; raises as `segment` does. */
export function pathWith(template: string, values: Record<string, unknown> = {}): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => segment(values[name]));
}
