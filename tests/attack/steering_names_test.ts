/**
 * Names that workers and clients choose. No name must steer the terminal of who looks at a
 * dispatcher, begin a line of its own there, or be markup of its page.
 */
import { parseHTML } from "linkedom";
import { statusLine } from "../../cli/cluster/status.ts";
import { statusText } from "../../cli/cluster/status_text.ts";
import { Dataset, type DispatcherDescription, serveDispatcher, serveWorker } from "../../mod.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { until } from "../lib/until.ts";

const QUIET = { logLevel: "off" } as const;
/**
 * Escape sequences of 7 and 8 bits, a bell, a line, a separator, marks that turn text around, and what
 * takes no place.
 */
const UNSAFE_CHARACTERS =
  "a\x1b[2J\x9b2J\x07\r\nleat_jobs 7\x7f\u2028\u202e\u061c\u200e\u200f\u200b\ufeff\xadb";
/** A worker's name has none of the control characters. */
const WORKER_NAME = UNSAFE_CHARACTERS.replaceAll(/\p{Cc}/gu, "");
const MARKUP = `<img src=x onerror="document.title='owned'"></script><script>alert(1)</script>`;
// deno-lint-ignore no-control-regex -- these characters are searched for
const RAW = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/u;

function assertPlain(text: string, what: string): void {
  assert(!RAW.test(text), `${what}: ${JSON.stringify(RAW.exec(text)?.[0])}`);
}

Deno.test("no name of a worker or a job steers the terminal of who asks for metrics, state or status", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  const service = dispatcher.address;
  await using _worker = await serveWorker({
    ...QUIET,
    dispatcher: service,
    name: WORKER_NAME,
  });
  const job = { service, jobName: `job ${UNSAFE_CHARACTERS}`, processingMode: "DYNAMIC" } as const;
  await using iterator = Dataset.range(1_000_000).distribute(job).iterator();
  await iterator.next();
  const at = (path: string) => fetch(new URL(path, dispatcher.page)).then((found) => found.text());
  await until(async () => (await at("metrics")).includes('leat_worker_up{worker="'), 10);

  const metrics = await at("metrics");
  assertPlain(metrics, "/metrics");
  assertStringIncludes(metrics, "leat_jobs 1\n");
  assert(!/^leat_jobs 7/m.test(metrics), "a name begins a line");
  const text = await at("state");
  assertPlain(text, "/state");
  const state: DispatcherDescription = JSON.parse(text);
  assertEquals(state.workers[0]!.name, WORKER_NAME, "programs read the name as it is");
  assertEquals(state.jobs[0]!.name, job.jobName, "programs read the name as it is");
  for (const unreachable of [undefined, UNSAFE_CHARACTERS]) {
    const workers = [{ ...state.workers[0]!, ...(unreachable && { unreachable }) }];
    assertPlain(statusLine({ ...state, workers }), "the dispatcher's line");
    assertPlain(statusText({ ...state, workers }), "status");
  }
  await using child = startChild("cli/status.ts", {
    args: ["--json", "--dispatcher", service],
    flags: ["-P=status"],
  });
  assertEquals((await child.status).code, 0, child.stderr.text);
  assertPlain(child.stdout.text, "status --json");
  assertEquals(JSON.parse(child.stdout.text).jobs[0].name, job.jobName);
});

Deno.test("no name of a worker or a job is markup of the live page", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  const service = dispatcher.address;
  await using _worker = await serveWorker({
    ...{ ...QUIET, dispatcher: service, name: MARKUP, tags: [MARKUP] },
  });
  const job = { service, jobName: MARKUP, processingMode: "DYNAMIC" } as const;
  await using iterator = Dataset.range(1_000_000).distribute(job).iterator();
  await iterator.next();
  const response = await fetch(dispatcher.page);
  // deno-lint-ignore no-explicit-any -- the types of documents come with the library of browsers
  const { document } = parseHTML(await response.text()) as any;
  const script = document.querySelector("script").textContent;
  document.getSelection = () => ({ isCollapsed: true });
  const page = (path: string) => fetch(new URL(path, dispatcher.page));
  const shown = Promise.withResolvers<void>();
  const run = new Function("document", "location", "fetch", "setTimeout", script);
  run(document, { search: "" }, page, shown.resolve);
  await shown.promise;
  assertStringIncludes(document.querySelector("#view").textContent, MARKUP);
  assertEquals(document.querySelectorAll("img, #view script").length, 0);
});
