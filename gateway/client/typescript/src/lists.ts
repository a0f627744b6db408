/** Reads a list of an application page by page to its end. */

import type { Answer } from "./jobs.js";
import { beginning, identifier, isIdentified, step, type Numbering, type Params } from "./numbered_pages.js";
import { PageWalk } from "./page_walk.js";
import { segment } from "./requests.js";
import type { components } from "./schema.js";
import type { Session } from "./session.js";

/** The fields of the records. */
export interface Selection {
  /** Fields to keep, as dotted paths. */
  select?: readonly string[] | undefined;
  /** Fields to leave out, as dotted paths. */
  exclude?: readonly string[] | undefined;
}

/** @internal What a list is read with. */
export interface ListSource<R> {
  /** The page that these params request. */
  page(params: Params): Promise<Answer<R[]>>;
  /** How the list's pages are numbered, if its records may move. */
  numbering(): Promise<Numbering | undefined>;
}

/** Styles of paging by numbers of pages or records. */
const NUMBERED: ReadonlySet<string> = new Set(["page", "offset"]);

/** @internal Every page; raises GatewayError after the last one if records are or may be missing. */
export async function* pagesOf<R>(
  params: Params,
  { select, exclude }: Selection,
  source: ListSource<R>,
): AsyncGenerator<Answer<R[]>> {
  const isWhole = !select?.length && !exclude?.length;
  const walk = new PageWalk(isWhole);
  let [following, place]: [Params | null, ReturnType<typeof beginning>] = [params, beginning(params)];
  let numbering: Numbering | undefined;
  while (following !== null) {
    let page: Answer<R[]> = await source.page(following);
    // Records without their identifiers may be equal, so that they do not show which of them were read before.
    if (walk.pages === 0 && page.next && (isWhole || page.result.every(isIdentified)))
      numbering = await source.numbering();
    if (numbering) {
      const named = {
        asked: following,
        names: page.result.map(identifier),
        following: page.next ?? null,
        incomplete: page.incomplete ?? null,
      };
      const { fresh, following: next, incomplete, place: after } = step(numbering, place, named);
      place = after;
      page = { ...page, result: fresh.map((index) => page.result[index]!), next, incomplete };
    }
    yield page;
    following = page.next ?? null;
    walk.add(following, page.result, page.incomplete ?? null, numbering !== undefined);
  }
  walk.requireComplete();
}

/** @internal How the pages of a list are numbered whose order is unknown, from the description of its kind. */
export async function numberingOf(
  session: Session,
  kind: string,
  entity: string,
  action: string,
  params: Params,
): Promise<Numbering | undefined> {
  const described = await session.once(`/api/v1/integrations/connector-types/${segment(kind)}`, (path) =>
    session.json<components["schemas"]["Kind"]>({ method: "GET", path }),
  );
  const operation = described.entities[entity]?.actions[action];
  const other = operation?.alternatives.find((each) => !(each.without in params));
  const paging = other ? other.paging : operation?.paging;
  if (paging?.order !== "unknown" || !paging.param || !paging.size) return undefined;
  const isNumbered = NUMBERED.has(paging.style) || (paging.style === "link" && paging.param === "page");
  return isNumbered ? { param: paging.param, size: paging.size, countsRecords: paging.style === "offset" } : undefined;
}
