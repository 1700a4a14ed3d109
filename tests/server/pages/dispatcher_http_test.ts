/** The HTTP pages of a dispatcher: real servers, real requests. */

import {
  Dataset,
  type DispatcherDescription,
  type DispatcherServer,
  serveDispatcher,
  serveWorker,
} from "../../../mod.ts";
import {
  type MetricGroup,
  METRICS,
  metricsOf,
} from "../../../actors/dispatcher/protocol_metrics.ts";
import { assert, assertEquals, assertMatch } from "../../assert.ts";
import { until } from "../../lib/until.ts";

const QUIET = { logLevel: "off" } as const;
/** How long to wait before the cluster is checked again, in ms. */
const POLL_MS = 50;

async function get(
  { page }: Pick<DispatcherServer, "page">,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; type: string; text: string }> {
  const response = await fetch(new URL(path, page), { headers });
  const type = response.headers.get("content-type") ?? "";
  return { status: response.status, type, text: await response.text() };
}

async function statusOf(...request: Parameters<typeof get>): Promise<number> {
  return (await get(...request)).status;
}

/** The status of a request with a chosen host name, which `fetch` does not allow. */
async function statusForHost({ page }: DispatcherServer, host: string): Promise<string> {
  const { hostname, port } = new URL(page);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const request = `GET /state HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`;
  await connection.write(new TextEncoder().encode(request));
  const answer = await new Response(connection.readable).text();
  return answer.split(" ")[1]!;
}

/** Requests the state until it shows something: statistics come with heartbeats. */
async function stateWith(
  dispatcher: DispatcherServer,
  shows: (state: DispatcherDescription) => boolean,
): Promise<DispatcherDescription> {
  return await until(async () => {
    const state: DispatcherDescription = JSON.parse((await get(dispatcher, "state")).text);
    return shows(state) && state;
  }, POLL_MS);
}

interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Prometheus' text format, strictly: each sample follows the help and type of its metric. */
function parseMetrics(text: string): { types: Map<string, string>; samples: ParsedSample[] } {
  const types = new Map<string, string>();
  const helped = new Set<string>();
  const samples: ParsedSample[] = [];
  assert(text.endsWith("\n"), "the last line ends");
  for (const line of text.split("\n").filter((line) => line !== "")) {
    const comment = /^# (HELP|TYPE) ([a-z_:][a-z0-9_:]*) (.+)$/.exec(line);
    if (comment !== null) {
      const [, kind, name = "", rest = ""] = comment;
      if (kind === "HELP") helped.add(name);
      else types.set(name, rest);
      continue;
    }
    const sample = /^([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    assert(sample !== null, `no sample: ${line}`);
    const [, name = "", labelText = "", value] = sample;
    const labels: Record<string, string> = {};
    const rest = labelText.replaceAll(
      /([a-z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)",?/g,
      (_, label, text) => {
        labels[label] = text;
        return "";
      },
    );
    assertEquals(rest, "", `no labels: ${line}`);
    assert(helped.has(name) && types.has(name), `no help or type before ${line}`);
    assert(Number.isFinite(Number(value)), `no number: ${line}`);
    samples.push({ name, labels, value: Number(value) });
  }
  return { types, samples };
}

Deno.test("the dispatcher's port shows a page, its state, metrics and health", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  assertMatch(dispatcher.page, /^http:\/\/127\.0\.0\.1:\d+\/$/);
  const page = await get(dispatcher, "/");
  assertEquals([page.status, page.type], [200, "text/html; charset=utf-8"]);
  // The page loads nothing from elsewhere.
  assertEquals(page.text.match(/(?:src|href|url\()\s*=?\s*["']?(?!data:)[\w/.:]+/g), null);
  const state = await get(dispatcher, "/state");
  assertEquals([state.status, state.type], [200, "application/json"]);
  const { workers, jobs } = JSON.parse(state.text);
  assertEquals([workers, jobs], [[], []]);
  const health = await get(dispatcher, "/healthz");
  assertEquals([health.status, health.text], [200, "ok\n"]);
  const metrics = await get(dispatcher, "/metrics");
  assertMatch(metrics.type, /^text\/plain; version=0\.0\.4/);
  const { types, samples } = parseMetrics(metrics.text);
  // Unknown is not 0.
  const groups = Object.keys(METRICS) as MetricGroup[];
  const known = groups.flatMap(metricsOf).flatMap(([, { name }]) => name ?? [])
    .filter((name) => name !== "leat_optimal_workers");
  assertEquals([...types.keys()], known);
  assertEquals(samples.find(({ name }) => name === "leat_jobs")?.value, 0);
});

Deno.test("the dispatcher's port has no other page, and takes no other method", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  assertEquals(await statusOf(dispatcher, "/constructor"), 404);
  assertEquals(await statusOf(dispatcher, "/state/"), 404);
  const posted = await fetch(new URL("/state", dispatcher.page), { method: "POST", body: "{}" });
  await posted.body?.cancel();
  assertEquals(posted.status, 405);
});

Deno.test("closing a dispatcher waits for no reader of its pages", async () => {
  const dispatcher = await serveDispatcher(QUIET);
  const { hostname, port } = new URL(dispatcher.page);
  // A browser keeps its connection open, and another one is slow with a request.
  using kept = await Deno.connect({ hostname, port: Number(port) });
  using slow = await Deno.connect({ hostname, port: Number(port) });
  const request = new TextEncoder().encode("GET /state HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await kept.write(request);
  assert(await kept.read(new Uint8Array(1_024)) !== null);
  await slow.write(request.subarray(0, 20));
  await dispatcher.close();
  for (const connection of [kept, slow]) {
    // To its end: pending bytes are read first, and a reset is an end too.
    while (await connection.read(new Uint8Array(1_024)).catch(() => null) !== null);
  }
});

Deno.test("a worker's port has no pages", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  await using worker = await serveWorker({ ...QUIET, dispatcher: dispatcher.address });
  const page = `${worker.address.replace("ws:", "http:")}/`;
  for (const path of ["/", "/state"]) assertEquals(await statusOf({ page }, path), 426);
});

Deno.test("the token protects every page except the health probe; in the address it opens only the page for browsers", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, token: "sesame" });
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  assertEquals(await statusOf(dispatcher, "/healthz"), 200);
  for (const path of ["/", "/state", "/metrics", "/healthz/", "/nowhere"]) {
    assertEquals(await statusOf(dispatcher, path), 401, `${path} without a token`);
    assertEquals(await statusOf(dispatcher, path, bearer("sesam")), 401, `${path}, a wrong token`);
  }
  for (const path of ["/", "/state", "/metrics", "/healthz"]) {
    assertEquals(await statusOf(dispatcher, path, bearer("sesame")), 200, `${path}, the token`);
  }
  assertEquals(await statusOf(dispatcher, "/?token=sesame"), 200);
  assertEquals(await statusOf(dispatcher, "/?token=sesam"), 401);
  assertEquals(await statusOf(dispatcher, "/state?token=sesame"), 401);
});

Deno.test("a page takes a token with any characters in its address, and Bearer in any case", async () => {
  const token = "a+b/c=&d%e#f-0123456789";
  await using dispatcher = await serveDispatcher({ ...QUIET, token });
  const escaped = token.replace(/[%&#]/g, encodeURIComponent);
  assertEquals(await statusOf(dispatcher, `/?token=${escaped}`), 200);
  assertEquals(await statusOf(dispatcher, `/?token=${encodeURIComponent(token)}`), 200);
  for (const scheme of ["bearer ", "BEARER  "]) {
    const authorization = `${scheme}${token}`;
    assertEquals(await statusOf(dispatcher, "/state", { authorization }), 200, scheme);
  }
});

Deno.test("a token in the address does not open a socket", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, token: "sesame" });
  const socket = new WebSocket(`${dispatcher.address}/?token=sesame`);
  const opened = await new Promise<boolean>((resolve) => {
    socket.onopen = () => resolve(true);
    socket.onerror = () => resolve(false);
  });
  assertEquals(opened, false);
});

Deno.test("pages of other sites read nothing, even if their name resolves to this host", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  assertEquals(await statusOf(dispatcher, "/state", { origin: "https://evil.example" }), 403);
  assertEquals(await statusForHost(dispatcher, "evil.example:5050"), "403");
  for (const host of ["127.0.0.1:5050", "localhost:5050", "[::1]:5050"]) {
    assertEquals(await statusForHost(dispatcher, host), "200", host);
  }
});

