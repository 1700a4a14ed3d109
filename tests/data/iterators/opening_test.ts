/** Opening iterators. */
import { LeatError } from "../../../core/error.ts";
import { Dataset } from "../../../mod.ts";
import {
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";

Deno.test("an iterator of a pipeline that nests too deep is refused with invalid_argument", async () => {
  let deep: Dataset<number> = Dataset.range(10);
  for (let i = 0; i < 5_000; i++) deep = deep.skip(0);
  const loop = async () => {
    for await (const _ of deep);
  };
  for (const error of [assertThrows(() => deep.iterator()), await assertRejects(loop)]) {
    assertInstanceOf(error, LeatError);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, "a dataset or a value nests too deep");
  }
});

Deno.test("what walks a pipeline that nests too deep refuses it with invalid_argument", async () => {
  let deep: Dataset<number> = Dataset.range(10);
  for (let i = 0; i < 30_000; i++) deep = deep.skip(1);
  for (
    const walk of [
      () => deep.serialize(),
      () => deep.fingerprint(),
      () => deep.explain(),
      () => deep.cardinality(),
      () => deep.elementSpec,
      () => deep.at(0),
      () => deep.distribute({ service: "ws://127.0.0.1:1" }),
      () => Dataset.range(10).distribute({ service: "ws://127.0.0.1:1", rewrite: () => deep }),
    ]
  ) {
    const error = await assertRejects(async () => await walk(), LeatError);
    assertEquals((error as LeatError).code, "invalid_argument", String(walk));
    assertStringIncludes(error.message, "a dataset or a value nests too deep");
  }
});
