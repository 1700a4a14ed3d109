/** Modules of user functions in the form in which a confined process loads them. */
import { sourceOf } from "../../../platform/sandbox/modules/module_source.ts";
import { assertEquals } from "../../assert.ts";

async function exportsOf(
  url: string,
  text: string,
  mediaType?: string,
): Promise<Record<string, unknown>> {
  const { source } = sourceOf(url, undefined, text, mediaType);
  return await import(`data:text/javascript,${encodeURIComponent(source)}`);
}

Deno.test("sourceOf accepts a program that begins with a hashbang", async () => {
  for (const name of ["main.js", "main.ts"]) {
    const type = name === "main.ts" ? ": number" : "";
    const text = `#!/usr/bin/env -S deno run\nexport const one${type} = 1;\n`;
    assertEquals((await exportsOf(`file:///${name}`, text))["one"], 1);
  }
});

Deno.test("sourceOf strips types if the media type, or else the name, means TypeScript, and only then", async () => {
  // Two comparisons in JavaScript, a call with type arguments in TypeScript.
  const text = "const [a, b, c] = [1, 2, (x) => x], g = (...all) => all.length, x = 5;\n" +
    "export const count = g(a<b,c>(x));";
  const cases: [url: string, mediaType: string | undefined, count: number][] = [
    ["file:///srv/module", undefined, 2],
    ["file:///srv/module.ts", undefined, 1],
    ["https://h.example/module", "", 2],
    ["https://h.example/module@1.2", "text/plain", 2],
    ["https://h.example/module", "application/javascript", 2],
    ["https://h.example/module.ts", "text/javascript", 2],
    ["https://h.example/module.mts", "application/octet-stream", 1],
    ["https://h.example/module.ts", "video/mp2t", 1],
    ["https://h.example/module", "application/typescript", 1],
  ];
  for (const [url, mediaType, count] of cases) {
    // With `a` as a function, the remaining parentheses are a valid call.
    const callable = count === 1 ? text.replace("[1, 2,", "[(x) => x, 2,") : text;
    assertEquals(
      (await exportsOf(url, callable, mediaType))["count"],
      count,
      `${url} ${mediaType}`,
    );
  }
});
