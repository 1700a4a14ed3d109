/**
 * Compares `docs/tf-data.md` with the code: every name on the page exists, and every method is on
 * the page.
 */

import * as leat from "../../mod.ts";
import { assert, assertEquals } from "../assert.ts";

const PAGE = new URL("../../docs/tf-data.md", import.meta.url);
const FACTS = new URL("../data/tf/facts/", import.meta.url);
const DATASET = new URL("../../data/dataset.ts", import.meta.url);

/** The rows of the page's tables, without their heads. */
async function rows(): Promise<string[][]> {
  const lines = (await Deno.readTextFile(PAGE)).split("\n").filter((line) => line.startsWith("|"));
  return lines
    .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()))
    .filter(([name]) => name !== "tf.data" && name !== "---");
}

/** Names of methods and getters, or of statics. */
function namesOf(owner: object): string[] {
  const notOurs = ["constructor", "length", "name", "prototype"];
  return Object.getOwnPropertyNames(owner).filter((name) => !notOurs.includes(name));
}

const PUBLIC = [...namesOf(leat.Dataset), ...namesOf(leat.Dataset.prototype)];

Deno.test("every row of docs/tf-data.md has a name, Leat's name, and what differs", async () => {
  const all = await rows();
  assert(all.length > 150, String(all.length));
  for (const row of all) {
    assertEquals(row.length, 3, row.join("|"));
    assert(row.every((cell) => cell !== ""), row.join("|"));
  }
});

/** Whether a name of the page exists, given the text of the file that it links to. */
function exists(name: string, file: string): boolean {
  const [owner, member] = name.split(".") as [string, string | undefined];
  const owners: Record<string, object> = {
    Dataset: leat.Dataset,
    DatasetIterator: leat.DatasetIterator.prototype,
    ShardingPolicy: leat.ShardingPolicy,
  };
  if (member !== undefined && owner in owners) return member in owners[owner]!;
  if (name in leat || PUBLIC.includes(name)) return true;
  // An option, or a member of an interface: the file declares it.
  const type = new RegExp(`(interface|type) ${owner}\\b`);
  const field = new RegExp(`^ +(readonly )?${member ?? owner}[?(:]`, "m");
  return member === undefined
    ? type.test(file) || field.test(file)
    : type.test(file) && field.test(file);
}

Deno.test("every name that docs/tf-data.md gives as Leat's is there, in the file it links to", async () => {
  const page = await Deno.readTextFile(PAGE);
  const links = [...page.matchAll(/\[`([^`]+)`\]\((\.\.\/[^)]+)\)/g)];
  assert(links.length > 100);
  for (const [, name, path] of links) {
    const file = await Deno.readTextFile(new URL(path!, PAGE));
    assert(exists(name!, file), `${name} in ${path}`);
  }
  for (const row of await rows()) {
    assert(row[1] === "none" || /^\[`.+`\]\(.+\)$/.test(row[1]!), row[1]);
  }
});

Deno.test("docs/tf-data.md names every method of Dataset", async () => {
  const page = await Deno.readTextFile(PAGE);
  for (const name of PUBLIC) {
    assert(new RegExp(`\`(Dataset\\.)?${name}\``).test(page), name);
  }
});

Deno.test("docs/tf-data.md has the headings that it links to, and that facts name", async () => {
  const page = await Deno.readTextFile(PAGE);
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!.toLowerCase().replaceAll(/[^\w -]/g, "").replaceAll(" ", "-")
  );
  const named = new Set([...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor!));
  for (const { name } of Deno.readDirSync(FACTS)) {
    const facts = await Deno.readTextFile(new URL(name, FACTS));
    for (const [, why] of facts.matchAll(/"why":"([^"]+)"/g)) named.add(why!);
  }
  for (const anchor of named) assert(headings.includes(anchor), anchor);
});

Deno.test("every public method of Dataset has an example", async () => {
  const source = await Deno.readTextFile(DATASET);
  const documented = new Map<string, string>();
  const declaration =
    /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s+(?:static )?(?:async )?(?:get )?(\w+)\s*[<(]/g;
  for (const [, text, name] of source.matchAll(declaration)) {
    if (!documented.has(name!)) documented.set(name!, text!);
  }
  for (const name of PUBLIC) {
    assert(documented.get(name)?.includes("@example"), `${name} has no @example`);
  }
});
