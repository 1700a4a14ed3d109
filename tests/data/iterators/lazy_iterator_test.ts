/** `LazyIterator`: loads its iterator once, on first use, and then behaves like it. */

import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { rootContext } from "../../../data/root_context.ts";
import { type ElementIterator, END } from "../../../data/iterator.ts";
import { lazyFactory, LazyIterator } from "../../../data/iterators/lazy_iterator.ts";
import { ReadingFailure } from "../../../data/iterators/reading_failure.ts";
import { Dataset } from "../../../mod.ts";

const { node } = Dataset.range(4);
const context = rootContext(node, { seed: 1n });
const range = () => node.makeIterator(context);

async function rest(iterator: ElementIterator): Promise<unknown[]> {
  const elements = [];
  for (let next = await iterator.next(); next !== END; next = await iterator.next()) {
    elements.push(next);
  }
  return elements;
}

Deno.test("LazyIterator loads once, at the first next, and gives the loaded iterator's elements", async () => {
  let fetches = 0;
  const late = new LazyIterator(context, () => {
    fetches++;
    return Promise.resolve(range());
  });
  assertEquals(fetches, 0);
  assertEquals(await rest(late), [0, 1, 2, 3]);
  assertEquals(fetches, 1);
});

Deno.test("LazyIterator gives elements that are null", async () => {
  const nulls = Dataset.range(4).map((i) => i % 2 === 0 ? null : i).node;
  const context = rootContext(nulls, { seed: 1n });
  const late = new LazyIterator(context, () => Promise.resolve(nulls.makeIterator(context)));
  assertEquals(await rest(late), [null, 1, null, 3]);
});

Deno.test("LazyIterator fails at every call if loading fails", async () => {
  const why = new LeatError("not_found", "no such pipeline");
  const late = new LazyIterator(context, () => Promise.reject(why));
  for (let times = 0; times < 2; times++) {
    const failure = await assertRejects(async () => await late.next(), ReadingFailure);
    assertEquals(failure.reason, why);
  }
});

Deno.test("LazyIterator disposes an iterator that is loaded after its own disposal", async () => {
  const gate = Promise.withResolvers<ElementIterator>();
  const late = new LazyIterator(context, () => gate.promise);
  const pending = late.next();
  late.dispose();
  const fetched = range();
  gate.resolve(fetched);
  assertEquals(await pending, END);
  assert(fetched.disposed);
});

Deno.test("LazyIterator is saved and restored like its iterator", async () => {
  const late = new LazyIterator(context, () => Promise.resolve(range()));
  await late.next();
  const state = await late.save();
  const plain = range();
  await plain.restore(state);
  assertEquals(await rest(plain), [1, 2, 3]);
  const another = new LazyIterator(context, () => Promise.resolve(range()));
  await another.restore(state);
  assertEquals(await rest(another), [1, 2, 3]);
});

Deno.test("lazyFactory loads once for all iterators, and again after a failure", async () => {
  let loads = 0;
  const make = lazyFactory(() => {
    if (++loads === 1) return Promise.reject(new LeatError("unavailable", "no such module now"));
    return Promise.resolve((node, context) => node.makeIterator(context));
  });
  const [first, beside] = [make(node, context), make(node, context)];
  const failures = await Promise.all(
    [first, beside].map((late) => assertRejects(async () => await late.next(), LeatError)),
  );
  assertEquals(failures.map(({ code }) => code), ["unavailable", "unavailable"]);
  assertEquals(loads, 1);
  for (let i = 0; i < 2; i++) assertEquals(await rest(make(node, context)), [0, 1, 2, 3]);
  assertEquals(loads, 2);
});
