/** The autoscaler on jobs made up of a few rates, by a clock that moves when told to. */

import {
  Autoscaler,
  checkScaling,
  type ScalingOptions,
} from "../../../../actors/dispatcher/scaling/autoscaler.ts";
import type { JobRates, JobSigns } from "../../../../actors/dispatcher/scaling/job_scaler.ts";
import type { ScalingDescription } from "../../../../actors/dispatcher/protocol_scaling.ts";
import { LeatError } from "../../../../core/error.ts";
import { RandomStream } from "../../../../core/philox.ts";
import { assertEquals, assertMatch, assertRejects } from "../../../assert.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** Any worker may serve the job. */
const ANY = { series: "s", pool: {}, sought: null, isFilling: false };

/** A job, in elements a second. */
interface Job {
  readonly name: string;
  /** What the trainers would take. */
  demand: number;
  /** What one worker makes. */
  madeByOne: number;
  /** What storage gives to all workers together. */
  storage: number;
  /** What the trainer's link carries. */
  link: number;
  /** Measurements are wrong by up to this share. */
  noise: number;
  shares: number | null;
}

function job(name: string, given: Partial<Job> = {}): Job {
  return {
    name,
    demand: 100,
    madeByOne: 20,
    storage: Infinity,
    link: Infinity,
    noise: 0,
    shares: null,
    ...given,
  };
}

/** What would be measured of a job on so many workers. */
function ratesOf(job: Job, workers: number, noisy: () => number): JobRates {
  const possible = Math.min(workers * job.madeByOne, job.storage);
  const delivered = Math.min(job.demand, possible, job.link);
  // A pipeline that waits for storage is at work.
  const busyShare = delivered / possible;
  return {
    waitingShare: Math.max(0, Math.min(1, noisy() * (1 - delivered / job.demand))),
    busyShare: Math.min(1, busyShare * noisy()),
    demand: job.demand * noisy(),
    delivered: delivered * noisy(),
    madeByOne: possible / workers * noisy(),
  };
}

/** A cluster whose workers come and go as is wanted, after a while. */
class Cluster {
  readonly jobs: Job[] = [];
  readonly autoscaler: Autoscaler;
  /** What was wanted, each time that it changed. */
  readonly history: number[] = [];
  said!: ScalingDescription;
  workers: number;
  nowMs = 0;
  /** Whether whoever starts workers does so. */
  follows = true;
  readonly #random = new RandomStream(1);

  constructor(workers: number, options: ScalingOptions = {}, ...jobs: Job[]) {
    this.workers = workers;
    this.autoscaler = new Autoscaler({ minWorkers: 1, maxWorkers: 32, ...options });
    this.jobs.push(...jobs);
  }

  /** Looks every five seconds, for so long. */
  pass(ms: number): this {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs; this.nowMs += 5 * SECOND) {
      this.said = this.autoscaler.observe(this.nowMs, {
        workers: this.workers,
        heard: this.workers,
        jobs: this.jobs.map((job, index) => this.#signsOf(job, index)),
      });
      if (this.history.at(-1) !== this.said.wanted) this.history.push(this.said.wanted);
      if (this.follows) this.workers = this.said.wanted;
    }
    return this;
  }

  #signsOf(job: Job, index: number): JobSigns {
    const { name, noise, shares } = job;
    const noisy = () => 1 + noise * (2 * this.#random.next() - 1);
    const rates = this.workers === 0 ? null : ratesOf(job, this.workers, noisy);
    return { jobId: index + 1, name, serving: this.workers, shares, ...ANY, rates };
  }
}

Deno.test("a job whose trainers wait for busy workers grows at once, and then stays", () => {
  const cluster = new Cluster(1, {}, job("resnet"));
  cluster.pass(2 * MINUTE);
  // 100 a second by workers that make 20 and are to be busy for 80 % of the time: 6.25.
  assertEquals(cluster.history, [1, 2, 4, 7]);
  cluster.pass(30 * MINUTE);
  assertEquals(cluster.history, [1, 2, 4, 7]);
  assertEquals(cluster.said.jobs[0]!.kind, "enough");
});

