/** What functions take from their last argument. */
import { mayUse, TOOLBOX_NAMES } from "../../../data/udf/captured_names.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("mayUse is false only for functions that cannot reach image or tensors", () => {
  const one = (fn: (...args: never[]) => unknown) => mayUse(TOOLBOX_NAMES, String(fn), 1);
  const without = [
    (x: number) => x + 1,
    (x: number, { index }: { index: number }) => x + index,
    (x = 1, { random: { next } }: { random: { next: () => number } }) => x + next(),
    function (x: { image: number }): number {
      return x.image;
    },
  ];
  assertEquals(without.map(one), without.map(() => false));
  const using = [
    (x: number, { image }: { image: unknown }) => [x, image],
    (_: number, { tensors: { cast } }: { tensors: { cast: unknown } }) => cast,
    (_: number, extra: { image: unknown }) => extra.image,
    (_: number, { index: _i, ...rest }: Record<string, unknown>) => rest,
    (_: number, { ["im" + "age"]: image }: Record<string, unknown>) => image,
    (_: number, extra = { image: 1 }) => extra,
    (...args: unknown[]) => args[1],
    function () {
      return arguments[1];
    },
    Math.sqrt,
    ((x: number) => x).bind(null),
  ];
  assertEquals(using.map(one), using.map(() => true));
  assertEquals(mayUse(TOOLBOX_NAMES, "(state, x) => x", 2), false);
  assertEquals(mayUse(TOOLBOX_NAMES, "({ image }) => image", 0), true);
  // What is remembered of a function holds for its arity, and for any names.
  const both = "({ image }, { index }) => [image, index]";
  assertEquals(mayUse(TOOLBOX_NAMES, both, 0), true);
  assertEquals(mayUse(TOOLBOX_NAMES, both, 1), false);
  assertEquals(mayUse(["index"], both, 0), false);
  assertEquals(mayUse(["index"], both, 1), true);
});
