/**
 * A dispatcher on a real journal for tests: time moves when told to, the journal can be held back,
 * and the dispatcher can be restarted, or crashed with what it had written so far.
 */

import type { DispatcherConfig } from "../../../actors/dispatcher/config.ts";
import { createDispatcher } from "../../../actors/dispatcher/dispatcher.ts";
import { RecordBatch } from "../../../actors/dispatcher/journal/records.ts";
import type { DispatcherProtocol, JobParameters } from "../../../actors/dispatcher/protocol.ts";
import type {
  OrderedNews,
  RoundsNews,
  WorkerNews,
  WorkNews,
} from "../../../actors/dispatcher/protocol_heartbeats.ts";
import type { DurableLog, LogContents } from "../../../actors/runtime/durable_log.ts";
import type { AnswerOf, MethodOf, RequestOf } from "../../../actors/runtime/protocol.ts";
import type { Ref } from "../../../actors/runtime/ref.ts";
import { ActorSystem } from "../../../actors/runtime/system.ts";
import type { LogLevel, Random, Timer, World } from "../../../actors/runtime/world.ts";
import { LeatError } from "../../../core/error.ts";
import { hashBytes } from "../../../core/hash.ts";
import type { SplitTable } from "../../../data/sharding/splits.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { openSqliteLog } from "../../../platform/journal/sqlite_log.ts";
import { assert, assertRejects } from "../../assert.ts";
import { TestWorker } from "./test_worker.ts";

const PATIENCE_MS = 3_600_000;

/** A world whose clock stands still until it is told to move on. */
export class SteppedWorld implements World {
  readonly random: Random;
  /** What was logged as an error. */
  readonly errors: string[] = [];
  readonly warnings: string[] = [];
  readonly #real = new DenoWorld({ logLevel: "off" });
  readonly #openLog: (name: string) => Promise<DurableLog>;
  readonly #timers = new Set<{ dueMs: number; fn: () => void }>();
  #nowMs = 1_000;
  #wallOffsetMs = 1_700_000_000_000;

  constructor(openLog: (name: string) => Promise<DurableLog>) {
    this.random = this.#real.random;
    this.#openLog = openLog;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#wallOffsetMs + this.#nowMs;
  }

