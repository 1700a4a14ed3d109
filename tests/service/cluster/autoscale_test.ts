/** The scaler of a fleet of workers, against a dispatcher's descriptions. */
import {
  autoscale,
  type DispatcherDescription,
  LeatError,
  type ScalingStep,
} from "../../../mod.ts";
import { leastUseful, START_TIMEOUT_MS } from "../../../server/cluster/scaler.ts";
import { assertEquals, assertRejects, assertThrows } from "../../assert.ts";
import { noFigures } from "../../lib/no_figures.ts";
import { until } from "../../lib/until.ts";
import { hurried, Names, ownBeside, stateOf, virtual, worker } from "../lib/scaling_fleet.ts";

Deno.test("autoscale keeps a fleet at what is wanted, less the workers of others, within its limits", async () => {
  const fleet = new Names();
  let state = stateOf(4);
  const dispatcher = { describe: () => Promise.resolve(state) };
  await using _scaler = autoscale({
    dispatcher,
    fleet,
    minWorkers: 1,
    maxWorkers: 5,
    intervalMs: 2,
  });
  await until(() => fleet.names.length === 4);
  const own = () => fleet.names.map((name) => worker(name));
  state = stateOf(4, [...own(), worker("by hand"), worker("gone", { alive: false })]);
  await until(() => fleet.names.length === 3);
  state = stateOf(0);
  await until(() => fleet.names.length === 1);
  state = stateOf(9);
  await until(() => fleet.names.length === 5);
  fleet.names.splice(0, 2);
  await until(() => fleet.names.length === 5);
});

Deno.test("autoscale reports which of its steps its own limits decide, and not the dispatcher", async () => {
  const fleet = new Names();
  for (let i = 0; i < 5; i++) await fleet.start(); // another scaler's, that had no such limit
  const steps: ScalingStep[] = [];
  let state = stateOf(9);
  await using _scaler = autoscale({
    dispatcher: { describe: () => Promise.resolve(state) },
    fleet,
    minWorkers: 2,
    maxWorkers: 4,
    intervalMs: 1,
    onStep: (step) => void steps.push(step),
  });
  const reasonsOf = (kind: ScalingStep["action"]) =>
    steps.splice(0).filter(({ action }) => action === kind).map(({ reason }) => reason);
  await until(() => fleet.names.length === 4);
  const most = "never more than 4 here (--max, maxWorkers), whatever is wanted: because";
  assertEquals(reasonsOf("stop"), [most]);
  state = stateOf(1);
  await until(() => fleet.names.length === 2);
  assertEquals(reasonsOf("stop"), ["because", "because"]);
  fleet.names.splice(0, 2); // they have ended: one of them is wanted, the other is not
  await until(() => fleet.names.length === 2);
  const least = "never fewer than 2 here (--min, minWorkers), whatever is wanted: because";
  assertEquals(reasonsOf("start"), ["because", least]);
});

Deno.test("autoscale counts no worker that cannot be reached, or may not serve the job that wants some", async () => {
  const tagged = worker("tagged", { tags: ["a"] });
  const colocated = worker("colocated", { tags: ["COLOCATED"] });
  assertEquals(await ownBeside(stateOf(1, [worker("lost", { unreachable: "no route" })])), 1);
  assertEquals(await ownBeside(stateOf(2, [tagged], [{ targetTags: ["b"], wanted: 2 }])), 2);
  assertEquals(await ownBeside(stateOf(2, [tagged], [{ targetTags: ["a"], wanted: 2 }])), 1);
  assertEquals(await ownBeside(stateOf(1, [colocated], [{ wanted: 1 }])), 1);
  assertEquals(await ownBeside(stateOf(1, [colocated], [{ targetWorkers: "any", wanted: 1 }])), 0);
  assertEquals(await ownBeside(stateOf(1, [tagged], [{ names: ["listed"], wanted: 1 }])), 1);
  // One pool wants more, and the other has enough; never more than the limit of the cluster.
  const both = [{ targetTags: ["b"], wanted: 1 }, { wanted: 2 }];
  assertEquals(await ownBeside(stateOf(2, [tagged, worker("plain")], both)), 1);
  assertEquals(await ownBeside(stateOf(2, [tagged], [{ targetTags: ["b"], wanted: 9 }])), 2);
});

