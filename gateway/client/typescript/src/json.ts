/** JSON whose whole numbers keep all digits. */

/** Strings, which stay as they are, and numbers. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/**
 * The value of a JSON text. A whole number that a `number` cannot hold exactly, such as a long id, is a string of its
 * digits, which the gateway accepts as a number.
 */
export function parsed(text: string): any {
  return JSON.parse(/\d{16}/.test(text) ? text.replace(TOKENS, exact) : text);
}

function exact(token: string): string {
  return /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token;
}
