/** The bounds of a list that is read page by page, and why records of it are missing. */

import { GatewayError } from "./errors.js";
import type { Params } from "./numbered_pages.js";

/** Pages without records in a row, equal pages in a row, and pages, after which a list is taken for one without end. */
const [MAX_EMPTY_PAGES, MAX_EQUAL_PAGES, MAX_PAGES] = [200, 4, 100_000];
/** Pages back to which a repeated next page is recognized. */
const REMEMBERED = 1000;

/** The same rules as `PageWalk` of `gateway/foundation/aio/paging.py`. */
export class PageWalk {
  pages = 0;
  #emptyPages = 0;
  #equalPages = 0;
  #records = "";
  readonly #named = new Set<string>();
  #incomplete: string | null = null;

  /** `compares`: whether equal pages show that the application ignores the param of the page; selected fields may be equal. */
  constructor(readonly compares: boolean) {}

  /** Count a page and remember the params of the next; raises GatewayError for a list without end. */
  add(following: Params | null, records: readonly unknown[], incomplete: string | null, mayRepeat: boolean): void {
    this.pages += 1;
    this.#emptyPages = records.length ? 0 : this.#emptyPages + 1;
    this.#compare(records);
    this.#incomplete ??= incomplete;
    if (following === null) this.#incomplete ??= this.#repeated();
    else this.#requireProgress(mayRepeat ? undefined : JSON.stringify(Object.entries(following).sort()));
  }

  /** Raises GatewayError with the first reason if records of the list are or may be missing. */
  requireComplete(): void {
    if (this.#incomplete !== null) throw new GatewayError({ code: "upstream_rejected", detail: this.#incomplete });
  }

  #compare(records: readonly unknown[]): void {
    const text = this.compares && records.length ? JSON.stringify(records) : "";
    this.#equalPages = text && text === this.#records ? this.#equalPages + 1 : 1;
    this.#records = text;
  }

  #repeated(): string | null {
    if (this.#equalPages === 1) return null;
    return `the application returned the same page ${this.#equalPages} times in place of others`;
  }

  #requireProgress(next: string | undefined): void {
    if (next !== undefined) {
      if (this.#named.has(next)) throw endless("names a page as the next that it returned before");
      this.#named.add(next);
      if (this.#named.size > REMEMBERED) this.#named.delete(this.#named.values().next().value!);
    }
    if (this.#equalPages >= MAX_EQUAL_PAGES) throw endless(`returned the same page ${MAX_EQUAL_PAGES} times`);
    if (this.#emptyPages >= MAX_EMPTY_PAGES)
      throw endless(`returned ${MAX_EMPTY_PAGES} pages without records in a row`);
    if (this.pages >= MAX_PAGES) throw endless(`has more than ${MAX_PAGES} pages; ask for less or for larger pages`);
  }
}

function endless(what: string): GatewayError {
  return new GatewayError({ code: "upstream_invalid_response", detail: `the application ${what}` });
}
