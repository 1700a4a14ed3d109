/** Follows the links of all pages: each leads to a file of the project, and its fragment to a heading. */
import { assert, assertEquals } from "../assert.ts";

const ROOT = new URL("../../", import.meta.url);
const SKIPPED = new Set([".git", ".cache", "node_modules", "api", "coverage"]);

async function pagesBelow(folder: URL): Promise<URL[]> {
  const pages: URL[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory && !SKIPPED.has(name)) {
      pages.push(...await pagesBelow(new URL(`${name}/`, folder)));
    } else if (name.endsWith(".md")) pages.push(new URL(name, folder));
  }
  return pages;
}

/** A page without its code, in which brackets are no links and `#` is no heading. */
function prose(page: string): string {
  return page.replaceAll(/^```[^]*?^```$/gm, "");
}

/** The fragments that lead to headings, as GitHub writes them. */
function fragmentsOf(page: string): Set<string> {
  const headings = prose(page).matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, heading]) =>
      heading!.toLowerCase().replaceAll(/\]\([^)]*\)/g, "").replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-")
    ),
  );
}

Deno.test("every link of a page leads to a file of the project, and its fragment to a heading", async () => {
  const broken: string[] = [];
  let followed = 0;
  for (const page of await pagesBelow(ROOT)) {
    const text = prose(await Deno.readTextFile(page)).replaceAll(/`[^`\n]*`/g, "code");
    for (const [, link] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link!)) continue;
      followed++;
      const target = new URL(link!, page);
      const fragment = decodeURIComponent(target.hash.slice(1));
      target.hash = "";
      const found = await Deno.stat(target).catch(() => undefined);
      const isThere = found !== undefined &&
        (fragment === "" || !target.pathname.endsWith(".md") ||
          fragmentsOf(await Deno.readTextFile(target)).has(fragment));
      if (!isThere) broken.push(`${page.href.slice(ROOT.href.length)}: ${link}`);
    }
  }
  assert(followed > 500, `${followed} links`);
  assertEquals(broken, []);
});