Deno.test("state and metrics describe a running job, its waits, and its resource usage", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  await using worker = await serveWorker({
    ...QUIET,
    dispatcher: dispatcher.address,
    name: 'a "name"',
    ownProcess: true,
  });
  const batches = Dataset.range(1_000_000).batch(10).distribute({
    service: dispatcher.address,
    processingMode: "DYNAMIC",
    jobName: "job",
  });
  await using iterator = batches.iterator();
  const take = async (count: number) => {
    for (let i = 0; i < count; i++) await iterator.next();
  };
  await take(100);
  const state = await stateWith(dispatcher, ({ jobs: [job], workers: [one] }) => {
    const [iteration] = job?.iterations ?? [];
    return (iteration?.readers[0]?.figures?.elements ?? 0) >= 100 &&
      (iteration?.tasks[0]?.figures?.served ?? 0) >= 100 && (job?.usage.workerCpuHours ?? 0) > 0 &&
      (iteration?.optimalWorkers ?? 0) > 0 && (iteration?.splits[0]?.handedOut ?? 0) > 0 &&
      one?.figures?.process?.shared === false;
  });
  const [iteration] = state.jobs[0]!.iterations;
  assert(iteration!.splits[0]!.handedOut > 0 && iteration!.splits[0]!.total > 0);
  assert(iteration!.optimalWorkers! > 0);
  assertEquals(typeof iteration!.bottleneck.text, "string");
  const { samples } = parseMetrics((await get(dispatcher, "/metrics")).text);
  const of = (name: string) => samples.filter((sample) => sample.name === name);
  assertEquals(of("leat_worker_up"), [
    { name: "leat_worker_up", labels: { worker: 'a \\"name\\"' }, value: 1 },
  ]);
  assertEquals(of("leat_worker_runaway_threads")[0]!.value, 0);
  const [served] = of("leat_task_served_elements_total");
  assertEquals({ ...served!.labels }, { job: "job", iteration: "0", worker: 'a \\"name\\"' });
  assert(served!.value >= 100);
  assert(of("leat_client_elements_total")[0]!.value >= 100);
  assert(of("leat_optimal_workers")[0]!.value > 0);
  assert(of("leat_job_worker_cpu_seconds_total")[0]!.value > 0);
  assertEquals(worker.name, 'a "name"');
});
