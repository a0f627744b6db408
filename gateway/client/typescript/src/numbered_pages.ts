/**
 * Reads a list by page numbers or offsets while its records move: each page overlaps the one before. Pure; the same
 * rules as `gateway/foundation/numbered_pages.py`.
 *
 * If a record leaves the pages that were read, all others move one place to the front, and the next page would lack
 * one. Each request therefore begins with the last record that was read. If its page does not begin with a known
 * record, the page before is read again, and later pages overlap by more. A record that moves to the front of the list
 * is found there after the last page.
 */

/** The params of a page. */
export type Params = Record<string, unknown>;

/** The params that select a page. */
export interface Numbering {
  /** The number of the page, or of its first record. */
  param: string;
  /** The number of records on a page. */
  size: string;
  countsRecords: boolean;
}

/** How far a list was read. */
export interface Place {
  /** The params of the first page. */
  params: Params;
  /** `front`: after the last page; `plain`: pages do not overlap. */
  phase: "reading" | "front" | "plain";
  /** The value of `param` for the first page, and whether the application has it as text. */
  first: number;
  isText: boolean;
  /** Records on a full page; 0 before the first page. */
  size: number;
  /** Records of the list before the first unread one, and how many of them the next page repeats. */
  position: number;
  overlap: number;
  /** Identifiers of the first page, of the last records that were new, and of the last records before `position`. */
  front: readonly string[];
  recent: readonly string[];
  tail: readonly string[];
  /** Pages that were read again, in a row and in all, and pages of the front after the last page. */
  back: number;
  detours: number;
  atFront: number;
}

/** A page: the params that requested it, the identifiers of its records, and what it says of the next one. */
export interface NamedPage {
  asked: Params;
  names: readonly string[];
  following: Params | null;
  incomplete: string | null;
}

/** What follows from a page. */
export interface PageStep {
  /** The indexes of the records that were not read before. */
  fresh: readonly number[];
  /** The params of the next page; null after the last. */
  following: Params | null;
  /** Why records are or may be missing. */
  incomplete: string | null;
  place: Place;
}

/** Members by which applications tell records apart, the best first. */
const IDENTIFIERS = ["id", "key", "gid", "iid", "sha", "name"];
/** The smallest page that is requested, as a share of a full one; the size is chosen so that a page begins where it must. */
const SMALLEST = 0.8;
/** Pages that are read again because records moved, in a row and in all, and pages of the front after the last one. */
const [MAX_BACK, MAX_DETOURS, MAX_FRONT] = [3, 100, 3];
const SAME = "the application returned the same page again in place of the next one";
const MOVED = "records moved while the list was read, so that some may be missing; read it again, or ask for less";

/** The place before the first page. */
export function beginning(params: Params): Place {
  return {
    ...{ params, phase: "reading", first: 0, isText: false, size: 0, position: 0, overlap: 1 },
    ...{ front: [], recent: [], tail: [], back: 0, detours: 0, atFront: 0 },
  };
}

/** What tells a record apart from the others of its list; also after a change, if the record has such a member. */
export function identifier(record: unknown): string {
  return memberOf(record, IDENTIFIERS) ?? JSON.stringify(record);
}

/** Whether a part of a record has a member that no other record of its list shares; names may be equal. */
export function isIdentified(record: unknown): boolean {
  return memberOf(record, IDENTIFIERS.slice(0, -1)) !== undefined;
}

function memberOf(record: unknown, names: readonly string[]): string | undefined {
  if (typeof record !== "object" || record === null) return undefined;
  const values = names.map((name) => (record as Record<string, unknown>)[name]);
  const value = values.find((each) => ["string", "boolean"].includes(typeof each) || Number.isInteger(each));
  return value === undefined ? undefined : String(value);
}

/** What follows from a page. */
export function step(numbering: Numbering, before: Place, page: NamedPage): PageStep {
  const { asked, names, following, incomplete } = page;
  let place = before.size === 0 ? begun(numbering, before, page) : before;
  const [start, size] = [startOf(numbering, place, asked), sizeOf(numbering, place, asked)];
  const isSame =
    names.length >= size && size > place.position - start && isEqual(last(place.tail, names.length), names);
  if (isSame || new Set(names).size < names.length) {
    place = { ...place, phase: "plain", front: [], recent: [], tail: [] };
    return { fresh: [...names.keys()], following, incomplete: incomplete ?? (isSame ? SAME : null), place };
  }
  const known = new Set([...place.front, ...place.recent]);
  const fresh = [...names.keys()].filter((index) => !known.has(names[index]!));
  if (place.phase === "plain") return { fresh, following, incomplete, place };
  if (place.phase === "front") return atFront(place, page, fresh);
  const isContinuous = !names.length || start <= 0 || start >= place.position || place.tail.includes(names[0]!);
  const overlaps = start < place.position;
  const recent = last([...place.recent, ...fresh.map((index) => names[index]!)], 2 * MAX_BACK * place.size);
  place = { ...place, recent, front: place.front.length ? place.front : names };
  if (!isContinuous && place.back < MAX_BACK && place.detours < MAX_DETOURS) {
    const overlap = Math.min(2 * place.overlap, Math.max(Math.floor(place.size / 2), 1));
    place = { ...place, position: start, back: place.back + 1, detours: place.detours + 1, overlap };
    return { fresh, following: from(numbering, place, start - place.size), incomplete, place };
  }
  const tail = last([...place.tail, ...names], (MAX_BACK + 1) * place.size);
  place = { ...place, position: start + names.length, back: 0, tail };
  const found = after(numbering, place, page, fresh, overlaps);
  return isContinuous ? found : { ...found, incomplete: found.incomplete ?? MOVED };
}

