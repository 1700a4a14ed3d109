/** A cell is one incarnation of an actor: its mailbox, message handling, timers and end. */
import { LeatError } from "../../core/error.ts";
import { Fifo } from "../../core/fifo.ts";
import type { Actor, ActorContext, AskOptions, ChildSpec, WatchDown } from "./actor.ts";
import { refusalBy } from "./access.ts";
import { type Answer, Answers } from "./asking/answers.ts";
import { copyBody } from "./body.ts";
import type { CellSystem } from "./cell_system.ts";
import { CellTimer } from "./timers.ts";
import type { Check } from "./checks.ts";
import type { AskEnvelope, TellEnvelope } from "./envelope.ts";
import { type Identity, senderKeyOf } from "./identity.ts";
import type { ActorInfo } from "./inspection.ts";
import { ReceiveMarks, SendNumbers } from "./asking/numbering.ts";
import type { AnswerOf, Delivery, Handlers, MethodOf, RequestOf } from "./protocol.ts";
import { type FencedRef, formatRef, type Ref } from "./ref.ts";
import { Supervisor } from "./supervisor.ts";
import type { Random, Timer, World } from "./world.ts";

/** Default number of messages that may wait in a mailbox. */
const MAILBOX_MAX = 10_000;
/** Default time limit for an actor's `stop()`, in ms. */
const STOP_TIMEOUT_MS = 5_000;

interface Waiting {
  readonly envelope: TellEnvelope | AskEnvelope;
  readonly sender: Identity;
  readonly deadlineMs: number;
}

export class Cell implements ActorContext<unknown> {
  readonly self: FencedRef;
  readonly world: World;
  #random: Random | undefined;
  readonly parent: Cell | undefined;
  readonly children: Supervisor<Cell>;
  readonly sendNumbers = new SendNumbers();
  readonly receiveMarks = new ReceiveMarks();
  /** Ids of this incarnation's open repeatable asks, by target, in ascending order. */
  readonly repeatable = new Map<string, number[]>();
  readonly answers: Answers;
  /** Whether the cell is in the system's run queue. */
  queued = false;
  state: "starting" | "running" | "stopping" | "stopped" = "starting";
  readonly #system: CellSystem;
  // deno-lint-ignore no-explicit-any -- see CellSystem
  readonly #spec: ChildSpec<any>;
  readonly #mailbox = new Fifo<Waiting>();
  /** Asks whose handlers have not answered yet. */
  readonly #answering = new Map<AskEnvelope, Identity>();
  readonly #timers: CellTimer[] = [];
  /** Created when the actor asks for its signal, which few do. */
  #abort: AbortController | undefined;
  #endedError: LeatError | undefined;
  #actor: Actor<unknown> | undefined;
  #terminated: Promise<void> | undefined;

  // deno-lint-ignore no-explicit-any -- see CellSystem
  constructor(system: CellSystem, node: string, parent: Cell | undefined, spec: ChildSpec<any>) {
    this.#system = system;
    this.#spec = spec;
    this.answers = new Answers(system.keptAnswerBytes);
    this.world = system.world;
    this.parent = parent;
    const base = parent === undefined || parent.self.path === "/" ? "" : parent.self.path;
    const incarnation = system.newIncarnation();
    this.self = { node, path: `${base}/${spec.name}`, incarnation };
    this.children = new Supervisor<Cell>({
      world: system.world,
      startCell: (child) => system.startCell(this, child),
      onRestart: (cell, delayMs) => system.emit({ type: "restart", ref: cell.self, delayMs }),
      giveUp: (error) => {
        system.emit({ type: "give_up", ref: this.self, error });
        if (this.parent === undefined) system.gaveUp(this, error);
        else this.crash(error);
      },
    }, spec.supervision);
  }

