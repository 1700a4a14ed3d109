/**
 * The decision and its correction in random environments. The goal: near the best ratio, also after
 * the world has changed. The method: a fluid model of both sides, whose speeds vary.
 */
import { RandomStream } from "../../core/philox.ts";
import { RatioControl } from "../../offload/adapt.ts";
import { decide, type OffloadMetrics } from "../../offload/decide.ts";
import { Level } from "../../offload/level.ts";
import { assert, assertAlmostEquals, assertEquals, assertLess } from "../assert.ts";
import { algorithm1 } from "./lib/algorithm1.ts";

/** Elements per ms that each part can take alone, and what offloading costs this host. */
interface World {
  readonly gpu: number;
  readonly local: number;
  readonly remote: number;
  /** CPU time here for an offloaded element, as a share of that for a local one. */
  readonly cost: number;
}

const STEPS_PER_WINDOW = 25;
/** The standard deviation of a side's speed from window to window: what else a machine does. */
const NOISES = [0.01, 0.1];

/** What bounds training with a ratio, and its throughput. */
function run({ gpu, local, remote, cost }: World, ratio: number) {
  const here = local / (1 - ratio + ratio * cost);
  const there = ratio === 0 ? Infinity : remote / ratio;
  return { throughput: Math.min(gpu, here, there), here, there };
}

/** The throughput of the best ratio, found by brute force. */
function bestOf(world: World): number {
  let best = 0;
  for (let i = 0; i <= 2_000; i++) best = Math.max(best, run(world, i / 2_000).throughput);
  return best;
}

function drawn(random: RandomStream): World {
  const between = (low: number, high: number) => low * (high / low) ** random.next();
  const local = between(0.1, 10);
  return {
    local,
    gpu: local * between(0.5, 10),
    remote: local * between(0.1, 10),
    cost: random.next() * 0.5,
  };
}

/** What {@linkcode train} runs: a world in which speeds vary, from the state of `random`. */
interface Setting {
  readonly world: World;
  readonly noise: number;
  readonly random: RandomStream;
}

/** The regrets of the ratios with which training ran. */
interface Regrets {
  readonly mean: number;
  /** The mean of the last eight windows. */
  readonly last: number;
}

/** Trains for some windows. */
function train({ world, noise, random }: Setting, control: RatioControl, windows: number): Regrets {
  const best = bestOf(world);
  const regrets: number[] = [];
  for (let window = 0; window < windows; window++) {
    regrets.push(1 - run(world, control.ratio).throughput / best);
    const vary = (speed: number) => speed * Math.max(0.2, 1 + noise * random.normal());
    const now = { ...world, local: vary(world.local), remote: vary(world.remote) };
    const { throughput, here, there } = run(now, control.ratio);
    const elapsedMs = STEPS_PER_WINDOW / throughput;
    const waiting = Math.max(0, 1 - throughput / world.gpu) * elapsedMs;
    // Within a window, too, now one side is late, now the other.
    const remote = waiting / (1 + (there / here) ** (1 / Math.max(0.02, noise)));
    const waitMs = { local: waiting - remote, remote, both: 0 };
    control.observe({ elements: STEPS_PER_WINDOW, elapsedMs, waitMs });
  }
  return { mean: mean(regrets), last: mean(regrets.slice(-8)) };
}

