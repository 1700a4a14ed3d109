/** Tests of the project's lint rules: each fires on a planted violation, and only there. */

import { fileURLToPath } from "node:url";
import { assertEquals, assertStringIncludes } from "../assert.ts";
import layers from "../../tools/lint_layers.ts";

const DOC = "/** What this file is for. */\n";

/** The rules that fire on a file of the tree, in order. */
function fired(path: string, source: string): string[] {
  return lint(path, source).map((found) => found.id.replace("layers/", ""));
}

function lint(path: string, source: string): Deno.lint.Diagnostic[] {
  const file = fileURLToPath(new URL(`../../${path}`, import.meta.url));
  return Deno.lint.runPlugin(layers, file, source);
}

const VIOLATIONS: [rule: string, path: string, source: string][] = [
  ["arrow", "core/a.ts", `import "../data/node.ts";`],
  ["arrow", "data/a.ts", `import type { Actor } from "../actors/runtime/actor.ts";`],
  ["arrow", "data/b/a.ts", `export * from "../../transport/codec.ts";`],
  ["arrow", "data/a.ts", `export { x } from "../platform/deno_host.ts";`],
  ["arrow", "transport/a.ts", `import "../data/node.ts";`],
  ["arrow", "transport/a.ts", `import "../actors/worker/worker.ts";`],
  ["arrow", "actors/runtime/a.ts", `import "../../transport/codec.ts";`],
  ["arrow", "actors/worker/a.ts", `import "../../platform/mod.ts";`],
  ["arrow", "actors/worker/a.ts", `import "../dispatcher/state.ts";`],
  ["arrow", "actors/client/a.ts", `await import("../../sim/world.ts");`],
  ["arrow", "platform/a.ts", `new Worker(new URL("../sim/a.ts", import.meta.url));`],
  ["arrow", "server/a.ts", `import.meta.resolve("../examples/a.ts");`],
  ["arrow", "platform/a.ts", `import "../server/worker_server.ts";`],
  ["arrow", "mod.ts", `export * from "./sim/world.ts";`],
  ["arrow", "sim/a.ts", `import "../tests/assert.ts";`],
  ["arrow", "sim/a.ts", `import "../cli/simulate.ts";`],
  ["arrow", "cli/lib/a.ts", `import "../simulate.ts";`],
  ["arrow", "sim/checkers/a.ts", `import "../world.ts";`],
  ["arrow", "platform/a.ts", `import "../sim/world.ts";`],
  ["arrow", "bench/bare/a.ts", `import "../../core/tensor.ts";`],
  ["package", "mod.ts", `import "jsr:@std/path@1";`],
  ["package", "core/a.ts", `import "@std/assert";`],
  ["package", "tests/a_test.ts", `import { assert } from "@std/assert";`],
  ["package", "tests/a_test.ts", `import { ok } from "node:assert";`],
  ["package", "actors/dispatcher/jobs/join_iteration.ts", `import * as v from "valibot";`],
  ["package", "data/a.ts", `import { Packr } from "msgpackr";`],
  ["package", "transport/link.ts", `import { Packr } from "npm:msgpackr@1/pack";`],
  ["package", "actors/runtime/a.ts", `import { wrap } from "comlink";`],
  ["package", "data/a.ts", `import "@tensorflow/tfjs-core";`],
  ["package", "data/a.ts", `import "node:timers/promises";`],
  ["package", "actors/worker/a.ts", `import "node:fs";`],
  ["package", "actors/worker/a.ts", `import "node:child_process";`],
  ["package", "data/a.ts", `import "node:crypto";`],
  ["package", "data/a.ts", `import "node:http";`],
  ["package", "data/a.ts", `import "node:net";`],
  ["package", "data/a.ts", `import "node:os";`],
  ["package", "data/a.ts", `import "node:tls";`],
  ["package", "offload/a.ts", `await import("node:worker_threads");`],
  ["ambient", "data/a.ts", `export const now = () => Date.now();`],
  ["ambient", "data/a.ts", `export const now = () => Date["now"]();`],
  ["ambient", "core/a.ts", `export const now = new Date();`],
  ["ambient", "core/a.ts", `export const now = Date();`],
  ["ambient", "actors/cache/a.ts", `export const now = performance.now();`],
  ["ambient", "transport/a.ts", `setTimeout(() => {}, 1);`],
  ["ambient", "transport/a.ts", `globalThis.setTimeout(() => {}, 1);`],
  ["ambient", "transport/a.ts", `export const wait = { setTimeout };`],
  ["ambient", "transport/a.ts", `export const wait = setInterval as unknown;`],
  ["ambient", "mod.ts", `console.log(1);`],
  ["ambient", "data/a.ts", `export const { random } = Math;`],
  ["ambient", "data/a.ts", `export const drawn = [1].map(Math.random);`],
  ["ambient", "data/a.ts", `export const id = crypto.randomUUID();`],
  ["ambient", "actors/worker/a.ts", `Deno.readTextFileSync("/etc/hosts");`],
  ["ambient", "data/a.ts", `new Deno.Command("ls").spawn();`],
  ["ambient", "data/a.ts", `await Deno.connect({ hostname: "a", port: 1 });`],
  ["ambient", "data/a.ts", `export const { env } = Deno;`],
  ["ambient", "data/a.ts", `globalThis.process.env.A;`],
  ["ambient", "actors/client/a.ts", `new WebSocket("ws://a");`],
  ["ambient", "offload/a.ts", `new Worker("a.ts");`],
  ["unfinished", "examples/a.ts", `// TODO: more`],
  ["unfinished", "core/a.ts", `/* FIXME */ export {};`],
  ["file-name", "core/camelCase.ts", ""],
  ["file-name", "core/kebab-case.ts", ""],
];