Deno.test("a job gets at once the workers that its trainer could use, and keeps those that help", () => {
  const usable = 6;
  for (const [madeByOne, kept] of [[20, 6], [100, 2]] as const) {
    const autoscaler = new Autoscaler();
    const trainer = job("resnet", { madeByOne });
    let workers = 1;
    for (let nowMs = 0; nowMs < 30 * MINUTE; nowMs += 5 * SECOND) {
      const rates = ratesOf(trainer, workers, () => 1);
      const signs = { jobId: 1, name: "a", serving: workers, shares: null, ...ANY, rates, usable };
      const { wanted } = autoscaler.observe(nowMs, { workers, heard: workers, jobs: [signs] });
      if (nowMs === 0) assertEquals(wanted, usable);
      workers = wanted;
    }
    assertEquals(workers, kept);
  }
});

Deno.test("nothing is decided before as much was measured as rates are taken over", () => {
  const cluster = new Cluster(1, {}, job("resnet"));
  cluster.pass(10 * SECOND);
  assertEquals(cluster.history, [1]);
  assertEquals(cluster.said.jobs[0]!.kind, "unknown");
  cluster.pass(5 * SECOND);
  assertEquals(cluster.history, [1, 2]);
  assertEquals(cluster.said.jobs[0]!.kind, "more");
  assertMatch(
    cluster.said.text,
    /^2 workers wanted, 1 there: job resnet waits 80 % of its time, and its workers are busy 100 %/,
  );
});

Deno.test("a job without any worker wants one, and one without figures keeps those it has", () => {
  assertEquals(new Cluster(0, { minWorkers: 0 }, job("a")).pass(SECOND).said.wanted, 1);
  const autoscaler = new Autoscaler();
  const signs = { jobId: 1, name: "a", serving: 5, shares: null, ...ANY, rates: null };
  for (let nowMs = 0; nowMs < 10 * MINUTE; nowMs += 5 * SECOND) {
    assertEquals(autoscaler.observe(nowMs, { workers: 5, heard: 5, jobs: [signs] }).wanted, 5);
  }
});

Deno.test("an autoscaler that begins anew asks for no more than it finds, though some of those are dead and are started anew", () => {
  const autoscaler = new Autoscaler();
  const signs = { jobId: 1, name: "a", serving: 2, shares: null, ...ANY, rates: null };
  // Two live, and one that is dead is not missed yet: whoever starts workers starts a third.
  let alive = 2;
  for (let nowMs = 0; nowMs < MINUTE; nowMs += 5 * SECOND) {
    const heard = nowMs === 0 ? 0 : alive;
    const { wanted } = autoscaler.observe(nowMs, { workers: alive + 1, heard, jobs: [signs] });
    assertEquals(wanted, 3);
    alive = wanted;
  }
});

Deno.test("an autoscaler that begins anew keeps the workers that come back while it takes its first rates", () => {
  const autoscaler = new Autoscaler({ measureMs: 10 * SECOND });
  const look = (nowMs: number, heard: number) =>
    autoscaler.observe(nowMs, { workers: heard, heard, jobs: [] }).wanted;
  assertEquals(look(0, 0), 0);
  assertEquals(look(5 * SECOND, 4), 4);
  assertEquals(look(20 * SECOND, 6), 4, "what comes later was asked for");
  assertEquals(look(3 * MINUTE, 4), 0);
});

Deno.test("a job that its trainers limit wants no more, and fewer only after a while", () => {
  const cluster = new Cluster(8, { downAfterMs: 2 * MINUTE }, job("slow trainer", { demand: 30 }));
  cluster.pass(2 * MINUTE);
  assertEquals(cluster.history, [8]);
  assertMatch(cluster.said.text, /if that lasts, 2 will do/);
  cluster.pass(MINUTE);
  assertEquals(cluster.history, [8, 2]);
  cluster.pass(30 * MINUTE);
  assertEquals(cluster.history, [8, 2]);
});