Deno.test("two scalers of one dispatcher come to rest at what is wanted, and stop no worker for the other's sake", async () => {
  const { clock, timer } = virtual();
  const pauseMs = (ms: number) => new Promise<void>((resolve) => timer(ms, resolve));
  const alive = new Map<string, { draining: boolean }>();
  const fleetOf = (prefix: string) => {
    const names: string[] = [];
    return {
      names,
      start: async () => {
        await pauseMs(20_000);
        const name = `${prefix}${alive.size}-${clock.nowMs}`;
        names.push(name);
        alive.set(name, { draining: false });
      },
      stop: async (name: string) => {
        names.splice(names.indexOf(name), 1);
        alive.get(name)!.draining = true;
        await pauseMs(30_000);
        alive.delete(name);
      },
    };
  };
  const rates = { ...noFigures("task"), ageMs: 0, process: null };
  const workers = () =>
    [...alive].map(([name, { draining }]) => worker(name, { figures: { ...rates, draining } }));
  let wanted = 4;
  let steps = 0;
  const scalerOf = (prefix: string) =>
    autoscale({
      ...{ dispatcher: { describe: () => Promise.resolve(stateOf(wanted, workers())) } },
      ...{ fleet: fleetOf(prefix), maxWorkers: 8, timer, onStep: () => void steps++ },
    });
  const working = () => [...alive.values()].filter(({ draining }) => !draining).length;
  const settlesAt = async (count: number) => {
    const from = working();
    let least = from;
    await clock.pass(120_000, () => void (least = Math.min(least, working())));
    assertEquals([working(), alive.size, least], [count, count, Math.min(from, count)]);
    const before = steps;
    await clock.pass(300_000);
    assertEquals([working(), steps], [count, before]);
  };
  await using _one = scalerOf("a");
  await clock.pass(2_500);
  await using _other = scalerOf("b");
  await settlesAt(4);
  for (wanted of [2, 5, 1]) await settlesAt(wanted);
});

Deno.test("autoscale starts no worker for a job that those of its fleet may not serve", async () => {
  const state = stateOf(1, [worker("tagged", { tags: ["a"] })], [{ targetTags: ["b"], wanted: 1 }]);
  assertEquals(await ownBeside(state, ["a"]), 0);
  assertEquals(await ownBeside(state, ["a", "b"]), 1);
  const pools = [{ targetTags: ["b"], wanted: 4 }, { wanted: 2 }];
  assertEquals(await ownBeside(stateOf(4, [], pools), ["a"]), 2);
  assertEquals(await ownBeside(stateOf(4, [], pools.slice(0, 1)), ["a"]), 0);
});

Deno.test("an onStep that throws or rejects does not count as a failure of the fleet, and ends nothing", async () => {
  const { delays, timer } = hurried();
  const told: string[] = [];
  const kept = console.error;
  console.error = (...words: unknown[]) => void told.push(words.join(" "));
  try {
    for (
      const onStep of [() => {
        throw new Error("a bug");
      }, () => Promise.reject("a bug")]
    ) {
      const fleet = new Names();
      fleet.failing = true;
      const dispatcher = { describe: () => Promise.resolve(stateOf(1, fleet.listed())) };
      await using _scaler = autoscale({
        ...{ dispatcher, fleet, maxWorkers: 2, intervalMs: 100, timer, onStep },
      });
      await until(() => delays.at(-1)! > 1_000);
      fleet.failing = false;
      await until(() => fleet.names.length === 1 && delays.at(-1) === 100);
    }
  } finally {
    console.error = kept;
  }
  assertEquals(told.every((line) => line.includes("onStep has failed")), true);
  assertEquals(told.length > 4, true);
});

Deno.test("autoscale refuses anything but its options", () => {
  for (const options of [undefined, null, 5]) {
    const { code } = assertThrows(() => autoscale(options as never), LeatError, "autoscale: ");
    assertEquals(code, "invalid_argument");
  }
});

Deno.test("autoscale refuses an interval without pauses", async () => {
  const dispatcher = { describe: () => Promise.resolve(stateOf(0)) };
  for (const intervalMs of [0, -1, NaN, Infinity]) {
    const options = { dispatcher, fleet: new Names(), maxWorkers: 2, intervalMs };
    const refused = () => Promise.try(() => autoscale(options).close());
    await assertRejects(refused, LeatError, `intervalMs is ${intervalMs}; it must be above 0`);
  }
});

