/**
 * What Leat makes of over a thousand pipelines, beside what TensorFlow 2.21 was recorded to make of
 * them by `record.py`. Where Leat is meant to differ, the fact says what it answers, and why.
 */
import { assertEquals } from "../../assert.ts";
import { type Answer, answerOf, type Fact } from "./pipelines.ts";

const folder = new URL("./facts/", import.meta.url);

for (const { name } of Deno.readDirSync(folder)) {
  Deno.test(`Leat's pipelines give what tf.data's give: ${name.replace(".jsonl", "")}`, async () => {
    const lines = (await Deno.readTextFile(new URL(name, folder))).trimEnd().split("\n");
    for (const line of lines) {
      const fact: Fact = JSON.parse(line);
      const wanted = wantedOf(fact);
      const found = await answerOf(fact);
      const what = JSON.stringify(fact.pipeline);
      assertEquals(comparable(found, wanted), comparable(wanted, wanted), what);
      assertShapes(found.shapes, wanted.shapes, what);
      assertEquals(fact.leat === undefined, fact.why === undefined, what);
    }
  });
}

/** What Leat answers: what `leat` says of it, and the rest as tf.data, where that answered at all. */
function wantedOf({ tf, leat }: Fact): Answer {
  return tf.refused === undefined ? { ...tf, ...leat } : leat ?? tf;
}

/** Python's own errors have no code: then any refusal is as good. */
function comparable({ refused, value, cardinality, elements }: Answer, wanted: Answer): unknown {
  if (wanted.refused === undefined) return { refused, value, cardinality, elements };
  return /Error$/.test(wanted.refused) ? { refused: refused !== undefined } : { refused };
}

/** What both know of shapes is the same. */
function assertShapes(found: unknown, wanted: unknown, what: string): void {
  if (found === undefined || found === null || wanted === undefined || wanted === null) return;
  if (!Array.isArray(found) || !Array.isArray(wanted)) {
    assertEquals(Object.keys(found).sort(), Object.keys(wanted).sort(), what);
    for (const [key, part] of Object.entries(found)) {
      assertShapes(part, (wanted as Record<string, unknown>)[key], what);
    }
    return;
  }
  assertEquals(found.length, wanted.length, what);
  for (const [axis, length] of found.entries()) assertShapes(length, wanted[axis], what);
}