Deno.test("Autoscaler promises no fall while the deciding job is being measured", () => {
  const signs = { jobId: 1, name: "a", serving: 1, shares: null, ...ANY, rates: null };
  const { text } = new Autoscaler().observe(0, { workers: 3, heard: 3, jobs: [signs] });
  assertEquals(text, "3 workers wanted: job a is being measured.");
});

Deno.test("a trainer that becomes faster gets more workers, one that becomes slower fewer", () => {
  const one = job("resnet", { demand: 30 });
  const cluster = new Cluster(2, {}, one).pass(5 * MINUTE);
  assertEquals(cluster.history, [2]);
  one.demand = 200;
  cluster.pass(5 * MINUTE);
  assertEquals(cluster.history, [2, 4, 8, 13]);
  one.demand = 30;
  cluster.pass(5 * MINUTE);
  assertEquals(cluster.history, [2, 4, 8, 13, 2]);
});

Deno.test("a pause that is shorter than the time to fall costs no worker", () => {
  const one = job("evaluates now and then", { demand: 100 });
  const cluster = new Cluster(7, {}, one).pass(5 * MINUTE);
  for (let i = 0; i < 5; i++) {
    one.demand = 1;
    cluster.pass(MINUTE);
    one.demand = 100;
    cluster.pass(3 * MINUTE);
  }
  assertEquals(cluster.history, [7]);
});

Deno.test("noise makes no workers come and go", () => {
  for (const demand of [30, 60, 64, 95, 100, 130]) {
    const cluster = new Cluster(1, {}, job("noisy", { demand, noise: 0.15 })).pass(10 * MINUTE);
    const before = cluster.history.length;
    cluster.pass(8 * 60 * MINUTE);
    const least = demand / 20;
    const { wanted } = cluster.said;
    assertEquals(wanted >= least && wanted <= least / 0.8 * 1.3 + 1, true, `${demand}: ${wanted}`);
    const changes = cluster.history.length - before;
    assertEquals(changes <= 6, true, `${demand}: ${cluster.history}`);
  }
});

/** An autoscaler that looks every five seconds at one job. */
function looksAt(signsAt: (nowMs: number, workers: number) => JobSigns | undefined, ms: number) {
  const autoscaler = new Autoscaler({ maxWorkers: 32 });
  const history: number[] = [];
  let workers = 1;
  for (let nowMs = 0; nowMs < ms; nowMs += 5 * SECOND) {
    const signs = signsAt(nowMs, workers);
    const jobs = signs === undefined ? [] : [signs];
    workers = autoscaler.observe(nowMs, { workers, heard: workers, jobs }).wanted;
    if (history.at(-1) !== workers) history.push(workers);
  }
  return history;
}

Deno.test("JobScaler judges a step up once the new workers have produced, at most ten minutes later", () => {
  const one = job("fills a buffer", { demand: 60 });
  const stepsOf = (fillMs: number) => {
    let sinceMs = 0;
    let [serving, producing] = [1, 1];
    return looksAt((nowMs, workers) => {
      if (workers !== serving) [serving, sinceMs] = [workers, nowMs];
      if (nowMs - sinceMs >= fillMs) producing = serving;
      const rates = { ...ratesOf(one, Math.min(producing, serving), () => 1), busyShare: 1 };
      const isFilling = producing < serving;
      return { jobId: 1, name: "a", serving, shares: null, ...ANY, isFilling, rates };
    }, 9 * MINUTE + fillMs);
  };
  assertEquals(stepsOf(3 * MINUTE), [1, 2, 4]);
  assertEquals(stepsOf(30 * MINUTE).slice(0, 3), [1, 2, 1]);
});

