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