  timer(delayMs: number, fn: () => void): Timer {
    const timer = { dueMs: this.#nowMs + delayMs, fn };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  macrotask(fn: () => void): void {
    this.#real.macrotask(fn);
  }

  openLog(name: string): Promise<DurableLog> {
    return this.#openLog(name);
  }

  log(level: LogLevel, message: string): void {
    if (level === "error") this.errors.push(message);
    if (level === "warn") this.warnings.push(message);
  }

  fault(_point: string): boolean {
    return false;
  }

  /** The wall clock is set, forwards or backwards; no time passes. */
  stepWallClock(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  /** Time passes while this thread does nothing: timers are late. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  /** Moves time on, firing timers in order, each with the work it causes. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const next = [...this.#timers].sort((a, b) => a.dueMs - b.dueMs)[0];
      if (next === undefined || next.dueMs > endMs) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.fn();
      await settle();
    }
    this.#nowMs = endMs;
    await settle();
  }
}

/** Lets what is under way in this process come to rest. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** A log whose commits can be held back. */
class GatedLog implements DurableLog {
  readonly #log: DurableLog;
  readonly #gate: () => Promise<void> | undefined;

  constructor(log: DurableLog, gate: () => Promise<void> | undefined) {
    this.#log = log;
    this.#gate = gate;
  }

  read(): Promise<LogContents> {
    return this.#log.read();
  }

  append(record: Uint8Array): void {
    this.#log.append(record);
  }

  async sync(): Promise<void> {
    await this.#gate();
    await this.#log.sync();
  }

  async compact(snapshot: Uint8Array): Promise<void> {
    await this.#gate();
    await this.#log.compact(snapshot);
  }

  close(): Promise<void> {
    return this.#log.close();
  }
}

/** See the module. */
export class TestCluster implements AsyncDisposable {
  readonly world: SteppedWorld;
  readonly system: ActorSystem;
  readonly dispatcher: Ref<DispatcherProtocol>;
  /** The most that the journal may grow to. */
  diskBytes = Infinity;
  readonly #folder = Deno.makeTempDirSync({ prefix: "leat-dispatcher-" });
  #config: DispatcherConfig;
  #journalNumber = 0;
  #gate: PromiseWithResolvers<void> | undefined;
  #requests = 0;

  private constructor(config: DispatcherConfig) {
    this.#config = config;
    this.world = new SteppedWorld(async () =>
      new GatedLog(
        await openSqliteLog(this.journalPath, { bytesMax: () => this.diskBytes }),
        () => this.#gate?.promise,
      )
    );
    this.system = new ActorSystem({ node: "test", world: this.world });
    this.dispatcher = { node: "test", path: "/dispatcher" };
  }

  static async start(config: DispatcherConfig = {}): Promise<TestCluster> {
    const cluster = new TestCluster(config);
    await cluster.#createJournal();
    await cluster.#begin();
    return cluster;
  }

  /** Begins a journal whose cluster counts its tasks and clients from 1. */
  async #createJournal(): Promise<void> {
    const log = await openSqliteLog(this.journalPath);
    const batch = new RecordBatch();
    batch.add({ type: "cluster_created", clusterId: "00000000deadbeef" });
    await log.read();
    log.append(batch.encode());
    await log.sync();
    await log.close();
  }

  get journalPath(): string {
    return `${this.#folder}/${this.#journalNumber}.log`;
  }

  ask<M extends MethodOf<DispatcherProtocol>>(
    method: M,
    request: RequestOf<DispatcherProtocol, M>,
  ): Promise<AnswerOf<DispatcherProtocol, M>> {
    return this.system.ask(this.dispatcher, method, request, { timeoutMs: PATIENCE_MS });
  }

  /** Asks what must be refused. */
  refused<M extends MethodOf<DispatcherProtocol>>(
    method: M,
    request: RequestOf<DispatcherProtocol, M>,
  ): Promise<LeatError> {
    return assertRejects(() => this.ask(method, request), LeatError);
  }

  /** Registers a dataset that has nothing in it but its name. */
  async dataset(name = "numbers", cardinality = 100): Promise<string> {
    const graph = new TextEncoder().encode(name);
    const request = { graph, fingerprint: hashBytes(graph), cardinality };
    return (await this.ask("registerDataset", request)).datasetId;
  }

  /** Joins an iteration with parameters that default to DYNAMIC. */
  async open(
    datasetId: string,
    options: {
      jobName?: string;
      repetition?: number;
      consumerIndex?: number;
      requestId?: string;
      process?: string;
    } & Partial<JobParameters> = {},
  ): Promise<AnswerOf<DispatcherProtocol, "openIteration">> {
    return await this.ask("openIteration", this.openRequest(datasetId, options));
  }

  openRequest(
    datasetId: string,
    options: Parameters<TestCluster["open"]>[1] = {},
  ): RequestOf<DispatcherProtocol, "openIteration"> {
    const { jobName, repetition = 0, consumerIndex, requestId, process, ...parameters } = options;
    return {
      requestId: requestId ?? `request ${++this.#requests}`,
      ...(jobName === undefined ? {} : { jobName }),
      parameters: { datasetId, processingMode: "DYNAMIC", sharing: false, ...parameters },
      repetition,
      ...(consumerIndex === undefined ? {} : { consumerIndex }),
      ...(process === undefined ? {} : { process }),
    };
  }

  /** A worker that does what it is told by hand. */
  worker(name: string, table: SplitTable = [[]]): TestWorker {
    return new TestWorker(this, name, table);
  }

  /** From now on no commit of the journal ends. */
  holdJournal(): void {
    this.#gate ??= Promise.withResolvers();
  }

  releaseJournal(): void {
    this.#gate?.resolve();
    this.#gate = undefined;
  }

  /** Stops the dispatcher in order and starts it again. */
  async restart(config: DispatcherConfig = this.#config): Promise<void> {
    this.releaseJournal();
    await this.system.stopActor("dispatcher");
    this.#config = config;
    await this.#begin();
  }

  /** The dispatcher is gone as it is; the next one finds what the disk holds now. */
  async crash(): Promise<void> {
    const old = this.journalPath;
    this.#journalNumber++;
    for (const suffix of ["", "-wal"]) {
      try {
        Deno.copyFileSync(old + suffix, this.journalPath + suffix);
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    }
    // Nothing of the old life is heard any more: what it had not committed, it cannot now.
    this.#gate?.reject(new LeatError("data_loss", "the power is cut"));
    await settle();
    this.#gate = undefined;
    await this.system.stopActor("dispatcher");
    await this.#begin();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.releaseJournal();
    await this.system.stop();
    await Deno.remove(this.#folder, { recursive: true });
  }

  async #begin(): Promise<void> {
    this.system.spawn<DispatcherProtocol>({
      name: "dispatcher",
      create: (context) => createDispatcher(context, this.#config),
    });
    await this.ask("hello", null);
  }
}

/** A table of one source with so many splits of ten elements. */
export function tableOf(...counts: number[]): SplitTable {
  return counts.map((count) =>
    Array.from({ length: count }, (_, i) => ({ start: 10 * i, stop: 10 * i + 10 }))
  );
}

/** The news for a consumer, from the answer to its heartbeat. */
export function roundsNews({ news }: HeartbeatAnswer): RoundsNews {
  if (news?.kind === "rounds") return news;
  throw new Error(`No news of rounds: ${JSON.stringify(news)}`);
}

/** The news for a DETERMINISTIC reader, from the answer to its heartbeat. */
export function orderedNews({ news }: HeartbeatAnswer): OrderedNews {
  if (news?.kind === "ordered") return news;
  throw new Error(`No news of an order: ${JSON.stringify(news)}`);
}

type HeartbeatAnswer = AnswerOf<DispatcherProtocol, "clientHeartbeat">;

/** What a registered worker is told. */
export function workIn(news: WorkerNews): WorkNews {
  assert(news.kind === "work");
  return news;
}
