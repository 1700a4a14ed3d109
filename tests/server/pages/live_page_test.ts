/** The live page's own script, on a parsed document, with the state of a running dispatcher. */

import { parseHTML } from "linkedom";
import { statusText } from "../../../cli/cluster/status_text.ts";
import { Dataset, type DispatcherDescription, serveDispatcher, serveWorker } from "../../../mod.ts";
import { PAGE_COLUMNS } from "../../../server/pages/columns.ts";
import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import { until } from "../../lib/until.ts";

const SCRIPT = "../../../server/pages/live_page.js";
const QUIET = { logLevel: "off" } as const;

/** What this test uses of a document; its types come with the library of browsers. */
interface PageDocument {
  querySelector(name: string): { readonly textContent: string };
  querySelectorAll(name: string): Iterable<{ readonly textContent: string }>;
  getSelection: () => { readonly isCollapsed: boolean };
}

async function openPage(url: string): Promise<{ document: PageDocument; script: string }> {
  const html = await (await fetch(url)).text();
  const { document } = parseHTML(html) as unknown as { readonly document: PageDocument };
  return { document, script: document.querySelector("script").textContent };
}

Deno.test("the live page says that a paused dispatcher does not answer", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  const { document, script } = await openPage(dispatcher.page);
  const limit = new AbortController();
  const limitsMs: number[] = [];
  const signals = {
    timeout(ms: number) {
      limitsMs.push(ms);
      return limit.signal;
    },
  };
  const answers = (_path: string, { signal }: { readonly signal: AbortSignal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const polled = Promise.withResolvers<void>();
  new Function("document", "location", "fetch", "setTimeout", "AbortSignal", script)(
    ...[document, { search: "" }, answers, polled.resolve, signals],
  );
  limit.abort(new DOMException("signal timed out", "TimeoutError"));
  await polled.promise;
  assertEquals(limitsMs, [15_000]);
  const { textContent } = document.querySelector("#status");
  assertEquals(textContent, "The dispatcher does not answer (signal timed out)");
});

Deno.test("the live page asks with the token of its address, also with a plus sign", async () => {
  const script = await Deno.readTextFile(new URL(import.meta.resolve(SCRIPT)));
  let asked: unknown;
  const fetchPage = (_path: string, { headers }: RequestInit) => {
    asked = headers;
    return new Promise(() => {});
  };
  const location = { search: "?token=a+b%26c" };
  new Function("document", "location", "fetch", script)({}, location, fetchPage);
  assertEquals(asked, { authorization: "Bearer a+b&c" });
});

Deno.test("the live page and status show each figure that the table of metrics gives a column", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  await using _worker = await serveWorker({ ...QUIET, dispatcher: dispatcher.address });
  await using iterator = Dataset.range(10).repeat()
    .distribute({ service: dispatcher.address, jobName: "job", sharing: { trainerId: "t" } })
    .iterator();
  const { document, script } = await openPage(dispatcher.page);
  const timers: (() => void)[] = [];
  // The page runs in a browser: these are the parts of one that the parser lacks.
  document.getSelection = () => ({ isCollapsed: true });
  let fetched: DispatcherDescription | undefined;
  /** What the page shows. */
  let state: DispatcherDescription | undefined;
  const fetchPage = async (path: string) => {
    const text = await (await fetch(new URL(path, dispatcher.page))).text();
    fetched = JSON.parse(text);
    return new Response(text);
  };
  const location = { search: "" };
  new Function("document", "location", "fetch", "setTimeout", script)(
    document,
    location,
    fetchPage,
    // The page sets its timer as soon as it has shown what it fetched.
    (again: () => void) => {
      state = fetched;
      timers.push(again);
    },
  );
  const cells = (tag: string) => [...document.querySelectorAll(tag)].map((at) => at.textContent);
  await until(async () => {
    await iterator.next();
    const [job] = state?.jobs ?? [];
    const { readers = [], tasks = [] } = job?.iterations[0] ?? {};
    const isComplete = readers[0]?.figures != null &&
      (tasks[0]?.figures?.sharing?.served ?? 0) > 0 &&
      state!.workers[0]!.figures !== null && cells("th").includes("sharing window at");
    // Only now, so that no request is open once all is there.
    if (!isComplete) timers.pop()?.();
    return isComplete;
  });
  const headings = Object.values(PAGE_COLUMNS).flat().map(({ heading }) => heading);
  assert(headings.length > 15, `${headings}`);
  assertEquals(headings.filter((heading) => !cells("th").includes(heading)), []);
  const { hitRate, trainers } = state!.jobs[0]!.iterations[0]!.tasks[0]!.figures!.sharing!;
  assert(hitRate !== null && trainers === 1);
  assert(cells("td").includes(`${Math.round(100 * hitRate)}\u00a0%`), `${cells("td")}`);
  const status = statusText(state!);
  // Narrow headings wrap.
  for (const word of headings.flatMap((heading) => heading.split(" "))) {
    assertStringIncludes(status, word);
  }
});
