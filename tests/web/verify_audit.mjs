// Verifies an exported audit log: node verify_audit.mjs FILE PUBLIC_KEY
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";

const [file, publicKey] = process.argv.slice(2);

// RFC 8785: members sorted by UTF-16 code units, numbers and texts as ECMAScript writes them.
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${members.join(",")}}`;
}

// The number of members, in all objects: a text that names one twice states more.
function members(value) {
  if (value === null || typeof value !== "object") return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum, each) => sum + members(each), own);
}

function without(line, name) {
  const { [name]: _, ...rest } = line;
  return rest;
}

const raw = Buffer.from(publicKey, "base64");
const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: raw.toString("base64url") }, format: "jwk" });
let previous = null;
let ended = false;
for (const text of readFileSync(file, "utf8").trimEnd().split("\n")) {
  const line = JSON.parse(text);
  const stated = [...text.matchAll(/"(?:\\.|[^"\\])*"(\s*:)?/g)].filter((each) => each[1]).length;
  if (stated !== members(line)) process.exit(1);
  if (line.checkpoint) {
    const signature = Buffer.from(line.signature, "base64");
    const signed = verify(null, Buffer.from(canonical(without(line, "signature"))), key, signature);
    if (!signed || line.seq !== previous.seq || line.hash !== previous.hash) process.exit(1);
    ended = true;
    continue;
  }
  const hash = createHash("sha256").update(canonical(without(line, "hash"))).digest("hex");
  if (hash !== line.hash) process.exit(1);
  if (previous && (line.previous !== previous.hash || line.seq !== previous.seq + 1)) process.exit(1);
  previous = line;
  ended = false;
}
process.exit(ended ? 0 : 1);
