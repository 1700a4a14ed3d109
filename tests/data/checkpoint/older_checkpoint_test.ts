/** Checkpoints without a field: it is refused by its name, or the stream is the same without it. */
import { isPlainObject } from "../../../core/tree.ts";
import {
  decodeIteration,
  encodeIteration,
  identityOf,
  type SavedIteration,
} from "../../../data/checkpoint/saving.ts";
import { type DatasetIterator, LeatError } from "../../../mod.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { ELEMENTS_MAX, open, PIPELINES, prepared, range } from "../lib/checkpoint_pipelines.ts";
import { type Outcome, outcomesOf, readOutcomes } from "../lib/outcomes.ts";

/** What is written where the other is not: an element has a token, or it is saved itself. */
const OTHERWISE: Record<string, string> = {
  token: "element",
  tokens: "elements",
  error: "element",
  position: "kept",
};

/** The state, once for each field anywhere in it, without that field. */
function* withoutOne(state: unknown, path: string): Generator<{ path: string; state: unknown }> {
  if (Array.isArray(state)) {
    for (const [i, part] of state.entries()) {
      for (const less of withoutOne(part, `${path}[${i}]`)) {
        yield { path: less.path, state: state.with(i, less.state) };
      }
    }
  } else if (isPlainObject(state)) {
    for (const [name, part] of Object.entries(state)) {
      const { [name]: _, ...rest } = state;
      yield { path: `${path}.${name}`, state: rest };
      for (const less of withoutOne(part, `${path}.${name}`)) {
        yield { path: less.path, state: { ...state, [name]: less.state } };
      }
    }
  }
}

/** What is left of an iterator that is restored, or the code and message with which that is refused. */
async function restored(
  iterator: DatasetIterator<unknown>,
  bytes: Uint8Array,
): Promise<Outcome[] | LeatError> {
  try {
    await iterator.restore(bytes);
  } catch (error) {
    if (error instanceof LeatError) return error;
    throw error;
  }
  return await outcomesOf(iterator, ELEMENTS_MAX);
}

for (const [name, make] of Object.entries(PIPELINES)) {
  Deno.test(`restore of ${name} refuses a state without a field, or gives the same stream`, async () => {
    let refused = 0;
    for (const position of [1, 5]) {
      const host = await prepared();
      const dataset = await make();
      const saver = open(dataset, host);
      await readOutcomes(saver, position);
      const saved = decodeIteration(identityOf(dataset.node), await saver.save());
      const { contents } = host;
      host.contents = new Map(contents);
      const wanted = await outcomesOf(saver, ELEMENTS_MAX);
      const stored = host.contents;
      await saver.return();
      for (const { path, state } of withoutOne(saved, "iteration")) {
        host.contents = new Map(contents);
        const bytes = encodeIteration(identityOf(dataset.node), state as SavedIteration);
        const iterator = open(await make(), host);
        const found = await restored(iterator, bytes);
        await iterator.return();
        assertEquals(host.locked.size, 0, `without ${path} at ${position}`);
        if (!(found instanceof LeatError)) {
          assertEquals(found, wanted, `without ${path} at ${position}`);
          assertEquals(host.contents, stored, `without ${path} at ${position}`);
          continue;
        }
        refused++;
        assertEquals(found.code, "failed_precondition", `without ${path}: ${found.message}`);
        const field = path.slice(path.lastIndexOf(".") + 1);
        assertMatch(found.message, new RegExp(`did not write "(${field}|${OTHERWISE[field]})"`));
      }
    }
    assert(refused > 0, "there was nothing to leave out");
  });
}

Deno.test("restore names a missing field and leaves the iterator usable", async () => {
  const dataset = range().skip(2);
  await using iterator = open(dataset);
  await iterator.next();
  const saved = decodeIteration(identityOf(dataset.node), await iterator.save());
  const { left: _, ...state } = saved.state as { left: number };
  const bytes = encodeIteration(identityOf(dataset.node), { ...saved, state });
  const error = await assertRejects(() => iterator.restore(bytes), LeatError);
  assertMatch(error.message, /another version.*"left"/);
  assertEquals((await iterator.next()).value, 3);
});
