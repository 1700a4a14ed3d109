/**
 * What an operator's `division` promises: dividing its work among tasks neither loses nor repeats an
 * element.
 */
import { chainOf } from "../../../data/deterministic/chain.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { END } from "../../../data/iterator.ts";
import type { DatasetNode, Division } from "../../../data/node.ts";
import { isSplittable, listSplitTable, type SplitSource } from "../../../data/sharding/splits.ts";
import { Dataset } from "../../../mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { assert, assertEquals } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { everyKind, type KindCase } from "../lib/every_kind.ts";
import { orderedReference } from "../lib/ordered_reference.ts";
import { type Outcome, outcomesOf } from "../lib/outcomes.ts";

const host = new DenoHost();
const seed = 0n;
const TASKS = 2;

/** Runs a test with a case of every kind that needs no service. */
function testKinds(name: string, test: (cases: readonly KindCase[]) => Promise<void>): void {
  Deno.test(name, async () => {
    await using folder = await TempFolder.make();
    const cases = await everyKind(folder.path);
    // A cache in files refuses to keep a part.
    const keepsFiles = ({ kind, attributes }: DatasetNode) =>
      kind === "cache" && attributes["path"] !== undefined;
    await test(cases.filter(({ node, division }) => division !== "served" && !keepsFiles(node)));
  });
}

/** One process reads everything. */
async function undivided({ dataset }: KindCase): Promise<Outcome[]> {
  await using iterator = openIterator(dataset.node, { host, seed });
  return await outcomesOf(iterator);
}

/** Tasks share the splits of the sources, as under DYNAMIC. Their results, one task after the other. */
async function sharedByTasks(node: DatasetNode): Promise<Outcome[]> {
  const table = await listSplitTable(node, host);
  const given = new Map<string, number>();
  const outcomes: Outcome[] = [];
  for (let task = 0; task < TASKS; task++) {
    // Every task but the last stops half-way through what is left.
    const splits: SplitSource = {
      next: (source, repetition) => {
        const key = `${source}/${repetition}`;
        const at = given.get(key) ?? 0;
        const all = table[source]!;
        if (at >= (task < TASKS - 1 ? Math.ceil(all.length / 2) : all.length)) {
          return Promise.resolve(END);
        }
        given.set(key, at + 1);
        return Promise.resolve(all[at]!);
      },
      total: (source) => Promise.resolve(table[source]!.length),
    };
    await using iterator = openIterator(node, { host, seed, splits });
    outcomes.push(...await outcomesOf(iterator));
  }
  return outcomes;
}

/**
 * The scalars of all elements, sorted. A batch of one split is shorter than one of all rows, and
 * padded otherwise, so neither batches nor zeros are compared.
 */
function scalarsOf(outcomes: readonly Outcome[]): string[] {
  const scalars: string[] = [];
  const visit = (value: unknown) => {
    if (ArrayBuffer.isView(value)) visit([...value as Uint8Array]);
    else if (value !== null && typeof value === "object") {
      for (const [key, part] of Object.entries(value)) {
        if (key !== "shape" && key !== "dtype") visit(part);
      }
    } else if (value !== 0) scalars.push(JSON.stringify(value));
  };
  visit(outcomes);
  return scalars.sort();
}

/** Divisions that keep the order of elements, and with it whole batches. A source always does. */
function keepsOrder({ division, inputs }: DatasetNode): boolean {
  const ordered: readonly Division[] = ["element", "rows"];
  return ordered.includes(division) || division === "split" && inputs.length === 0;
}

/** Whether the reader of a DETERMINISTIC stream gets what one process reads. */
async function isDividedWell(kind: KindCase): Promise<boolean> {
  if (chainOf(kind.dataset.node) === undefined) return true; // the reader runs it
  const [whole, divided] = [await undivided(kind), await orderedReference(kind.dataset)];
  return keepsOrder(kind.node)
    ? JSON.stringify(divided) === JSON.stringify(whole)
    : JSON.stringify(scalarsOf(divided)) === JSON.stringify(scalarsOf(whole));
}

testKinds(
  "splits of every kind of operator together give what one process reads",
  async (cases) => {
    let tried = 0;
    for (const kind of cases) {
      assert(
        await isDividedWell(kind),
        `${kind.node.kind}: the splits of its case in every_kind.ts do not give what one process reads. Is its division "${kind.node.division}" right?`,
      );
      if (chainOf(kind.dataset.node) !== undefined) tried++;
    }
    assert(tried > 30, `${tried}`);
  },
);

testKinds(
  "tasks that share the splits of any operator together give what one process reads",
  async (cases) => {
    const shared: readonly Division[] = ["element", "split", "shuffle", "rows"];
    for (const kind of cases) {
      const { node, dataset } = kind;
      if (!shared.includes(kind.division)) continue;
      const [whole, divided] = [await undivided(kind), await sharedByTasks(dataset.node)];
      assertEquals(scalarsOf(divided), scalarsOf(whole), node.kind);
    }
  },
);

testKinds(
  "tasks keep elements of aligned operators with those of the same number",
  async (cases) => {
    const pairsOf = (outcomes: readonly Outcome[]) =>
      outcomes.map((at) => {
        const [number, x] = (at as { element: [number, unknown] }).element;
        // The number that enumerate gives is one of the task.
        return JSON.stringify([number, Array.isArray(x) ? x.at(-1) : x]);
      }).sort();
    for (const { node, division, dataset } of cases) {
      if (division !== "element" && division !== "position") continue;
      const pairs = Dataset.zip([Dataset.counter(), dataset]).node;
      await using iterator = openIterator(pairs, { host, seed });
      const whole = pairsOf(await outcomesOf(iterator));
      assertEquals(pairsOf(await sharedByTasks(pairs)), whole, node.kind);
    }
  },
);

/** Their results vary anyway: by the errors so far, or by random draws. */
const NOT_COUNTED = ["ignoreErrors", "rejectionResample"];

testKinds(
  "an operator needs its whole input exactly if tasks that share the splits change what it gives",
  async (cases) => {
    for (const { node, dataset, ...kind } of cases) {
      if (node !== dataset.node || node.inputs.length === 0 || isSplittable(node)) continue;
      if (NOT_COUNTED.includes(node.kind)) continue;
      const shared = await sharedByTasks(node).catch(() => undefined);
      if (shared === undefined) continue; // such as `snapshot`, which is not divided
      const whole = await undivided({ node, dataset, ...kind });
      const changes = JSON.stringify(scalarsOf(shared)) !== JSON.stringify(scalarsOf(whole));
      assertEquals(node.needsWholeInput, changes, node.kind);
    }
  },
);

/** An operator that only checks a whole dataset gives the same on a part. */
const HARMLESS = ["assertCardinality as element", "assertCardinality as split"];

testKinds("a wrong division is noticed", async (cases) => {
  const wrongOf: Partial<Record<Division, readonly Division[]>> = {
    position: ["element", "split"],
    rows: ["element"],
    whole: ["element", "split"],
  };
  const unnoticed: string[] = [];
  for (const kind of cases) {
    const { node, division, dataset } = kind;
    if (node !== dataset.node || node.inputs.length !== 1) continue;
    for (const wrong of wrongOf[division] ?? []) {
      Object.defineProperty(node, "division", { value: wrong });
      const isWell = await isDividedWell(kind).catch(() => false);
      Object.defineProperty(node, "division", { value: division });
      if (isWell) unnoticed.push(`${node.kind} as ${wrong}`);
    }
  }
  assertEquals(unnoticed, HARMLESS);
});