  get random(): Random {
    const { path, incarnation } = this.self;
    return this.#random ??= this.world.random.fork(`${path}#${incarnation}`);
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#terminated !== undefined) this.#abort.abort(this.endedError());
    }
    return this.#abort.signal;
  }

  get info(): ActorInfo {
    return {
      ref: this.self,
      kind: this.#spec.kind ?? this.#spec.name,
      state: this.state === "stopped" ? "stopping" : this.state,
      mailboxLength: this.mailboxLength,
    };
  }

  get mailboxLength(): number {
    return this.#mailbox.length;
  }

  get beingAnswered(): number {
    return this.#answering.size;
  }

  /** Creates the actor and runs its `start`. */
  begin(): void {
    this.#system.emit({ type: "start", ref: this.self });
    let started: void | Promise<void>;
    try {
      this.#actor = this.#spec.create(this as unknown as ActorContext<never>);
      started = this.#actor.start?.();
    } catch (error) {
      this.world.macrotask(() => this.crash(error));
      return;
    }
    if (started instanceof Promise) started.then(() => this.#ready(), (error) => this.crash(error));
    else this.#ready();
  }

  /** Puts a message in the mailbox. */
  enqueue(envelope: TellEnvelope | AskEnvelope, sender: Identity): void {
    if (this.#mailbox.length >= (this.#spec.mailboxMax ?? MAILBOX_MAX)) {
      this.#system.drop(envelope, "mailbox_full");
      this.#refuse(
        envelope,
        sender,
        new LeatError(
          "resource_exhausted",
          `The mailbox of ${formatRef(this.self)} is full (${this.#mailbox.length} messages); ` +
            "ask again later",
        ),
      );
      return;
    }
    const deadlineMs = envelope.kind === "ask" ? this.world.nowMs() + envelope.timeoutMs : Infinity;
    this.#mailbox.push({ envelope, sender, deadlineMs });
    if (this.state === "running") this.#system.schedule(this);
  }

  /** Handles the oldest message. Returns whether more messages wait. */
  turn(): boolean {
    if (this.state !== "running") return false;
    const waiting = this.#mailbox.shift();
    if (waiting === undefined) return false;
    const { envelope, sender, deadlineMs } = waiting;
    if (deadlineMs <= this.world.nowMs()) {
      this.#system.drop(envelope, "expired");
      if (envelope.kind === "ask") this.answers.drop(keyOfSender(envelope, sender), envelope.id);
    } else {
      this.#system.emit({ type: "deliver", envelope });
      this.#handle(envelope, { source: envelope.source, sender, deadlineMs });
    }
    return this.#mailbox.length > 0;
  }

  /** Ends this incarnation because of an error and tells the supervisor. */
  crash(error: unknown): void {
    if (this.state === "stopping" || this.state === "stopped") return;
    const cause = LeatError.from(error, "internal");
    this.world.log("error", `${formatRef(this.self)} died: ${cause.message}`, {
      code: cause.code,
      stack: cause.stack,
    });
    this.terminate(cause).then(() => this.parent?.children.died(this, cause));
  }

  /** Ends this incarnation; a repeated call returns the promise of the first. */
  terminate(error: LeatError | undefined): Promise<void> {
    if (this.#terminated === undefined) {
      this.state = "stopping";
      this.#terminated = this.#end(error);
    }
    return this.#terminated;
  }

  tell<Q, M extends MethodOf<Q>>(target: Ref<Q>, method: M, request: RequestOf<Q, M>): void {
    if (this.state !== "stopped") this.#system.tell(this, target, method, request);
  }

  ask<Q, M extends MethodOf<Q>>(
    target: Ref<Q>,
    method: M,
    request: RequestOf<Q, M>,
    options: AskOptions,
  ): Promise<AnswerOf<Q, M>> {
    if (this.state === "stopped") return Promise.reject(this.endedError());
    return this.#system.ask(this, target, method, request, options) as Promise<AnswerOf<Q, M>>;
  }

  watch(target: Ref, down: WatchDown): () => void {
    if (this.state === "stopped") return () => {};
    return this.#system.watch(this, target, (error, end) => this.guarded(() => down(error, end)));
  }

  whenLinked(node: string, up: () => void): () => void {
    if (this.state === "stopped") return () => {};
    return this.#system.whenLinked(this, node, () => this.guarded(up));
  }

  spawn<Q>(spec: ChildSpec<Q>): FencedRef<Q> {
    return this.children.start(spec).self as FencedRef<Q>;
  }

  stopChild(name: string): Promise<void> {
    return this.children.stop(name);
  }

  child(name: string): FencedRef | undefined {
    return this.children.get(name)?.cell?.self;
  }

  timer(delayMs: number, fn: () => void): Timer {
    if (this.state === "stopping" || this.state === "stopped") return { cancel() {} };
    const timer = new CellTimer(this.#timers);
    timer.inner = this.world.timer(delayMs, () => {
      timer.end();
      this.guarded(fn);
    });
    return timer;
  }

  run(work: () => Promise<void>): void {
    const failed = (error: unknown) => {
      if (error instanceof LeatError && error.code === "cancelled") return;
      this.crash(error);
    };
    try {
      work().catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  /** Runs a callback of the actor; an error in it ends the actor. */
  guarded(fn: () => void): void {
    if (this.state === "stopped") return;
    try {
      fn();
    } catch (error) {
      this.crash(error);
    }
  }

  /** An asker has ended: forgets its answers, and drops whatever still arrives from it. */
  askerEnded(senderKey: string): void {
    this.answers.forget(senderKey);
    this.receiveMarks.close(senderKey);
  }

  /** Why this incarnation can make no more asks. */
  endedError(): LeatError {
    return this.#endedError ??= new LeatError("cancelled", `${formatRef(this.self)} has ended`);
  }

  #ready(): void {
    if (this.state !== "starting") return;
    this.state = "running";
    if (this.#mailbox.length > 0) this.#system.schedule(this);
  }

  #handle(envelope: TellEnvelope | AskEnvelope, delivery: Delivery): void {
    const { sender } = delivery;
    const handlers = this.#actor!.handlers as Handlers<
      Record<string, (request: unknown) => unknown>
    >;
    if (!Object.hasOwn(handlers, envelope.method)) {
      const what = `${formatRef(this.self)} has no method "${envelope.method}"`;
      return this.#refuse(envelope, sender, new LeatError("unimplemented", what));
    }
    const refusal = refusalBy(this.#actor!.access, envelope.method, sender);
    if (refusal !== undefined) {
      this.#system.drop(envelope, "not_permitted");
      this.#system.refused(sender, refusal);
      return this.#refuse(envelope, sender, refusal);
    }
    const checks: Readonly<Record<string, Check>> | undefined = this.#actor!.checks;
    const check = checks?.[envelope.method];
    let { body } = envelope;
    try {
      if (check !== undefined) body = check(body);
    } catch (malformed) {
      this.#system.drop(envelope, "malformed");
      return this.#refuse(envelope, sender, LeatError.from(malformed));
    }
    let answer: unknown;
    try {
      answer = handlers[envelope.method]!(body, delivery);
    } catch (error) {
      return this.#failed(envelope, sender, error);
    }
    // The request may be large: it is not kept while its answer is pending.
    if (answer instanceof Promise) this.#answerLater({ ...envelope, body: null }, sender, answer);
    else this.#reply(envelope, sender, answer);
  }

  #answerLater(
    envelope: TellEnvelope | AskEnvelope,
    sender: Identity,
    answer: Promise<unknown>,
  ): void {
    if (envelope.kind === "ask") this.#answering.set(envelope, sender);
    answer.then((body) => {
      if (envelope.kind === "ask") this.#answering.delete(envelope);
      this.#reply(envelope, sender, body);
    }, (error) => this.#failed(envelope, sender, error));
  }

  #reply(envelope: TellEnvelope | AskEnvelope, sender: Identity, body: unknown): void {
    if (envelope.kind !== "ask" || this.state === "stopped") return;
    let answer: Answer = { kind: "reply", body };
    if (envelope.settledBelow !== undefined) {
      try {
        // A copy: a repeated ask gets the same answer, even if the body is changed later.
        answer = { kind: "reply", body: copyBody(body) };
      } catch (error) {
        return this.#failed(envelope, sender, error);
      }
      this.answers.settle(keyOfSender(envelope, sender), envelope.id, answer);
    }
    this.#system.answer(this, envelope, answer);
  }

  #failed(envelope: TellEnvelope | AskEnvelope, sender: Identity, error: unknown): void {
    const failure = LeatError.from(error, "internal");
    this.#refuse(envelope, sender, failure);
    if (!(error instanceof LeatError)) this.crash(error);
  }

  /** Answers an ask with an error. A temporary error is not remembered: asking again may succeed. */
  #refuse(envelope: TellEnvelope | AskEnvelope, sender: Identity, error: LeatError): void {
    if (envelope.kind !== "ask" || this.state === "stopped") return;
    this.#answering.delete(envelope);
    const answer: Answer = { kind: "failure", error: error.toWire() };
    if (envelope.settledBelow !== undefined) {
      const { id } = envelope;
      const key = keyOfSender(envelope, sender);
      if (error.code === "unavailable" || error.code === "resource_exhausted") {
        this.answers.drop(key, id);
      } else this.answers.settle(key, id, answer);
    }
    this.#system.answer(this, envelope, answer);
  }

  async #end(error: LeatError | undefined): Promise<void> {
    this.#abort?.abort(this.endedError());
    for (const timer of [...this.#timers]) timer.cancel();
    await this.children.stopAll();
    try {
      await this.#stopActor(error);
    } catch (failure) {
      this.world.log("error", `${formatRef(this.self)} failed to stop cleanly`, {
        error: LeatError.from(failure).message,
      });
    }
    let why = error;
    const gone = () => why ??= new LeatError("unavailable", `${formatRef(this.self)} has stopped`);
    for (let left = this.#mailbox.shift(); left !== undefined; left = this.#mailbox.shift()) {
      this.#system.drop(left.envelope, "no_such_actor");
      this.#refuseAsGone(left.envelope, left.sender, gone);
    }
    // Gives handlers that waited for stop() the time to answer their requests.
    if (this.#answering.size > 0) await new Promise<void>((done) => this.world.macrotask(done));
    for (const [ask, sender] of this.#answering) this.#refuseAsGone(ask, sender, gone);
    this.#system.tellWatchers(this, gone);
    this.state = "stopped";
    this.answers.clear();
    this.#system.ended(this);
    this.#system.emit({ type: "stop", ref: this.self, error });
  }

  #refuseAsGone(
    envelope: TellEnvelope | AskEnvelope,
    sender: Identity,
    gone: () => LeatError,
  ): void {
    if (envelope.kind !== "ask") return;
    const cause = gone();
    this.#refuse(envelope, sender, new LeatError("unavailable", cause.message, { cause }));
  }

  async #stopActor(error: LeatError | undefined): Promise<void> {
    const stopped = this.#actor?.stop?.(error);
    if (!(stopped instanceof Promise)) return;
    const timeoutMs = this.#spec.stopTimeoutMs ?? STOP_TIMEOUT_MS;
    await new Promise<void>((resolve, reject) => {
      const timer = this.world.timer(
        timeoutMs,
        () => reject(new LeatError("deadline_exceeded", `stop() took longer than ${timeoutMs} ms`)),
      );
      stopped.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}

function keyOfSender({ source }: TellEnvelope | AskEnvelope, sender: Identity): string {
  return senderKeyOf(source.incarnation, sender);
}
