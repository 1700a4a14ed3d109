/** Serialised functions: written, sent as bytes, read back, called. */

import {
  assert,
  assertEquals,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { TREE_DEPTH_MAX } from "../../../core/tree.ts";
import { Tensor, tensor } from "../../../core/tensor.ts";
import { Dataset } from "../../../data/dataset.ts";
import { udf } from "../../../data/udf/module_function.ts";
import type { ModuleHost } from "../../../data/udf/import_function.ts";
import {
  ambientNamesOf,
  type AnyFunction,
  type Captures,
  deserializeFunction,
  loadFunction,
  serializeFunction,
  type UserFunction,
} from "../../../data/udf/user_function.ts";

const FIXTURE = import.meta.resolve("./fixture_functions.ts");
const importer: ModuleHost = {
  importModule: (url) => import(url),
  sleep: () => new Promise(() => {}),
};

/** Serialises a function, reads it back and loads it. */
async function travel(fn: UserFunction, captures?: Captures) {
  const wire = structuredClone(serializeFunction(fn, captures));
  return await loadFunction(deserializeFunction(wire), importer);
}

function codeOf(run: () => unknown): string {
  return (assertThrows(run, LeatError) as LeatError).code;
}

Deno.test("serializeFunction keeps the results of a self-contained function", async () => {
  const { fn, captures } = await travel(
    (x: number, { mean, std }: { mean: number; std: number }) => (x - mean) / std,
    { mean: 10, std: 4 },
  );
  assertEquals(fn(18, captures), 2);
});

Deno.test("serializeFunction accepts async functions, generators and methods", async () => {
  const holder = {
    later: async (x: number) => await Promise.resolve(x + 1),
    *twice(x: number) {
      yield x;
      yield x;
    },
    add(x: number, y: number) {
      return x + y;
    },
  };
  assertEquals(await (await travel(holder.later)).fn(1), 2);
  assertEquals([...(await travel(holder.twice)).fn(3) as Iterable<number>], [3, 3]);
  assertEquals((await travel(holder.add)).fn(3, 4), 7);
});

Deno.test("deserializeFunction gives a strict function that sees only the global scope", async () => {
  const { fn } = await travel(() => {
    try {
      (Object.freeze([1]) as number[])[0] = 2;
      return "sloppy";
    } catch (error) {
      return (error as Error).name;
    }
  });
  assertEquals(fn(), "TypeError");
});

Deno.test("a deserialised function is serialised to the same bytes", async () => {
  const first = serializeFunction((x: number) => x * 2 /* twice */);
  const { fn } = await loadFunction(deserializeFunction(first), importer);
  assertEquals(serializeFunction(fn), first);
});

Deno.test("serializeFunction refuses free names, names them and shows both remedies", () => {
  const mean = 3, std = 2;
  const error = assertThrows(
    () => serializeFunction((x: number) => (x - mean) / std),
    LeatError,
  ) as LeatError;
  assertEquals(error.code, "failed_precondition");
  assertStringIncludes(error.message, "mean, std");
  assertStringIncludes(error.message, "{ captures: { mean, std } }");
  assertStringIncludes(error.message, 'udf(import.meta.resolve("./f.ts"), "name")');
  assertEquals(error.details, { freeNames: ["mean", "std"], placeBound: [] });
});

Deno.test("serializeFunction refuses this, import.meta and import()", () => {
  const sources = [
    function (this: unknown) {
      return this;
    },
    () => import.meta.url,
    (name: string) => import(name),
  ];
  for (const fn of sources) {
    assertEquals(codeOf(() => serializeFunction(fn as AnyFunction)), "failed_precondition");
  }
});

Deno.test("serializeFunction refuses native functions and non-functions", () => {
  assertEquals(codeOf(() => serializeFunction(Math.sqrt)), "invalid_argument");
  assertEquals(codeOf(() => serializeFunction(3 as unknown as AnyFunction)), "invalid_argument");
});

Deno.test("captures carry data, tensors, functions and references at any depth", async () => {
  const captures = {
    table: new Float32Array([1, 2]),
    weights: tensor([1, 2, 3]),
    big: 2n ** 60n,
    nothing: null,
    nested: { steps: [(x: number) => x + 1, udf(FIXTURE, "double"), 5] },
  };
  const wire = serializeFunction(
    (x: number, { nested, table }: {
      nested: { steps: [AnyFunction, AnyFunction, number] };
      table: Float32Array;
    }) => (nested.steps[0](nested.steps[1](x)) as number) + nested.steps[2] + table[1]!,
    captures,
  );
  assertStrictEquals(wire.captures?.values.weights, captures.weights);
  assertEquals(wire.captures?.values.nested, { steps: [null, null, 5] });
  const loaded = await loadFunction(deserializeFunction(wire), importer);
  assertEquals(loaded.fn(10, loaded.captures), 10 * 2 + 1 + 5 + 2);
  assert(loaded.captures?.weights instanceof Tensor);
  assertEquals(loaded.captures?.big, 2n ** 60n);
});

Deno.test("captures that cannot be serialised are refused, naming their path", () => {
  const outside = 1;
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const cases: [Captures, string, string][] = [
    [{ a: { b: [1, new Map()] } }, "captures.a.b[1] is Map", "invalid_argument"],
    [{ a: undefined }, "captures.a is undefined", "invalid_argument"],
    [{ a: Symbol("s") }, "captures.a is Symbol(s)", "invalid_argument"],
    [{ a: new Date(0) }, "captures.a is Date", "invalid_argument"],
    [JSON.parse('{ "a": { "__proto__": 1 } }'), "__proto__", "invalid_argument"],
    [cyclic, "nests deeper", "invalid_argument"],
    [{ a: { f: () => outside } }, "captures.a.f", "failed_precondition"],
  ];
  for (const [captures, message, code] of cases) {
    const error = assertThrows(() => serializeFunction(() => 1, captures), LeatError) as LeatError;
    assertStringIncludes(error.message, message);
    assertEquals(error.code, code);
  }
});

Deno.test("deserializeFunction refuses captures that nest deeper than serializeFunction writes", () => {
  const nested = (levels: number, value: unknown): unknown =>
    levels === 0 ? value : [nested(levels - 1, value)];
  const received = (values: unknown) => ({
    source: "() => 1",
    captures: { values, functions: [] },
  });
  const deepest = { a: nested(TREE_DEPTH_MAX - 1, (x: number) => x) };
  const wire = serializeFunction(() => 1, deepest);
  const { fn: copy, captures } = deserializeFunction(wire);
  assertEquals(serializeFunction(copy, captures), wire);
  const refuses = (wire: unknown) =>
    assertThrows(() => deserializeFunction(wire), LeatError, "TREE_DEPTH_MAX");
  refuses(received({ a: nested(TREE_DEPTH_MAX, 1) }));
  const fn = { source: "(x) => x" };
  const path = ["a", ...Array(TREE_DEPTH_MAX).fill(0)];
  const values = { a: nested(TREE_DEPTH_MAX, null) };
  refuses({ source: "() => 1", captures: { values, functions: [{ path, fn }] } });
});

Deno.test("udf names a function by module and export", async () => {
  assertEquals(serializeFunction(udf(FIXTURE, "double")), { module: FIXTURE, name: "double" });
  assertEquals((await travel(udf(FIXTURE, "double"))).fn(4), 8);
  assertEquals((await travel(udf(FIXTURE, "default"))).fn(4), 16);
});

Deno.test("udf is accepted in place of a function, and keeps a given signature", () => {
  const numbers = Dataset.range(3).map(udf(FIXTURE, "double")).filter(udf(FIXTURE, "double"));
  numbers.flatMap(udf(FIXTURE, "double"));
  const texts: Dataset<string> = Dataset.range(3).map(udf<(x: number) => string>(FIXTURE, "f"));
  assertEquals(texts.cardinality(), 3);
});

Deno.test("udf refuses modules that no other host could import", () => {
  for (const url of ["./f.ts", "f", "", "blob:null/1"]) {
    assertEquals(codeOf(() => udf(url, "f")), "invalid_argument", url);
  }
  assertEquals(codeOf(() => udf(FIXTURE, "")), "invalid_argument");
});

Deno.test("loadFunction says when the module, the export or the function is missing", async () => {
  const cases: [string, string, string, string][] = [
    [import.meta.resolve("./no_such_module.ts"), "f", "not_found", "no_such_module.ts"],
    [
      "data:text/javascript,throw new Error('not this module')",
      "f",
      "failed_precondition",
      "not this module",
    ],
    ["data:text/javascript,throw null", "f", "failed_precondition", "cannot be imported"],
    [
      "data:text/javascript,throw Object.defineProperty(Error(), 'message', { get() { throw 1 } })",
      "f",
      "failed_precondition",
      "cannot be imported",
    ],
    [
      "data:text/javascript,const p=Proxy.revocable({},{});p.revoke();throw p.proxy",
      "f",
      "failed_precondition",
      "cannot be imported",
    ],
    ["data:text/javascript,export const f = (", "f", "failed_precondition", "cannot be imported"],
    [FIXTURE, "triple", "not_found", "it exports ONE, default, double"],
    [FIXTURE, "toString", "not_found", "exports no"],
    ["data:text/javascript,0", "f", "not_found", 'exports no "f"; it exports nothing.'],
    [FIXTURE, "ONE", "invalid_argument", "is number, not a function"],
  ];
  for (const [module, name, code, message] of cases) {
    const error = await assertRejects(() => travel(udf(module, name)), LeatError) as LeatError;
    assertEquals(error.code, code);
    assertStringIncludes(error.message, message);
  }
});

Deno.test("loadFunction times out on a module that never finishes loading", async () => {
  const waiting = udf(FIXTURE, "double");
  const impatient: ModuleHost = {
    importModule: () => new Promise(() => {}),
    sleep: () => Promise.resolve(),
  };
  const error = await assertRejects(
    async () => await loadFunction({ fn: waiting }, impatient),
    LeatError,
  ) as LeatError;
  assertEquals(error.code, "deadline_exceeded");
  assertStringIncludes(error.message, '"await" at its top level');
});

Deno.test("loadFunction keeps the code of a host's refusal", async () => {
  const refusing: ModuleHost = {
    ...importer,
    importModule: () => Promise.reject(new LeatError("permission_denied", "not from there")),
  };
  const error = await assertRejects(
    async () => await loadFunction({ fn: udf(FIXTURE, "double") }, refusing),
    LeatError,
  ) as LeatError;
  assertEquals(error.code, "permission_denied");
  assertStringIncludes(error.message, FIXTURE);
});

Deno.test("serializeFunction shows how to rewrite a short function", () => {
  const mean = 3;
  const total = { count: 0 };
  let calls = 0;
  const cases: [AnyFunction, string, arity?: number][] = [
    [(x: number) => x - mean, "(x, { mean })=>x - mean, { captures: { mean } }"],
    [() => mean, "(_, { mean })=>mean, { captures: { mean } }"],
    [() => mean, "({ mean })=>mean", 0],
    [() => mean, "(_, _2, { mean })=>mean", 2],
    [(a: number) => a + mean, "(a, _2, { mean })=>a + mean", 2],
    [(a: number, b: number) => a + b + mean, "(a, b, { mean })=>a + b + mean", 2],
    [(a: number, { b }: { b: number }) => a + b + mean, "(a, { b }, { mean })=>a + b + mean", 2],
    [(a: number, { b }: { b: number }) => a + b + mean, "(a, { mean, b })=>a + b + mean"],
    [(a: number, extra: { b: number }) => a + extra.b + mean, "(…, { mean }) => …"],
    [(...all: number[]) => all[mean], "(…, { mean }) => …, { captures: { mean } }"],
    [(x: number) => calls += x + total.count, "assigns to calls would stay there"],
    [(x: number) => fetch(`${x}`), "uses fetch, which only functions of modules may name"],
  ];
  for (const [fn, expected, arity = 1] of cases) {
    const error = assertThrows(() => serializeFunction(fn, {}, arity), LeatError) as LeatError;
    assertStringIncludes(error.message, expected);
  }
  calls = 0;
});

Deno.test("loadFunction is synchronous, and returns the closure itself, if nothing has to be imported", () => {
  const fn = (x: number) => x;
  const captures = { a: 1 };
  const loaded = loadFunction({ fn, captures }, importer);
  assert(!(loaded instanceof Promise));
  assertStrictEquals(loaded.fn, fn);
  assertStrictEquals(loaded.captures, captures);
});

Deno.test("loadFunction walks received captures once", async () => {
  let walks = 0;
  const words = new Proxy({ a: 1 }, {
    ownKeys: (target) => (walks++, Reflect.ownKeys(target)),
  });
  const bound = deserializeFunction({
    source: "(x, { twice }) => twice(x)",
    captures: {
      values: { words, twice: null },
      functions: [{ path: ["twice"], fn: { module: FIXTURE, name: "double" } }],
    },
  });
  for (let i = 0; i < 3; i++) {
    const { fn, captures } = await loadFunction(bound, importer);
    assertEquals(fn(1, captures as never), 2);
  }
  assertEquals(walks, 1);
});

Deno.test("loadFunction loads what captures hold at the time", async () => {
  const captures: Record<string, unknown> = {};
  for (
    const [f, result] of [[(x: number) => x, 3], [udf(FIXTURE, "double"), 6], [
      udf(FIXTURE, "default"),
      9,
    ]]
  ) {
    captures.f = f;
    const loaded = await loadFunction({ fn: () => {}, captures }, importer);
    assertEquals((loaded.captures!.f as (x: number) => number)(3), result);
  }
});

interface TreeNode {
  readonly parent?: TreeNode;
  readonly children: TreeNode[];
  readonly count: number[];
  readonly score?: UserFunction<(x: number) => number>;
}

Deno.test("loadFunction loads a function at each place that has it, and keeps cycles and other data", async () => {
  const count = [0];
  const root: TreeNode = { children: [], count, score: udf(FIXTURE, "double") };
  const leaf: TreeNode = { parent: root, children: [], count };
  root.children.push(leaf);
  const fn = () => {};
  const { captures } = await loadFunction({ fn, captures: { root, leaf, list: [leaf] } }, importer);
  const loaded = captures as unknown as { root: TreeNode; leaf: TreeNode; list: TreeNode[] };
  assertStrictEquals(loaded.leaf.parent, loaded.root);
  assertStrictEquals(loaded.root.children[0], loaded.leaf);
  assertStrictEquals(loaded.list[0], loaded.leaf);
  assertEquals((loaded.leaf.parent!.score as (x: number) => number)(3), 6);
  assertStrictEquals(loaded.leaf.count, count);
  assert(typeof root.score !== "function" && leaf.parent === root, "the own ones are unchanged");
});

Deno.test("deserializeFunction analyses received source before evaluating it", () => {
  const stolen = "__leat_test_stolen";
  const wires: unknown[] = [
    null,
    "() => 1",
    {},
    { source: 1 },
    { module: "./relative.ts", name: "f" },
    { source: `(globalThis.${stolen} = 1, () => 1)` },
    { source: `() => 1) + (globalThis.${stolen} = 1` },
    { source: "() => Deno.exit()" },
    { source: "() => 1", captures: [] },
    {
      source: "() => 1",
      captures: { values: {}, functions: [{ path: ["a"], fn: { source: "() => 1" } }] },
    },
    {
      source: "() => 1",
      captures: {
        values: { a: 1 },
        functions: [{ path: ["constructor"], fn: { source: "() => 1" } }],
      },
    },
  ];
  for (const wire of wires) {
    assertThrows(() => deserializeFunction(wire), LeatError);
  }
  assertEquals(stolen in globalThis, false);
});

Deno.test("ambientNamesOf examines captured functions too, but not modules or native code", () => {
  const fn = (x: number) => x + Date.now();
  const captures = {
    jitter: () => Math.random(),
    deeper: [{ stamp: () => performance.now() }],
    other: udf(FIXTURE, "double"),
    native: Math.abs,
  };
  assertEquals(ambientNamesOf({ fn, captures }), ["Date", "Math.random", "performance"]);
  assertEquals(ambientNamesOf({ fn: udf(FIXTURE, "double") }), []);
  assertEquals(ambientNamesOf({ fn: fn.bind(null) }), []);
});

Deno.test("loadFunction tells no secret of the URL of a module, also not of an error of the loader", async () => {
  const plain = "https://USER:PASSWORD@host/f.ts?sig=SECRET#FRAGMENT";
  const misspelt = "https:USER:PASSWORD@host/f.ts?sig=a SECRET";
  for (
    const [module, message] of [
      [plain, `Module not found "${plain}"`],
      [plain, `Bad token at ${plain}:1:2`],
      [misspelt, `Invalid URL: ${misspelt}`],
    ] as const
  ) {
    const host: ModuleHost = {
      ...importer,
      importModule: () => Promise.reject(new Error(message)),
    };
    const error = await assertRejects(
      async () => await loadFunction({ fn: udf(module, "f") }, host),
      LeatError,
    ) as LeatError;
    const told = `${error} ${error.stack} ${error.cause} ${JSON.stringify(error.details)}`;
    assertEquals(told.match(/USER|PASSWORD|SECRET|FRAGMENT/g), null, told);
    assertStringIncludes(
      error.message,
      module === plain ? "https://host/f.ts?…" : "https:host/f.ts?…",
    );
  }
  const error = assertThrows(() => udf(plain, ""), LeatError);
  assertEquals(error.message.match(/USER|PASSWORD|SECRET|FRAGMENT/g), null, error.message);
});
