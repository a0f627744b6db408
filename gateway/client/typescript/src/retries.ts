/** Decides whether a failed request is sent again, and after which pause. */

import { setTimeout as timeout } from "node:timers/promises";
import type { GatewayError } from "./errors.js";

/** How often the client repeats a request, and after which pauses. */
export interface RetryPolicy {
  /** Attempts after the first; 4 by default. */
  retries: number;
  /** Seconds of the longest pause, 30 by default; if `Retry-After` is longer, the error is raised. */
  longestPause: number;
  /** Seconds of the first pause without `Retry-After`, 0.25 by default; each further pause is twice as long. */
  firstPause: number;
}

export const DEFAULT_POLICY: RetryPolicy = { retries: 4, longestPause: 30, firstPause: 0.25 };
/** Attempts, about a second apart, while the gateway still executes the first request. */
const IN_FLIGHT_TRIES = 120;

/** Seconds until the next attempt; undefined if the error is final. `isSafe`: repeating has no further effect. */
export function pauseAfter(
  policy: RetryPolicy,
  error: GatewayError,
  tried: number,
  isSafe: boolean,
): number | undefined {
  if (error.code === "idempotency_in_flight") return tried <= IN_FLIGHT_TRIES ? (error.retryAfter ?? 1) : undefined;
  const mayRepeat = error.code === "rate_limited" || (error.code === "unavailable" && (isSafe || !error.sent));
  if (tried > policy.retries || !mayRepeat) return undefined;
  if (error.retryAfter !== undefined) return error.retryAfter > policy.longestPause ? undefined : error.retryAfter;
  return growingPause(policy, tried);
}

/** Seconds that double with each attempt, with jitter. */
export function growingPause(policy: RetryPolicy, tried: number): number {
  return Math.min(policy.longestPause, policy.firstPause * 2 ** (tried - 1)) * (0.5 + Math.random() / 2);
}

/** Wait; raises the signal's reason once it is aborted. */
export async function sleep(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  await timeout(seconds * 1000, undefined, { signal }).catch((error: unknown) => {
    throw signal?.aborted ? signal.reason : error;
  });
}

/** The promise's value; raises the signal's reason once it is aborted, while the promise goes on for others. */
export async function unless<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  const ended = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { signal: ended.signal });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    ended.abort();
  }
}