Deno.test("autoscale does not count an ended worker of its fleet, though the dispatcher still does", async () => {
  const fleet = new Names();
  let looks = 0;
  let state = stateOf(2);
  const describe = () => {
    looks++;
    return Promise.resolve(state);
  };
  const limits = { minWorkers: 0, maxWorkers: 5, intervalMs: 2 };
  await using _scaler = autoscale({ dispatcher: { describe }, fleet, ...limits });
  await until(() => fleet.names.length === 2);
  const both = fleet.names.map((name) => worker(name));
  state = stateOf(1, both);
  await until(() => fleet.names.length === 1);
  const [living] = fleet.names;
  looks = 0;
  await until(() => looks > 10);
  assertEquals(fleet.names, [living!]);
  state = stateOf(2, both);
  await until(() => fleet.names.length === 2);
});

Deno.test("autoscale continues after a failed start and a dispatcher that did not answer", async () => {
  const fleet = new Names();
  fleet.failing = true;
  const steps: ScalingStep[] = [];
  let answers = true;
  const dispatcher = {
    describe: () =>
      answers ? Promise.resolve(stateOf(1)) : Promise.reject(new LeatError("unavailable", "Away")),
  };
  const failures = () =>
    steps.filter(({ action }) => action === "fail").map(({ reason }) => reason);
  await using _scaler = autoscale({
    dispatcher,
    fleet,
    maxWorkers: 2,
    intervalMs: 1,
    onStep: (step) => void steps.push(step),
  });
  await until(() => failures().some((reason) => reason.includes("No more machines")));
  answers = false;
  fleet.failing = false;
  await until(() => failures().some((reason) => reason.includes("Away")));
  answers = true;
  await until(() => fleet.names.length === 1);
});

Deno.test("autoscale continues after the fleet could not say which workers run", async () => {
  const names = new Names();
  let failing = true;
  const fleet = {
    get names() {
      if (failing) throw new LeatError("unavailable", "No list of machines");
      return names.names;
    },
    start: () => names.start(),
    stop: (name: string) => names.stop(name),
  };
  const steps: ScalingStep[] = [];
  await using _scaler = autoscale({
    dispatcher: { describe: () => Promise.resolve(stateOf(1)) },
    fleet,
    maxWorkers: 2,
    intervalMs: 1,
    onStep: (step) => void steps.push(step),
  });
  await until(() => steps.length > 1);
  const reason = "The fleet could not be scaled: No list of machines";
  assertEquals(steps[0], { action: "fail", workers: 0, reason });
  failing = false;
  await until(() => fleet.names.length === 1);
});

Deno.test("autoscale names the fleet, not the dispatcher, if start or stop throws synchronously, and continues", async () => {
  const fleet = new Names();
  const { start, stop } = Names.prototype;
  let started = 0;
  fleet.start = () => {
    if (started++ === 0) throw new LeatError("resource_exhausted", "No quota");
    return start.call(fleet);
  };
  let stopped = 0;
  fleet.stop = (name) => {
    if (stopped++ === 0) throw new TypeError("no such machine");
    return stop.call(fleet, name);
  };
  const reasons: string[] = [];
  let wanted = 2;
  await using _scaler = autoscale({
    dispatcher: { describe: () => Promise.resolve(stateOf(wanted)) },
    fleet,
    maxWorkers: 2,
    intervalMs: 1,
    onStep: ({ action, reason }) => void (action === "fail" && reasons.push(reason)),
  });
  await until(() => fleet.names.length === 2);
  wanted = 0;
  await until(() => fleet.names.length === 0);
  assertEquals(reasons, [
    "The fleet could not start a worker: No quota",
    'The fleet could not stop worker "w1" gracefully: no such machine',
  ]);
  const stateless = { describe: () => Promise.resolve({} as DispatcherDescription) };
  const told = Promise.withResolvers<string>();
  await using _other = autoscale({
    dispatcher: stateless,
    fleet,
    maxWorkers: 2,
    intervalMs: 1,
    onStep: ({ reason }) => told.resolve(reason),
  });
  assertEquals((await told.promise).startsWith("The fleet could not be scaled"), true);
});

Deno.test("autoscale fails with the dispatcher's error once that refuses its token or its role, or is none", async () => {
  for (const code of ["unauthenticated", "permission_denied", "failed_precondition"] as const) {
    const { clock, timer } = virtual();
    const steps: ScalingStep[] = [];
    let asked = 0;
    const describe = () => {
      asked++;
      return Promise.reject(new LeatError(code, "Refused"));
    };
    await using scaler = autoscale({
      ...{ dispatcher: { describe }, fleet: new Names(), maxWorkers: 2, timer },
      onStep: (step) => void steps.push(step),
    });
    await clock.pass(100_000);
    assertEquals([asked, steps], [1, []]);
    assertEquals((await scaler.failed).code, code);
  }
});