/** What a profile would measure. */
function metricsOf(world: World): OffloadMetrics {
  const { gpu, local, cost } = world;
  // This host may be the bottleneck with all data remote, too.
  const Rthp = run(world, 1).throughput;
  return {
    ...{ Gthp: gpu, Lthp: Math.min(gpu, local), Pcycle: 1 },
    candidates: [{ name: "p'2", Rthp, Ocycle: cost }],
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

for (const noise of NOISES) {
  const name = `with noise of ${100 * noise} %`;

  Deno.test(`decide and RatioControl have a mean regret below 3 % in 1,000 environments ${name}`, () => {
    const random = new RandomStream(1);
    const regrets = {
      algorithm: [] as number[],
      decision: [] as number[],
      corrected: [] as number[],
    };
    for (let i = 0; i < 1_000; i++) {
      const world = drawn(random);
      const metrics = metricsOf(world);
      const { candidate, ratio } = decide(metrics);
      const regret = (ratio: number) => 1 - run(world, ratio).throughput / bestOf(world);
      regrets.algorithm.push(regret(algorithm1(metrics).OffRatio));
      regrets.decision.push(regret(ratio));
      regrets.corrected.push(
        candidate === null
          ? regret(0)
          : train({ world, noise, random }, new RatioControl(ratio), 80).mean,
      );
    }
    for (const [name, found] of Object.entries(regrets)) {
      console.log(
        `${name}: mean regret ${percent(mean(found))}, over 5 %: ${percent(late(found))}`,
      );
    }
    const [algorithm, decision, corrected] = Object.values(regrets).map(mean);
    assertLess(decision!, algorithm!);
    assertLess(decision!, 0.03);
    assertLess(corrected!, 0.03);
    assertLess(late(regrets.corrected), 0.05);
  });

  Deno.test(`RatioControl is near the new best 500 steps after the world has changed ${name}`, () => {
    // More workers are not seen before the next try: throughput does not change by itself.
    const changes: Record<string, [steps: number, change: (world: World) => World]> = {
      "half of the workers lost": [500, (world) => ({ ...world, remote: world.remote / 2 })],
      "link halved": [500, (at) => ({ ...at, remote: at.remote / 2, cost: at.cost * 1.2 })],
      "step time doubled": [500, (world) => ({ ...world, gpu: world.gpu / 2 })],
      "twice as many workers": [1_500, (world) => ({ ...world, remote: world.remote * 2 })],
    };
    for (const [name, [steps, change]] of Object.entries(changes)) {
      const random = new RandomStream(2);
      const regrets: number[] = [];
      for (let i = 0; i < 1_000; i++) {
        const world = drawn(random);
        const { candidate, ratio } = decide(metricsOf(world));
        if (candidate === null) continue;
        const control = new RatioControl(ratio);
        train({ world, noise, random }, control, 40);
        const changed = { world: change(world), noise, random };
        regrets.push(train(changed, control, steps / STEPS_PER_WINDOW).last);
      }
      console.log(`${name}: mean ${percent(mean(regrets))}, over 5 %: ${percent(late(regrets))}`);
      // A side whose speed varies by 10 % costs some percent, whatever the ratio is.
      assertLess(mean(regrets), 0.005 + noise / 5, name);
      assertLess(late(regrets), noise, name);
    }
  });

  Deno.test(`RatioControl mends a first ratio that is wrong, ${name}`, () => {
    const random = new RandomStream(5);
    const regrets: Regrets[] = [];
    for (let i = 0; i < 1_000; i++) {
      const world = drawn(random);
      const { candidate, ratio } = decide(metricsOf(world));
      if (candidate === null) continue;
      // Half becomes a quarter, or three quarters.
      const odds = ratio / (1 - Math.min(0.99, ratio)) * (i % 2 === 0 ? 3 : 1 / 3);
      regrets.push(train({ world, noise, random }, new RatioControl(odds / (1 + odds)), 20));
    }
    const last = regrets.map(({ last }) => last);
    console.log(
      `wrong first: mean ${percent(mean(regrets.map(({ mean }) => mean)))}, ` +
        `after 300 steps ${percent(mean(last))}, over 5 %: ${percent(late(last))}`,
    );
    assertLess(mean(last), 0.01 + noise / 5);
    assertLess(late(last), noise);
  });
}

Deno.test("RatioControl moves all to this host where that is enough, and back when it is not", () => {
  const random = new RandomStream(3);
  const control = new RatioControl(0.7);
  // Training is slower than this host: no worker is needed.
  const slow: World = { gpu: 0.8, local: 1, remote: 3, cost: 0.2 };
  train({ world: slow, noise: 0.01, random }, control, 200);
  assertEquals(control.ratio, 0);
  const fast = { world: { ...slow, gpu: 10 }, noise: 0.01, random };
  train(fast, control, 60);
  assertLess(train(fast, control, 8).last, 0.05);
  assert(control.ratio > 0.5);
});

Deno.test("RatioControl moves all to this host where receiving costs more than preparing", () => {
  const random = new RandomStream(4);
  const world: World = { gpu: 10, local: 1, remote: 8, cost: 1.5 };
  for (const ratio of [0.1, 0.5, 0.9]) {
    const { last } = train({ world, noise: 0.01, random }, new RatioControl(ratio), 120);
    assertLess(last, 0.05, `from ${ratio}`);
  }
});

Deno.test("RatioControl tries less more and more seldom where it was too little", () => {
  const control = new RatioControl(0.9);
  let failed = 0;
  let isHidden = false;
  const windows = 400;
  for (let window = 0; window < windows; window++) {
    // What is ready hides for one window that this host cannot prepare more.
    const waits = control.ratio < 0.7 && !isHidden;
    if (waits) failed++;
    const waitMs = { local: waits ? 20 : 0, remote: 0, both: 0 };
    isHidden = control.observe({ elements: 25, elapsedMs: waits ? 120 : 100, waitMs });
  }
  assert(failed > 2 && failed < windows / 20, `${failed}`);
});

Deno.test("RatioControl tries less seldom, and soon after a change, with noise of 5 %", () => {
  const random = new RandomStream(8);
  const control = new RatioControl(0.75);
  let speed = 1;
  let isHidden = false;
  /** The number of tries that were too little. */
  const failedIn = (windows: number) => {
    let failed = 0;
    for (let window = 0; window < windows; window++) {
      // What is ready hides for one window that this host cannot prepare more.
      const waits = control.ratio < 0.7 && !isHidden;
      if (waits) failed++;
      const elapsedMs = 100 / speed * (waits ? 1.2 : 1) * (1 + 0.05 * random.normal());
      const waitMs = { local: waits ? elapsedMs / 6 : 0, remote: 0, both: 0 };
      isHidden = control.observe({ elements: 25, elapsedMs, waitMs });
    }
    return failed;
  };
  for (const change of [0.5, 2]) {
    assertLess(failedIn(1_000), 20);
    // Between two tries.
    while (failedIn(1) === 0);
    assertEquals(failedIn(40), 0);
    speed *= change;
    assert(failedIn(16) > 0, "soon");
  }
});

Deno.test("RatioControl leaves work to workers where steps are slower while this host prepares", () => {
  const random = new RandomStream(6);
  const waitMs = { local: 0, remote: 0, both: 0 };
  /** The mean of the last ratios, if preparing all here slows a step down by this share. */
  const kept = (slower: number) => {
    const control = new RatioControl(0.6);
    const ratios = Array.from({ length: 400 }, () => {
      const elapsedMs = 100 * (1 + slower * (1 - control.ratio)) * (1 + 0.02 * random.normal());
      control.observe({ elements: 25, elapsedMs, waitMs });
      return control.ratio;
    });
    return mean(ratios.slice(-200));
  };
  assert(kept(0.4) > 0.5, "it costs much");
  assertLess(kept(0), 0.05);
});

Deno.test("RatioControl undoes a return to the workers that made training slower", () => {
  const control = new RatioControl(0);
  const local = { elements: 25, elapsedMs: 100, waitMs: { local: 50, remote: 0, both: 0 } };
  const windowsUntilChanged = () => {
    for (let windows = 1;; windows++) if (control.observe(local)) return windows;
  };
  assertEquals(windowsUntilChanged(), 8);
  assert(control.ratio > 0);
  assert(control.observe({ ...local, elapsedMs: 150 }));
  assertEquals(control.ratio, 0);
  assertEquals(windowsUntilChanged(), 16, "tried later than the first time");
});

Deno.test("RatioControl returns seldom where it does not pay, and soon after a change, with noise of 5 %", () => {
  const random = new RandomStream(7);
  const control = new RatioControl(0);
  let speed = 1;
  /** The number of tries. Each makes steps slower by half. */
  const triesIn = (windows: number) => {
    let tries = 0;
    for (let window = 0; window < windows; window++) {
      const slower = control.ratio > 0 ? 1.5 : 1;
      const elapsedMs = 100 * slower / speed * (1 + 0.05 * random.normal());
      const waitMs = { local: elapsedMs / 2, remote: 0, both: 0 };
      const before = control.ratio;
      control.observe({ elements: 25, elapsedMs, waitMs });
      if (before === 0 && control.ratio > 0) tries++;
    }
    return tries;
  };
  assertLess(triesIn(1_000), 20);
  for (const change of [0.5, 2]) {
    // Between two tries.
    while (triesIn(1) === 0);
    assertEquals(triesIn(40), 0);
    speed *= change;
    assertEquals(triesIn(8), 1, "soon");
  }
});

Deno.test("RatioControl returns soon if training became slower when the ratio became 0", () => {
  const windowsAlone = (elapsedMs: readonly number[]) => {
    const control = new RatioControl(0.05);
    const remote = { local: 0, remote: 50, both: 0 };
    while (control.ratio > 0) control.observe({ elements: 25, elapsedMs: 100, waitMs: remote });
    const local = { local: 50, remote: 0, both: 0 };
    const found = elapsedMs.findIndex((elapsedMs) =>
      control.observe({ elements: 25, elapsedMs, waitMs: local })
    );
    return found < 0 ? undefined : found + 1;
  };
  // What workers prepared before hides it in the first window.
  assertEquals(windowsAlone([100, 150, 150, 150]), 3);
  assertEquals(windowsAlone([100, 150, 100, 150, 100]), undefined, "single windows");
});

Deno.test("Level changes with the mean of eight values, not with one of them", () => {
  const level = new Level();
  const add = (...values: number[]) => {
    for (const value of values) level.add(value);
    return level.hasChanged(0.08);
  };
  const same = Array.from({ length: 20 }, (_, i) => 1 + i / 1_000);
  assert(!add(...same));
  assert(!add(2), "one value");
  assert(!add(...same));
  assert(!add(...same.map((value) => value + 0.05)), "less than asked for");
  assert(add(2, 2, 2, 2, 2, 2, 2));
});

Deno.test("RatioControl gives workers more where this host always works, until it is idle at times", () => {
  const control = new RatioControl(0.4);
  const observe = (remote: number) => {
    const waitMs = { local: 0, remote, both: 70 };
    for (let window = 0; window < 20; window++) {
      control.observe({ elements: 25, elapsedMs: 100, waitMs });
    }
    return control.ratio;
  };
  const found = observe(0);
  assert(found > 0.5);
  assertAlmostEquals(observe(14), found, 1e-9);
});

Deno.test("RatioControl keeps a ratio with which both sides are waited for alike", () => {
  const control = new RatioControl(0.4);
  for (let window = 0; window < 100; window++) {
    const local = 20 + window % 3;
    const waitMs = { local, remote: 42 - local, both: 0 };
    assert(!control.observe({ elements: 25, elapsedMs: 100, waitMs }));
  }
  assertEquals(control.ratio, 0.4);
});

/** The share of regrets above 5 %. */
function late(regrets: readonly number[]): number {
  return regrets.filter((regret) => regret > 0.05).length / regrets.length;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}
