/** The fast guard accepts the same requests as the schema library. */
import * as v from "valibot";
import {
  checksOf,
  count,
  exactObject,
  fencedRef,
  flag,
  list,
  object,
  oneOf,
  optional,
  text,
  textUpTo,
  wireError,
} from "../../../actors/runtime/checks.ts";
import { WIRE_ERROR_DEPTH_MAX, type WireError } from "../../../core/error.ts";
import { guardOf } from "../../../actors/runtime/guard.ts";
import { assertEquals, assertThrows } from "../../assert.ts";
import { refusalOf } from "../lib/refusal.ts";
import fc from "../../lib/properties.ts";

const schema = object({
  count,
  name: optional(text),
  kind: optional(oneOf("a", "b")),
  isNew: flag,
  refs: list(fencedRef, 2),
  exact: optional(exactObject({ name: optional(textUpTo(2)) })),
  more: v.nullable(object({ at: optional(count) })),
});

const ref = { node: "n", path: "/p", incarnation: "1" };
const values = fc.constantFrom<unknown>(
  0,
  1,
  -1,
  "a",
  "c",
  "\ud800",
  true,
  null,
  undefined,
  {},
  [],
  [ref],
  [ref, ref, ref],
  { name: "nm" },
  { name: "nam" },
  {
    at: 1,
  },
  { at: undefined },
  [{ ...ref, path: 1 }],
);

Deno.test("guardOf accepts what valibot accepts, and nothing else", () => {
  const good = {
    count: 1,
    name: "n",
    kind: "a",
    isNew: true,
    refs: [ref, ref],
    exact: {},
    more: null,
  };
  const keys = fc.constantFrom(...Object.keys(good), "another");
  const requests = fc.tuple(keys, values, fc.boolean()).map(([key, value, isLeftOut]) => {
    const { [key]: _, ...others } = good as Record<string, unknown>;
    return isLeftOut ? others : { ...others, [key]: value };
  });
  const seen = [0, 0];
  fc.assert(
    fc.property(fc.oneof({ weight: 9, arbitrary: requests }, values), (request) => {
      const fits = v.is(schema, request);
      seen[Number(fits)]!++;
      assertEquals(guardOf(schema)(request), fits);
    }),
    { numRuns: 2_000 },
  );
  assertEquals(seen.every((times) => times > 20), true, `${seen}`);
});

Deno.test("checksOf shows the beginning of a long value", () => {
  interface Namer {
    name(request: { readonly count: number }): null;
  }
  const checks = checksOf<Namer>()({ name: object({ count }) });
  assertEquals(
    refusalOf(checks.name, { count: "x".repeat(1_000) })?.message,
    `name: count must be a count from 0, got 1000 characters: "${"x".repeat(59)}…`,
  );
});

Deno.test("checksOf calls a field that exactObject does not name unknown, whatever its value", () => {
  interface Namer {
    name(request: { readonly exact: { readonly isNew: boolean } }): null;
  }
  const checks = checksOf<Namer>()({ name: object({ exact: exactObject({ isNew: flag }) }) });
  const said = (exact: object) => refusalOf(checks.name, { exact })?.message;
  for (const value of [1, undefined]) {
    assertEquals(
      said({ isNew: true, more: value }),
      "name: exact.more is not known here: use one version of Leat everywhere",
    );
  }
  assertEquals(said({ more: 1 }), "name: exact.isNew is missing");
});

Deno.test("wireError keeps no field that errors do not have, and no cause below the deepest that is sent", () => {
  interface Teller {
    tell(request: { readonly error: WireError }): null;
  }
  const known = checksOf<Teller>()({ tell: object({ error: wireError }) }).tell;
  const error: WireError = { code: "internal", message: "m" };
  const full = { ...error, details: { at: 1 }, cause: error };
  assertEquals(known({ error: full }), { error: full });
  const more = { junk: new Uint8Array(9) };
  assertEquals(known({ error: { ...full, ...more, cause: { ...error, ...more } } }), {
    error: full,
  });

  const nested = (depth: number): WireError =>
    depth === 0 ? error : { ...error, cause: nested(depth - 1) };
  const kept = { error: nested(WIRE_ERROR_DEPTH_MAX) };
  assertEquals(known({ error: nested(WIRE_ERROR_DEPTH_MAX + 100) }), kept);
  assertThrows(() => known({ error: { ...error, cause: { code: "internal" } } }));
});
