/** `analyzeFunction`: a table of snippets for free names, and smaller ones for the rest. */

import { assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import {
  analyzeFunction,
  excerptOf,
  FUNCTION_SOURCE_LENGTH_MAX,
} from "../../../data/udf/free_names.ts";

/** Source, then its free names. */
const SNIPPETS: readonly (readonly [source: string, ...freeNames: string[]])[] = [
  ["(x) => x"],
  ["x => x"],
  ["() => 1"],
  ["() => y", "y"],
  ["(x) => x - mean", "mean"],
  ["(x, { mean }) => x - mean"],
  ["async (x) => await load(x)", "load"],
  ["async x => x"],
  ["function (x) { return x }"],
  ["function f(n) { return n < 2 ? 1 : n * f(n - 1) }"],
  ["(n) => n < 2 ? 1 : n * fact(n - 1)", "fact"],
  ["function* (x) { yield x; yield y }", "y"],
  ["async function* g() { for await (const x of source) yield x }", "source"],
  ["method(x) { return x + z }", "z"],
  ["async method(x) { return x }"],
  ["*gen(x) { yield* inner(x) }", "inner"],
  ["async *gen(x) { yield x }"],
  ["get value() { return hidden }", "hidden"],
  ["set value(v) { store = v }", "store"],
  ["#secret(x) { return x }"],
  ["[Symbol.iterator]() { return it }", "it"],
  ["'quoted name'(x) { return x }"],
  ["get(x) { return x }"],
  ["async(x) { return x }"],
  ["({ a, b: { c }, ...rest }) => [a, c, rest]"],
  ["({ a, b: { c } }) => b", "b"],
  ["([first, , [third], ...others]) => [first, third, others]"],
  ["(x = fallback) => x", "fallback"],
  ["(x, y = x) => y"],
  ["(x = y) => { var y = 1; return x }", "y"],
  ["({ a = b, [key]: c }) => a + c", "b", "key"],
  ["(x) => { const y = x; { const z = y; return z } }"],
  ["(x) => { { const z = x } return z }", "z"],
  ["(x) => { { var z = x } return z }"],
  ["(x) => { { let z = 1 } { return z } }", "z"],
  ["(x) => { return h(x); function h(v) { return v } }"],
  ["(x) => { if (x) { function h() {} } return 1 }"],
  ["(x) => { for (let i = 0; i < x; i++) { } return i }", "i"],
  ["(x) => { for (var i = 0; i < x; i++) { } return i }"],
  ["(x) => { for (const k in x) log(k) }", "log"],
  ["(x) => { for (const [k, v] of Object.entries(x)) total += k + v }", "total"],
  ["(x) => { outer: for (;;) { for (;;) { continue outer } } }"],
  ["(x) => { outer: while (x) break outer; return outer }", "outer"],
  ["(x) => { try { x() } catch (error) { return error } }"],
  ["(x) => { try { x() } catch { return error } }", "error"],
  ["(x) => { try { x() } catch ({ message, cause = none }) { return message + cause } }", "none"],
  ["(x) => { class P { v = x; get w() { return this.v } static make() { return new P() } } return P.make() }"],
  ["(x) => { class P extends Base { } return new P(x) }", "Base"],
  ["(x) => class extends Array { #n = x; has(o) { return #n in o } }"],
  ["(x) => class { static { register(this) } }", "register"],
  ["(x) => class { [name]() {} }", "name"],
  ["(x) => ({ x, y })", "y"],
  ["(x) => ({ y: x, z() { return this.y } })"],
  ["(x) => ({ [k]: x })", "k"],
  ["(x) => x.mean + x?.std + x['a'] + x[b]", "b"],
  ["(x) => `${x} of ${total}`", "total"],
  ["(x) => tag`a${x}`", "tag"],
  ["(x) => x.replace(/y/g, z)", "z"],
  ["(x) => typeof missing", "missing"],
  ["(x) => { counter++ }", "counter"],
  ["(x) => { [a, b.c] = x }", "a", "b"],
  ["(x) => { ({ a, d: e } = x) }", "a", "e"],
  ["function () { return arguments.length }"],
  ["() => arguments.length", "arguments"],
  ["() => function () { return arguments }"],
  ["(x) => x.map((y) => y.map((z) => x + y + z + w))", "w"],
  ["(x) => { switch (x) { case 1: { let q = 1 } default: return q } }", "q"],
  ["(x) => { switch (x) { case 1: let q = 1; default: return q } }"],
  ["(x) => b + a + b", "b", "a"],
  ["(x) => eval('x')", "eval"],
  ["(x) => fetch(x)", "fetch"],
  ["(x) => Deno.readFileSync(x)", "Deno"],
  ["(x) => process.env[x]", "process"],
  ["(x) => setInterval(() => {}, x)", "setInterval"],
  ["(x) => new Promise((resolve) => clearTimeout(setTimeout(resolve, x)))"],
  ["(x) => require('fs')", "require"],
  ["(x) => new TextDecoder().decode(Uint8Array.from(x, Number))"],
  ["(x) => [Math.max(x), JSON.stringify(x), BigInt(x), Promise.resolve(x), undefined, NaN, Infinity]"],
  ["(x) => globalThis.anything"],
  ["(x) => { using file = open(x); return file }", "open"],
  ["(x) => x // a comment at the end"],
  ["/* before */ (x) => x"],
  ["(x) => { var undefined_ = void 0; return undefined_ ?? other }", "other"],
  ["(Math) => Math.floor(Date)"],
  // Output of compilers.
  ["(x) => __awaiter(this_, void 0, void 0, function* () { yield x })", "__awaiter", "this_"],
  ["(x) => _class_private_field_get(x, _n)", "_class_private_field_get", "_n"],
  ["(x) => { var f = __name((y) => y, 'f'); return f(x) }", "__name"],
  ["(x) => { var _a; return (_a = x.y) !== null && _a !== void 0 ? _a : z }", "z"],
  ["static async *#rows({ a = b } = {}) { yield a }", "b"],
  ["async ({ a: { b = c } = d }, [e = b]) => e", "c", "d"],
  ["(x) => { let f = function g() { return g }; return f ?? g }", "g"],
  ["(x) => { class A { [k] = v; static #p = A; m() { return A } } return new A() }", "k", "v"],
  ["(x) => { a: { b: for (;;) break a } }"],
  ["(x) => { if (x) { var y = 1 } return y }"],
  ["(x) => { const { [`k${x}`]: v = w } = x; return v }", "w"],
  ["(x) => new Function('return y')()"],
];

Deno.test("analyzeFunction finds the free names of each kind of function and scope", () => {
  for (const [source, ...freeNames] of SNIPPETS) {
    const analysis = analyzeFunction(source);
    assertEquals(analysis.freeNames, freeNames, source);
    assertEquals(analysis.placeBound, [], source);
  }
});

Deno.test("analyzeFunction reads what toString gives for methods, getters and statics", () => {
  class Sample {
    static double(x: number) {
      return x * 2;
    }
    async *["computed" + 1](x: number) {
      yield await x;
    }
    get seven() {
      return 7;
    }
  }
  const getter = Object.getOwnPropertyDescriptor(Sample.prototype, "seven")!.get!;
  const computed = (Sample.prototype as unknown as Record<string, () => unknown>)["computed1"]!;
  assertEquals(
    analyzeFunction(Sample.double.toString()).source.replace(/\s+/g, " "),
    "function (x) { return x * 2; }",
  );
  assertStringIncludes(analyzeFunction(computed.toString()).source, "async function* (x)");
  assertStringIncludes(analyzeFunction(getter.toString()).source, "function ()");
});

Deno.test("analyzeFunction keeps the source of a function expression as it is", () => {
  const source = "async  ( x )=>x+ 1 // why";
  assertEquals(analyzeFunction(source).source, source);
});

Deno.test("analyzeFunction names what binds a function to its module or class", () => {
  const cases: [string, string[]][] = [
    ["() => this.x", ["this"]],
    ["function () { return this }", ["this"]],
    ["(x) => () => this", ["this"]],
    ["method() { return this.n }", ["this"]],
    ["() => { class A { [this.k] = 1 } }", ["this"]],
    ["function () { return function () { return this } }", []],
    ["() => ({ m() { return this + super.toString() } })", []],
    ["() => class { x = this.y; static { this.z = 1 } }", []],
    ["() => class extends Array { constructor() { super(1) } }", []],
    ["() => import.meta.url", ["import.meta"]],
    ["() => function () { return import.meta }", ["import.meta"]],
    ["(x) => import(x)", ["import()"]],
    ["function () { return new.target }", ["new.target"]],
    ["() => function () { return new.target }", []],
    ["async (x) => { await import('npm:x'); return this }", ["import()", "this"]],
  ];
  for (const [source, expected] of cases) {
    assertEquals(analyzeFunction(source).placeBound, expected, source);
  }
});

Deno.test("analyzeFunction refuses functions that cannot be serialised, with the reason", () => {
  class Base {
    get() {
      return 1;
    }
  }
  class Derived extends Base {
    override get() {
      return super.get();
    }
  }
  const refused: [unknown, string][] = [
    [Math.abs, "native or bound"],
    [((x: number) => x).bind(undefined), "native or bound"],
    [Base, "class"],
    [Derived.prototype.get, "super"],
    ["1 + 1", "not one function"],
    ["(x) => x, (y) => y", "not one function"],
    ["(x) => x); steal(", "not one function"],
    ["a() {} b() {}", "does not parse"],
    ["x = (y) => y", "not one function"],
    ["", "does not parse"],
    ["(x) => { with (x) return y }", "does not parse"],
  ];
  for (const [fn, reason] of refused) {
    const error = assertThrows(() => analyzeFunction(String(fn)), LeatError);
    assertEquals((error as LeatError).code, "invalid_argument", String(fn));
    assertStringIncludes((error as LeatError).message, reason);
  }
});

Deno.test("analyzeFunction refuses a source beyond its limit before parsing it", () => {
  const source = `() => "${"x".repeat(FUNCTION_SOURCE_LENGTH_MAX)}"`;
  const error = assertThrows(() => analyzeFunction(source), LeatError) as LeatError;
  assertStringIncludes(error.message, String(FUNCTION_SOURCE_LENGTH_MAX));
});

Deno.test("analyzeFunction refuses an expression too deep to be walked, whether it parses or not", () => {
  // The parser reads members in a loop, and sums recursively.
  for (const deep of [".a".repeat(100_000), "+x".repeat(100_000)]) {
    const error = assertThrows(() => analyzeFunction(`(x) => x${deep}`), LeatError) as LeatError;
    assertEquals(error.code, "invalid_argument");
  }
});

Deno.test("analyzeFunction lists uses of the clock and of ambient random numbers", () => {
  const cases: [string, string[]][] = [
    ["(x, { random }) => random.next()", []],
    ["(x) => Math.floor(x) + Math.PI", []],
    ["(x) => Math.random()", ["Math.random"]],
    ["(x) => (Math)?.random()", ["Math.random"]],
    ["(x) => Math['random']()", ["Math (other than as `Math.name`)"]],
    ["(x) => { const { random } = Math }", ["Math (other than as `Math.name`)"]],
    ["(x) => ({ Math })", ["Math (other than as `Math.name`)"]],
    ["(x) => x[Math]", ["Math (other than as `Math.name`)"]],
    ["(x) => Date.now() + new Date().getTime()", ["Date"]],
    ["(x) => globalThis.Math.random()", ["globalThis"]],
    ["(x) => performance.now() + crypto.randomUUID()", ["performance", "crypto"]],
    ["(Math, Date) => Math.random() + Date.now()", []],
    ["(x) => { const later = () => Math.random(); return later }", ["Math.random"]],
  ];
  for (const [source, expected] of cases) {
    assertEquals(analyzeFunction(source).ambientNames, expected, source);
  }
});

Deno.test("analyzeFunction names assigned variables", () => {
  const cases: [string, string[]][] = [
    ["(x) => { count++; total += x; seen = true }", ["count", "total", "seen"]],
    ["(x) => { [a, b.c] = x }", ["a"]],
    ["(x) => { let a; a = x; return b }", []],
    ["(x) => { for (k in x); }", ["k"]],
  ];
  for (const [source, expected] of cases) {
    assertEquals(analyzeFunction(source).assignedNames, expected, source);
  }
});

Deno.test("excerptOf gives one short line", () => {
  assertEquals(excerptOf("(x) =>\n\t x"), "(x) => x");
  assertEquals(excerptOf(`(x) => ${"y".repeat(200)}`).length, 81);
});