/** The place with what the first page shows; `plain` if it does not show how its list is numbered. */
function begun(numbering: Numbering, place: Place, page: NamedPage): Place {
  const { param } = numbering;
  const number = numberOf(page.following?.[param]);
  const askedSize = numberOf(page.asked[numbering.size]) || page.names.length;
  // Pages that are mostly empty are no measure of how the application counts them.
  const isMeasure = 5 * page.names.length >= askedSize || numbering.countsRecords;
  if (number === undefined || !page.names.length || !isMeasure) return { ...place, phase: "plain" };
  const size = Math.min(page.names.length, askedSize);
  const first = number - (numbering.countsRecords ? page.names.length : 1);
  const asked = page.asked[param];
  const isAsked = asked === undefined || asked === null || asked === first || asked === String(first);
  if (![0, 1].includes(first) || !isAsked) return { ...place, phase: "plain" };
  return { ...place, first, size, isText: typeof page.following?.[param] === "string" };
}

/** What follows a page that continues what was read. A page that is not full is followed by the one it names, because only that one can show the end. */
function after(
  numbering: Numbering,
  place: Place,
  page: NamedPage,
  fresh: readonly number[],
  overlaps: boolean,
): PageStep {
  const [size, start] = [sizeOf(numbering, place, page.asked), startOf(numbering, place, page.asked)];
  if (page.following !== null) {
    const following = from(numbering, place, place.position - place.overlap);
    const isShort = overlaps && page.names.length < size;
    const isPlain = isShort || startOf(numbering, place, following) <= start;
    return { fresh, following: isPlain ? page.following : following, incomplete: page.incomplete, place };
  }
  if (page.incomplete === null) {
    const isOnly = place.position <= page.names.length;
    return { fresh, following: isOnly ? null : place.params, incomplete: null, place: { ...place, phase: "front" } };
  }
  if (numbering.countsRecords || size === place.size) {
    return { fresh, following: null, incomplete: page.incomplete, place };
  }
  // Smaller pages reach the application's last page sooner than full ones.
  const full = request(numbering, place, Math.floor(place.position / place.size), place.size);
  return { fresh, following: full, incomplete: null, place: { ...place, phase: "plain" } };
}

/** Records in front of those of the first page are new; behind them are those that were read. */
function atFront(place: Place, page: NamedPage, fresh: readonly number[]): PageStep {
  const front = new Set(place.front);
  const known = page.names.findLastIndex((name) => front.has(name));
  if (known >= 0 || page.following === null) {
    const before = known < 0 ? fresh : fresh.filter((index) => index < known);
    return { fresh: before, following: null, incomplete: page.incomplete, place };
  }
  place = { ...place, atFront: place.atFront + 1 };
  if (place.atFront === MAX_FRONT) return { fresh, following: null, incomplete: page.incomplete ?? MOVED, place };
  return { fresh, following: page.following, incomplete: page.incomplete, place };
}

/** The request whose page begins at a record of the list, or a few before it, as page numbers allow. */
function from(numbering: Numbering, place: Place, at: number): Params {
  const start = Math.max(at, 0);
  if (numbering.countsRecords) return request(numbering, place, start, place.size);
  const least = Math.max(Math.floor(place.size * SMALLEST), 1);
  const repeated = (size: number) => (start % size) + place.size - size;
  let best = place.size;
  for (let size = place.size; size >= least; size -= 1) if (repeated(size) < repeated(best)) best = size;
  return request(numbering, place, Math.floor(start / best), best);
}

function request(numbering: Numbering, place: Place, number: number, size: number): Params {
  const value = place.first + number;
  const sized = numbering.countsRecords ? {} : { [numbering.size]: size };
  return { ...place.params, [numbering.param]: place.isText ? String(value) : value, ...sized };
}

/** The records that a full page has; an application may return fewer than were asked for. */
function sizeOf(numbering: Numbering, place: Place, asked: Params): number {
  return Math.min(numberOf(asked[numbering.size]) || place.size, place.size);
}

/** The records before a page. */
function startOf(numbering: Numbering, place: Place, asked: Params): number {
  const number = numberOf(asked[numbering.param]);
  if (number === undefined) return 0;
  return (number - place.first) * (numbering.countsRecords ? 1 : sizeOf(numbering, place, asked));
}

/** A whole number, also as text. */
function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isInteger(value) ? value : undefined;
  return typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
}

function last<T>(values: readonly T[], count: number): readonly T[] {
  return values.slice(Math.max(values.length - count, 0));
}

function isEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index]);
}