Deno.test("Autoscaler measures on, and remembers what did not help, across short gaps of a job or series", () => {
  const disk = job("from disk", { demand: 400, storage: 40 });
  for (const isSameJob of [true, false]) {
    const history = looksAt((nowMs, workers) => {
      const look = nowMs / (5 * SECOND);
      // Between two epochs nobody reads, or no task has started.
      if (look % 4 === 2) return undefined;
      const serving = look % 4 === 0 ? 0 : workers;
      const rates = serving === 0 ? null : ratesOf(disk, workers, () => 1);
      const jobId = isSameJob ? 1 : Math.floor((look + 1) / 4);
      return { jobId, name: "a", serving, shares: null, ...ANY, rates };
    }, 8 * MINUTE);
    assertEquals(history, [1, 2, 4, 2]);
  }
});

Deno.test("storage that gives no more to more workers is recognised: back, and stay there", () => {
  const cluster = new Cluster(2, {}, job("from disk", { demand: 400, storage: 40 }));
  cluster.pass(5 * MINUTE);
  assertEquals(cluster.history, [2, 4, 2]);
  assertEquals(cluster.said.jobs[0]!.kind, "limited");
  assertMatch(cluster.said.text, /^2 workers wanted: job from disk waits 90 % .* did not help/);
  cluster.pass(4 * MINUTE);
  assertEquals(cluster.history, [2, 4, 2]);
});

Deno.test("what did not help is tried again, after twice as long each time", () => {
  const disk = job("from disk", { demand: 400, storage: 40 });
  const cluster = new Cluster(2, {}, disk).pass(6 * 60 * MINUTE);
  const trials = cluster.history.filter((wanted) => wanted > 2).length;
  assertEquals(trials >= 3 && trials <= 8, true, `${cluster.history}`);
  disk.storage = Infinity;
  cluster.pass(90 * MINUTE);
  assertEquals(cluster.said.wanted, 25);
});

Deno.test("a step that has helped in part is followed by no more than helps", () => {
  const cluster = new Cluster(1, {}, job("from disk", { demand: 400, storage: 70 }));
  cluster.pass(9 * MINUTE);
  assertEquals(cluster.history.slice(0, 4), [1, 2, 4, 8]);
  assertEquals(cluster.said.wanted, 4);
});

Deno.test("a trainer whose link is full gets no more workers, and keeps those that fill it", () => {
  const cluster = new Cluster(8, {}, job("far away", { demand: 100, link: 40 })).pass(10 * MINUTE);
  assertEquals(cluster.said.wanted, 3);
  assertEquals(cluster.said.jobs[0]!.kind, "limited");
  assertMatch(cluster.said.text, /the path to the trainers is slow/);
});

Deno.test("JobScaler does not go back to too few workers because more are not busy", () => {
  const [demand, madeByOne] = [10, 2];
  const shares = [[0.8, 1], [0.6, 0.9], [0.5, 0.6], [0.4, 0.35]] as const;
  const history = looksAt((_nowMs, workers) => {
    const [waitingShare, busyShare] = shares[workers - 1]!;
    const delivered = demand * (1 - waitingShare);
    const rates = { waitingShare, busyShare, demand, delivered, madeByOne };
    return { jobId: 1, name: "short epochs", serving: workers, shares: null, ...ANY, rates };
  }, 9 * MINUTE);
  assertEquals(history, [1, 2, 4, 3]);
});

Deno.test("nobody reads: down to the least, slowly, and a job that comes meanwhile finds workers", () => {
  const one = job("epoch");
  const cluster = new Cluster(7, { minWorkers: 2 }, one).pass(5 * MINUTE);
  cluster.jobs.pop();
  cluster.pass(MINUTE);
  assertEquals(cluster.said.wanted, 7);
  cluster.jobs.push(one);
  cluster.pass(MINUTE);
  assertEquals(cluster.history, [7]);
  cluster.jobs.pop();
  cluster.pass(3 * MINUTE);
  assertEquals(cluster.history, [7, 2]);
  assertMatch(cluster.said.text, /^2 workers wanted: nobody reads/);
});

Deno.test("the job that wants most decides", () => {
  const [small, large] = [job("small", { demand: 10 }), job("large", { demand: 160 })];
  const cluster = new Cluster(1, {}, small, large).pass(5 * MINUTE);
  // Eight keep up, if barely: whoever has no reason to wait wants no more.
  assertEquals(cluster.said.wanted, 8);
  assertEquals(cluster.said.jobs.map(({ wanted }) => wanted), [1, 8]);
  assertMatch(cluster.said.text, /job large/);
});

