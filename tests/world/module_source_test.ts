/**
 * What the modules of user functions become before a confined thread loads them.
 *
 * @module
 */
import { sourceOf } from "../../world/sandbox/module_source.ts";
import { assertEquals } from "../assert.ts";

async function exportsOf(url: string, text: string): Promise<Record<string, unknown>> {
  const { source } = sourceOf(url, undefined, text);
  return await import(`data:text/javascript,${encodeURIComponent(source)}`);
}

Deno.test("sourceOf gives a module of a program that begins with a hashbang", async () => {
  for (const name of ["main.js", "main.ts"]) {
    const type = name === "main.ts" ? ": number" : "";
    const text = `#!/usr/bin/env -S deno run\nexport const one${type} = 1;\n`;
    assertEquals((await exportsOf(`file:///${name}`, text))["one"], 1);
  }
});