Deno.test("autoscale keeps its workers while another cannot be started with its settings, and fails without any", async () => {
  const { clock, timer } = virtual();
  const fleet = new Names();
  let wanted = 2;
  const reasons: string[] = [];
  await using scaler = autoscale({
    dispatcher: { describe: () => Promise.resolve(stateOf(wanted, fleet.listed())) },
    ...{ timer, fleet, maxWorkers: 4, intervalMs: 1_000 },
    onStep: ({ action, reason }) => void (action === "fail" && reasons.push(reason)),
  });
  let failure: LeatError | undefined;
  scaler.failed.then((error) => failure = error);
  await clock.pass(10_000);
  const { start } = fleet;
  const refused = () => Promise.reject(new LeatError("invalid_argument", "No such data root"));
  [wanted, fleet.start] = [3, refused];
  await clock.pass(100_000);
  assertEquals([fleet.names.length, failure], [2, undefined]);
  assertEquals(
    new Set(reasons),
    new Set(["The fleet could not start a worker: No such data root"]),
  );
  // The pauses have doubled, up to a minute.
  assertEquals(reasons.length, 7);
  fleet.start = start;
  await clock.pass(60_000);
  assertEquals(fleet.names.length, 3);
  fleet.start = refused;
  fleet.names.splice(0);
  await clock.pass(60_000);
  assertEquals(failure?.code, "invalid_argument");
});

Deno.test("autoscale waits for a dispatcher that has answered once, whatever answers in its place", async () => {
  const { clock, timer } = virtual();
  const fleet = new Names();
  let isAway = false;
  const describe = () =>
    isAway
      ? Promise.reject(new LeatError("failed_precondition", "A proxy's page"))
      : Promise.resolve(stateOf(2, fleet.listed()));
  await using _scaler = autoscale({ dispatcher: { describe }, timer, fleet, maxWorkers: 2 });
  await clock.pass(10_000);
  isAway = true;
  await clock.pass(100_000);
  isAway = false;
  await fleet.stop("w0");
  await clock.pass(60_000);
  assertEquals(fleet.names.length, 2);
});

Deno.test("autoscale asks less often while the dispatcher does not answer, and as before afterwards", async () => {
  const { delays, timer } = hurried();
  const fleet = new Names();
  let answers = true;
  const dispatcher = {
    describe: () =>
      answers ? Promise.resolve(stateOf(1)) : Promise.reject(new LeatError("unavailable", "Away")),
  };
  await using _scaler = autoscale({ dispatcher, fleet, maxWorkers: 2, intervalMs: 100, timer });
  await until(() => fleet.names.length === 1);
  answers = false;
  await until(() => delays.at(-1)! > 1_000);
  answers = true;
  await until(() => delays.at(-1) === 100);
});

Deno.test("autoscale looks as often as before with the first answer, though it starts a worker at each", async () => {
  const { delays, timer } = hurried();
  const fleet = new Names();
  const answered: number[] = [];
  let answers = false;
  const describe = () => {
    if (!answers) return Promise.reject(new LeatError("unavailable", "Away"));
    answered.push(delays.length);
    return Promise.resolve(stateOf(fleet.names.length + 1));
  };
  await using _scaler = autoscale({
    dispatcher: { describe },
    fleet,
    maxWorkers: 1_000_000,
    intervalMs: 100,
    timer,
  });
  await until(() => delays.at(-1)! > 1_000);
  answers = true;
  await until(() => answered.length > 3);
  assertEquals(answered.slice(0, 3).map((look) => delays[look]), [100, 100, 100]);
});

Deno.test("autoscale checks as often as before once a worker could be started, though it starts more", async () => {
  const { delays, timer } = hurried();
  const fleet = new Names();
  fleet.failing = true;
  const describe = () => Promise.resolve(stateOf(fleet.names.length + 1, fleet.listed()));
  await using _scaler = autoscale({
    dispatcher: { describe },
    fleet,
    maxWorkers: 1_000_000,
    intervalMs: 100,
    timer,
  });
  await until(() => delays.at(-1)! > 1_000);
  fleet.failing = false;
  await until(() => delays.at(-1) === 100);
});