for (const [rule, path, source] of VIOLATIONS) {
  Deno.test(`${rule} refuses in ${path}: ${source || path}`, () => {
    assertEquals(fired(path, DOC + source), [rule]);
  });
}

Deno.test("module-doc refuses a file that does not begin with a documentation comment", () => {
  assertEquals(fired("core/a.ts", "export {};"), ["module-doc"]);
  assertEquals(fired("core/a.ts", "// what\nexport {};"), ["module-doc"]);
  assertEquals(fired("core/a.ts", "export {};\n" + DOC), ["module-doc"]);
  assertEquals(fired("tools/a.ts", "#!/usr/bin/env deno\n" + DOC), []);
});

const ALLOWED: [path: string, source: string][] = [
  ["data/a.ts", `import "../core/tensor.ts"; import "./node.ts"; import "acorn";`],
  ["transport/a.ts", `import "../actors/runtime/actor.ts"; import "../core/error.ts";`],
  ["transport/codec.ts", `import { Packr } from "msgpackr/pack";`],
  ["transport/edge.ts", `import { wrap } from "comlink";`],
  ["actors/worker/a.ts", `import "../dispatcher/protocol.ts"; import "../../data/node.ts";`],
  ["platform/a.ts", `import "../actors/worker/worker.ts"; setTimeout(() => Date.now(), 1);`],
  ["sim/a.ts", `import "../platform/a.ts"; Math.random();`],
  ["cli/a.ts", `import "../sim/checkers/a.ts"; import "../sim/a.ts"; import "../mod.ts";`],
  ["mod.ts", `export * from "./data/dataset.ts"; export * from "./platform/a.ts";`],
  ["tests/data/a_test.ts", `import "../../sim/a.ts"; import "../assert.ts"; import "msgpackr";`],
  ["tests/assert.ts", `import "node:assert";`],
  ["bench/bare/a.ts", `import "./window.ts"; import "comlink"; performance.now();`],
  ["data/a.ts", `export const at = (ms: number) => new Date(ms); Math.floor(1); Date.UTC(1, 1);`],
  ["data/a.ts", `export const f = (setTimeout: () => void) => setTimeout();`],
  ["data/a.ts", `export const f = ({ console }: { console: number }) => console;`],
  ["data/a.ts", `export class A { setTimeout() {} b = { console: 1 }; c = this.b.console; }`],
  ["data/a.ts", `export type T = typeof performance; export interface I { console: Date }`],
  ["transport/a.ts", `Deno.listen({ port: 1 }); new Worker("a.ts"); import "node:tls";`],
  ["core/builtins.ts", `globalThis.process.getBuiltinModule("node:zlib");`],
  ["data/a.ts", `import "node:zlib"; export const isOf = (addr: Deno.Addr) => addr;`],
  ["actors/worker/a.ts", `class Worker {} new Worker();`],
  ["core/a.ts", `// a dotted list of todos`],
];

for (const [path, source] of ALLOWED) {
  Deno.test(`the rules allow in ${path}: ${source}`, () => {
    assertEquals(fired(path, DOC + source), []);
  });
}

Deno.test("a lint error says what is wrong and what to do", () => {
  const [found] = lint("transport/a.ts", DOC + `import "../data/node.ts";`);
  assertStringIncludes(found?.message ?? "", "transport must not import data/node.ts");
  assertStringIncludes(found?.hint ?? "", "transport may import actors/runtime, core");
});

Deno.test("the rules ignore files outside of the tree", () => {
  const found = Deno.lint.runPlugin(layers, "/elsewhere/core/a.ts", DOC + "Date.now();");
  assertEquals(found, []);
});