Deno.test("a job that is limited does not keep another from growing", () => {
  const disk = job("from disk", { demand: 400, storage: 40 });
  const cluster = new Cluster(2, {}, disk).pass(5 * MINUTE);
  assertEquals(cluster.said.wanted, 2);
  cluster.jobs.push(job("hungry", { demand: 160 }));
  cluster.pass(5 * MINUTE);
  assertEquals(cluster.said.wanted, 8);
  assertEquals(cluster.said.jobs[0]!.kind, "limited");
});

Deno.test("workers that die are wanted again, and their loss is no reason for more", () => {
  const cluster = new Cluster(7, {}, job("resnet")).pass(5 * MINUTE);
  cluster.follows = false;
  cluster.workers = 4;
  cluster.pass(10 * MINUTE);
  assertEquals(cluster.history, [7]);
  assertMatch(cluster.said.text, /^7 workers wanted, 4 there/);
  cluster.follows = true;
  cluster.pass(10 * MINUTE);
  assertEquals(cluster.history, [7]);
});

Deno.test("limits hold, and what a job would want beyond them is said", () => {
  const cluster = new Cluster(1, { maxWorkers: 3 }, job("resnet")).pass(10 * MINUTE);
  assertEquals(cluster.said.wanted, 3);
  assertMatch(cluster.said.text, /4 would do, but maxWorkers is 3/);
  assertEquals(new Cluster(6, { minWorkers: 5 }).pass(10 * MINUTE).said.wanted, 5);
});

Deno.test("a job of a static policy wants the workers of its list", () => {
  const cluster = new Cluster(1, {}, job("by file", { shares: 3 })).pass(MINUTE);
  assertEquals(cluster.history, [3]);
  assertEquals(cluster.said.jobs[0]!.kind, "fixed");
});

Deno.test("limits and times that make no sense are refused with their values", async () => {
  const wrong: [ScalingOptions, string][] = [
    [{ minWorkers: 3, maxWorkers: 2 }, "minWorkers is 3 and maxWorkers 2"],
    [{ minWorkers: -1 }, "minWorkers is -1"],
    [{ maxWorkers: 0 }, "maxWorkers 0"],
    [{ maxWorkers: 1.5 }, "maxWorkers 1.5"],
    [{ measureMs: 0 }, "measureMs is 0"],
  ];
  for (const [options, message] of wrong) {
    await assertRejects(() => Promise.try(() => new Autoscaler(options)), LeatError, message);
  }
});

Deno.test("checkScaling gives an undefined option its default", () => {
  const absent = undefined as never;
  assertEquals(checkScaling({ minWorkers: absent, downAfterMs: absent }), checkScaling());
});

Deno.test("what is wanted of a pool is what its hungriest job wants, and falls slowly when nobody reads", () => {
  const autoscaler = new Autoscaler({ downAfterMs: MINUTE });
  const of = (jobId: number, targetTags: readonly string[]): JobSigns => ({
    ...{ jobId, name: `${jobId}`, serving: 0, shares: jobId, ...ANY, rates: null },
    pool: { targetTags },
  });
  const poolsAt = (nowMs: number, jobs: readonly JobSigns[]) =>
    autoscaler.observe(nowMs, { workers: 0, heard: 0, jobs }).pools;
  const both = [{ targetTags: ["a", "b"], wanted: 3 }, { targetTags: [], wanted: 2 }];
  assertEquals(poolsAt(0, [of(1, ["a", "b"]), of(2, []), of(3, ["b", "a"])]), both);
  assertEquals(poolsAt(30 * SECOND, []), both);
  assertEquals(poolsAt(MINUTE, [of(1, ["b", "a"])]), [{ targetTags: ["a", "b"], wanted: 1 }]);
  assertEquals(poolsAt(2 * MINUTE, []), []);
});