Deno.test("autoscale waits longer after each worker that ends before it has registered, until one registers", async () => {
  const { clock, timer } = virtual();
  const fleet = new Names();
  const startsMs: number[] = [];
  const reasons: string[] = [];
  let lifeMs = 300;
  // A start takes 1.9 s, so that a check may come while the worker still runs.
  fleet.start = async () => {
    startsMs.push(clock.nowMs);
    await new Promise<void>((resolve) => timer(1_900, resolve));
    const name = `w${startsMs.length}`;
    fleet.names.push(name);
    timer(lifeMs, () => void fleet.stop(name));
  };
  let lists = false;
  const describe = () => Promise.resolve(stateOf(1, lists ? fleet.listed() : []));
  await using _scaler = autoscale({
    ...{ dispatcher: { describe }, timer, fleet, maxWorkers: 4, intervalMs: 1_000 },
    onStep: ({ action, reason }) => void (action === "fail" && reasons.push(reason)),
  });
  await clock.pass(300_000);
  const pausesMs = startsMs.slice(1).map((ms, i) => ms - startsMs[i]!);
  assertEquals(pausesMs, [3_000, 4_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  assertEquals(
    reasons[0],
    'The fleet could not start a worker: "w1" ended by itself before a check found it at the ' +
      "dispatcher. See its log",
  );
  const { length } = reasons;
  [lists, lifeMs] = [true, 100_000];
  await clock.pass(150_000);
  const before = startsMs.length;
  await clock.pass(100_000);
  // The worker that had registered was replaced at the next check.
  assertEquals([startsMs.length, reasons.length], [before + 1, length + 1]);
});

Deno.test("autoscale counts a start that never settles as failed, and scales down again", async () => {
  const { clock, timer } = virtual();
  const fleet = new Names();
  for (let i = 0; i < 3; i++) await fleet.start();
  fleet.start = () => new Promise(() => {});
  let wanted = 4;
  const reasons: string[] = [];
  const scaler = autoscale({
    ...{ dispatcher: { describe: () => Promise.resolve(stateOf(wanted)) }, timer },
    ...{ fleet, maxWorkers: 4, intervalMs: 1_000 },
    onStep: ({ action, reason }) => void (action === "fail" && reasons.push(reason)),
  });
  await clock.pass(10_000);
  wanted = 1;
  await clock.pass(START_TIMEOUT_MS - 20_000);
  assertEquals([fleet.names.length, reasons], [3, []]);
  await clock.pass(20_000);
  const late = "The fleet could not start a worker: It took longer than 10 minutes";
  assertEquals([fleet.names.length, reasons], [1, [late]]);
  wanted = 2;
  await clock.pass(10_000);
  const closed = scaler.close();
  await clock.pass(START_TIMEOUT_MS);
  await closed;
});

Deno.test("autoscale counts stopping workers within its maximum", async () => {
  const { delays, timer } = hurried();
  const stopped = Promise.withResolvers<void>();
  const fleet = new Names();
  const stop = fleet.stop.bind(fleet);
  fleet.stop = async (name) => {
    await stopped.promise;
    await stop(name);
  };
  let state = stateOf(3);
  const dispatcher = { describe: () => Promise.resolve(state) };
  await using _scaler = autoscale({ dispatcher, fleet, maxWorkers: 3, intervalMs: 1, timer });
  await until(() => fleet.names.length === 3);
  state = stateOf(1);
  const looks = delays.length;
  await until(() => delays.length > looks + 3);
  state = stateOf(3);
  const later = delays.length;
  await until(() => delays.length > later + 3);
  assertEquals(fleet.started, 3);
  stopped.resolve();
  await until(() => fleet.started === 5);
  assertEquals(fleet.names.length, 3);
});

Deno.test("the least useful workers are stopped first, and the youngest among equals", () => {
  const figures = (elementsPerSecond: number) => ({
    ageMs: 0,
    process: null,
    ...noFigures("task"),
    elementsPerSecond,
  });
  const state = stateOf(0, [
    worker("quick", { figures: figures(90) }),
    worker("slow", { figures: figures(20) }),
    worker("as slow", { figures: figures(20) }),
    worker("behind a wall", { figures: figures(99), unreachable: "no route" }),
    worker("not listed", { figures: figures(50), noShard: "not among them" }),
  ]);
  assertEquals(
    leastUseful(state, ["quick", "slow", "as slow", "behind a wall", "not listed"]),
    ["behind a wall", "not listed", "as slow", "slow", "quick"],
  );
});
