/**
 * Keeps each answer until its client has acknowledged it, so that a lost answer loses no element.
 */
import { LeatError } from "../../core/error.ts";
import type { Ref } from "../runtime/ref.ts";
import type { World } from "../runtime/world.ts";
import type {
  ElementAnswer,
  ElementReaderProtocol,
  GetElementRequest,
} from "../worker/protocol.ts";
import { bytesOfAnswer, KeptAnswers } from "./kept_answers.ts";
import { Pending, repeatable, REQUEST_REPEATED } from "./pending.ts";

/**
 * A client may request elements at most this far beyond the last acknowledged one. If the number of
 * kept answers were limited instead, later requests could block an earlier one that was lost.
 */
export const UNACKNOWLEDGED_MAX = 1_024;
/** Limit of the bytes of one client's unacknowledged answers and open requests. */
const UNACKNOWLEDGED_BYTES_MAX = 512 * 2 ** 20;
/**
 * Limit of the bytes kept for all clients of a source together. Above it, a client gets an answer
 * only after it has acknowledged all earlier ones. So each consumer of a round can still get its
 * part.
 */
export const ALL_UNACKNOWLEDGED_BYTES_MAX = 2 * 2 ** 30;
/** Above this, no client gets an answer: whoever may read the source can invent client ids. */
export const SOURCE_BYTES_MAX = 4 * 2 ** 30;
/** Limit of the requests that wait for an answer, over all clients of a source. */
const ALL_PENDING_MAX = 131_072;
/** Limit of the clients of a source: the default limit of one identity's clients. */
export const SOURCE_CLIENTS_MAX = 65_536;
/** A client may have about this many open requests before any element's size is known. */
const UNKNOWN_MAX = 128;
/** A client idle for this long is forgotten, in ms. */
const CLIENT_IDLE_MS = 600_000;
/**
 * While too much is kept, a client idle for this long is forgotten, in ms: a dead one must not
 * block others. A live client that lacks an answer repeats its request within a minute. So a client
 * that is silent for longer has all its answers, or is dead.
 */
export const PRESSED_IDLE_MS = 120_000;
/** Limit of the forgotten clients whose lost answers a source remembers. */
const FORGOTTEN_MAX = 1_024;
/** Interval of the search for idle clients while too much is kept, in ms. */
const PRESSED_SWEEP_MS = 1_000;

/**
 * Identifies a reader of a source by its client id and its node. So no node can take, acknowledge
 * or end what another node reads.
 */
export type ReaderId = string;

export function readerId({ node }: Ref, clientId: number): ReaderId {
  return `${clientId} ${node}`;
}

/** Shared errors: capturing a stack takes longer than refusing, and many may leave together. */
const HAS_LEFT = new LeatError("cancelled", "The client has left");
const HAS_ARRIVED = new LeatError("aborted", "The client has acknowledged this element");
const IS_SILENT = new LeatError("aborted", "The client has sent nothing for minutes");
const ACKNOWLEDGES_EARLY = new LeatError(
  "aborted",
  "The client has acknowledged an element that it was not given",
);

/** A client that has not acknowledged all its elements. */
export interface Awaited {
  readonly reader: ReaderId;
  readonly asker: Ref<ElementReaderProtocol>;
  /** Until when to wait for the acknowledgement, in ms. */
  readonly untilMs: number;
}

interface Client {
  readonly answers: Map<number, ElementAnswer | Pending>;
  /** Starts a request that arrived before an earlier one, by its sequence. */
  readonly early: Map<number, () => void>;
  /** The latest patient request for a given answer, by its sequence. */
  readonly patient: Map<number, PromiseWithResolvers<ElementAnswer>>;
  /** All requests up to this number have started or were acknowledged. */
  begun: number;
  acknowledged: number;
  /** Answers up to this one were dropped when the client was forgotten. */
  readonly lostUpTo: number;
  heardMs: number;
  /** The latest requester. */
  asker: Ref<ElementReaderProtocol>;
}

export interface RepeatsOptions {
  /** Called with each answer that its client has acknowledged. */
  readonly onArrived?: (answer: ElementAnswer) => void;
  /** Called when a client has left or is forgotten. Its open requests are refused. */
  readonly onEnded?: (reader: ReaderId, why: LeatError) => void;
  /**
   * Whether a client that was forgotten and comes back is refused what it was given and did not
   * acknowledge. Otherwise it would get later elements instead, without notice.
   */
  readonly refusesLost?: boolean;
  /** Limit of the bytes that one client has requested and not acknowledged. Default 512 MiB. */
  readonly bytesMax?: number;
}

/**
 * Produces one answer for each (reader, sequence), in order, and gives it again if the request is
 * repeated. If the answer is still in production, the repeated request will get it, and the earlier
 * request is refused with `aborted`.
 */
export class Repeats {
  readonly #world: World;
  readonly #options: RepeatsOptions;
  readonly #bytesMax: number;
  /** Elements given so far, and their bytes, for the mean size. */
  #given = 0;
  #givenBytes = 0;
  /** Given answers that are not acknowledged. */
  readonly #kept = new KeptAnswers();
  #pending = 0;
  readonly #clients = new Map<ReaderId, Client>();
  /** Of forgotten clients, the oldest first: the last answer that was dropped. */
  readonly #lost = new Map<ReaderId, number>();
  #sweptMs: number;

  constructor(world: World, options: RepeatsOptions = {}) {
    this.#world = world;
    this.#options = options;
    this.#bytesMax = options.bytesMax ?? UNACKNOWLEDGED_BYTES_MAX;
    this.#sweptMs = world.nowMs();
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** Whether so much is unacknowledged that no more should be produced. */
  get isFull(): boolean {
    return this.#kept.bytes >= ALL_UNACKNOWLEDGED_BYTES_MAX;
  }

  /**
   * Whether no client gets an answer. A source must then produce nothing, even for accepted
   * requests, until clients acknowledge or leave.
   */
  get isAtLimit(): boolean {
    return this.#kept.bytes >= SOURCE_BYTES_MAX;
  }

  /**
   * The answer kept for this request, or a new one from `produce`. `heldMs` in an element's answer
   * is the time that the request waited.
   * @param asker The reader's actor, which {@linkcode awaited} returns later.
   */
  answer(
    request: GetElementRequest,
    produce: () => ElementAnswer | Promise<ElementAnswer>,
    asker: Ref<ElementReaderProtocol>,
  ): ElementAnswer | Promise<ElementAnswer> {
    const askedMs = this.#world.nowMs();
    const client = this.#noteRequest(request, asker, askedMs);
    const answer = this.#answerOnce(client, request, produce);
    if (!(answer instanceof Promise)) return answer;
    return answer.then((produced) => {
      const heldMs = this.#world.nowMs() - askedMs;
      return "element" in produced && heldMs > 0 ? { ...produced, heldMs } : produced;
    });
  }

  #answerOnce(
    client: Client,
    request: GetElementRequest,
    produce: () => ElementAnswer | Promise<ElementAnswer>,
  ): ElementAnswer | Promise<ElementAnswer> {
    const { sequence } = request;
    if (sequence <= client.acknowledged) {
      throw new LeatError(
        "aborted",
        `Client ${request.clientId} asks for element ${sequence} again, which it has acknowledged`,
      );
    }
    const known = client.answers.get(sequence);
    if (known instanceof Pending) return known.repeat();
    if (known !== undefined) {
      return request.patient === true ? this.#wait(client, sequence) : repeatable(known);
    }
    if (sequence <= client.lostUpTo) throw lostError(request);
    if (sequence > client.acknowledged + UNACKNOWLEDGED_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `Client ${request.clientId} asks for element ${sequence}, but has acknowledged only those up ` +
          `to ${client.acknowledged}: at most ${UNACKNOWLEDGED_MAX} are kept`,
      );
    }
    this.#checkBytes(client, request);
    this.#checkAll(client, sequence);
    if (sequence <= client.begun + 1) return this.#begin(client, sequence, produce);
    const turn = new Promise<void>((resolve) => client.early.set(sequence, resolve));
    const producing = turn.then(() => {
      // The client may have left since its turn came: then it must take no element.
      if (!client.answers.has(sequence)) throw HAS_LEFT;
      this.#advance(client, sequence);
      return produce();
    });
    return this.#pend(client, sequence, producing);
  }

  /** Holds a patient request for a given answer until the answer is dropped. */
  #wait({ patient }: Client, sequence: number): Promise<ElementAnswer> {
    patient.get(sequence)?.reject(REQUEST_REPEATED);
    const waiting = Promise.withResolvers<ElementAnswer>();
    patient.set(sequence, waiting);
    return waiting.promise;
  }

  /**
   * Limits a client's unacknowledged answers and open requests. An open request counts as one
   * element of mean size. A client without others may request an element of any size.
   */
  #checkBytes({ answers, acknowledged }: Client, { clientId }: GetElementRequest): void {
    const mean = this.#given === 0 ? this.#bytesMax / UNKNOWN_MAX : this.#givenBytes / this.#given;
    if (answers.size === 0 || (answers.size + 1) * mean <= this.#bytesMax / 4) return;
    let bytes = mean;
    for (const answer of answers.values()) {
      bytes += answer instanceof Pending ? mean : bytesOfAnswer(answer);
    }
    if (bytes <= this.#bytesMax) return;
    throw new LeatError(
      "resource_exhausted",
      `Client ${clientId} has acknowledged only the elements up to ${acknowledged}, and the ` +
        `elements that it has requested since take about ${Math.round(bytes)} bytes: at most ` +
        `${this.#bytesMax} are kept for one client. Acknowledge them, or request fewer at a time ` +
        "(maxOutstandingRequests)",
    );
  }

  /**
   * Limits what is kept for all clients. A refused client asks again, and so acknowledges its
   * answers.
   */
  #checkAll({ acknowledged }: Client, sequence: number): void {
    // Above the lower limit, a client gets only the element after the last acknowledged one.
    const isNext = sequence === acknowledged + 1;
    const bytesMax = isNext ? SOURCE_BYTES_MAX : ALL_UNACKNOWLEDGED_BYTES_MAX;
    if (this.#kept.bytes < bytesMax && this.#pending < ALL_PENDING_MAX) return;
    throw new LeatError(
      "resource_exhausted",
      `The clients of this task have not acknowledged ${this.#kept.bytes} bytes, and ` +
        `${this.#pending} of their requests wait: at most ${bytesMax} bytes and ` +
        `${ALL_PENDING_MAX} requests are kept. Ask again later`,
    );
  }

  #countGiven(answer: ElementAnswer): void {
    if (!("element" in answer)) return;
    this.#given++;
    this.#givenBytes += answer.element.byteLength;
  }

  /** Whether the client has sent a request in the last `patienceMs`, and has not left. */
  hasHeard(reader: ReaderId, patienceMs: number): boolean {
    const client = this.#clients.get(reader);
    return client !== undefined && client.heardMs + patienceMs > this.#world.nowMs();
  }

  /** Clients that may lack an element or error and have sent a request in the last `patienceMs`. */
  awaited(patienceMs: number): readonly Awaited[] {
    const nowMs = this.#world.nowMs();
    const awaited: Awaited[] = [];
    for (const [reader, { answers, heardMs, asker }] of this.#clients) {
      const untilMs = heardMs + patienceMs;
      if (untilMs <= nowMs || !answers.values().some(isMissed)) continue;
      awaited.push({ reader, asker, untilMs });
    }
    return awaited;
  }

  /** All answers up to this sequence have arrived. */
  acknowledge(reader: ReaderId, sequence: number): void {
    const client = this.#clients.get(reader);
    if (client !== undefined) this.#acknowledged(reader, client, sequence);
  }

  leave(reader: ReaderId): void {
    this.#lost.delete(reader);
    this.#end(reader, HAS_LEFT);
  }

  /** Forgets a client, and refuses its open requests. */
  #end(reader: ReaderId, why: LeatError): void {
    const client = this.#clients.get(reader);
    if (client === undefined) return;
    this.#clients.delete(reader);
    for (const [sequence, answer] of [...client.answers]) {
      this.#drop(client, sequence);
      if (answer instanceof Pending) answer.latest.reject(why);
    }
    this.#options.onEnded?.(reader, why);
  }

  #keep(client: Client, sequence: number, answer: ElementAnswer): void {
    this.#drop(client, sequence);
    client.answers.set(sequence, answer);
    this.#kept.add(answer);
  }

  /** Returns the dropped answer, if it was given. */
  #drop({ answers, patient }: Client, sequence: number): ElementAnswer | undefined {
    const answer = answers.get(sequence);
    if (answer === undefined) return undefined;
    answers.delete(sequence);
    patient.get(sequence)?.reject(HAS_ARRIVED);
    patient.delete(sequence);
    if (answer instanceof Pending) {
      this.#pending--;
      return undefined;
    }
    this.#kept.remove(answer);
    return answer;
  }

  #begin(
    client: Client,
    sequence: number,
    produce: () => ElementAnswer | Promise<ElementAnswer>,
  ): ElementAnswer | Promise<ElementAnswer> {
    this.#advance(client, sequence);
    const answer = produce();
    if (answer instanceof Promise) return this.#pend(client, sequence, answer);
    this.#countGiven(answer);
    this.#keep(client, sequence, answer);
    return answer;
  }

  /** Notes that this request has started. Starts the one after it, if that has already arrived. */
  #advance(client: Client, sequence: number): void {
    client.begun = Math.max(client.begun, sequence);
    const next = client.early.get(client.begun + 1);
    client.early.delete(client.begun + 1);
    next?.();
  }

  #pend(
    client: Client,
    sequence: number,
    producing: Promise<ElementAnswer>,
  ): Promise<ElementAnswer> {
    const pending = new Pending();
    const { answers } = client;
    answers.set(sequence, pending);
    this.#pending++;
    producing.then(
      (answer) => {
        this.#countGiven(answer);
        if (answers.has(sequence)) this.#keep(client, sequence, answer);
        pending.latest.resolve(answer);
      },
      (error) => {
        this.#drop(client, sequence);
        pending.latest.reject(error);
      },
    );
    return pending.latest.promise;
  }

  #noteRequest(request: GetElementRequest, asker: Ref<ElementReaderProtocol>, now: number): Client {
    const reader = readerId(asker as Ref, request.clientId);
    let client = this.#clients.get(reader);
    if (client === undefined) {
      this.#checkClients(now);
      const maps = { answers: new Map(), early: new Map(), patient: new Map() };
      const lostUpTo = this.#lost.get(reader) ?? 0;
      this.#lost.delete(reader);
      client = { ...maps, begun: lostUpTo, acknowledged: 0, lostUpTo, heardMs: now, asker };
      this.#clients.set(reader, client);
    }
    client.asker = asker;
    client.heardMs = now;
    this.#sweep(now);
    this.#acknowledged(reader, client, request.acknowledged);
    return client;
  }

  #checkClients(now: number): void {
    if (this.#clients.size < SOURCE_CLIENTS_MAX) return;
    this.#sweep(now);
    if (this.#clients.size < SOURCE_CLIENTS_MAX) return;
    throw new LeatError(
      "resource_exhausted",
      `${this.#clients.size} clients read this task, which is the limit: ask again later`,
    );
  }

  /**
   * Drops the acknowledged answers.
   * @throws {LeatError} `aborted` if one of them was not given yet. The client is then forgotten.
   */
  #acknowledged(reader: ReaderId, client: Client, sequence: number): void {
    if (sequence <= client.acknowledged) return;
    if (!this.#forget(client, client.acknowledged, sequence)) {
      this.#end(reader, ACKNOWLEDGES_EARLY);
      throw ACKNOWLEDGES_EARLY;
    }
    client.acknowledged = sequence;
    this.#advance(client, sequence);
  }

  /**
   * Drops the answers after `from` up to `to`. Loops over the numbers or over the kept answers,
   * whichever are fewer. False if an answer is still in production: the client cannot have received
   * it.
   */
  #forget(client: Client, from: number, to: number): boolean {
    const { answers } = client;
    const forget = (sequence: number) => {
      if (answers.get(sequence) instanceof Pending) return false;
      const answer = this.#drop(client, sequence);
      if (answer !== undefined) this.#options.onArrived?.(answer);
      return true;
    };
    if (to - from <= answers.size) {
      for (let sequence = from + 1; sequence <= to; sequence++) {
        if (!forget(sequence)) return false;
      }
      return true;
    }
    return [...answers.keys()].every((sequence) => sequence > to || forget(sequence));
  }

  /**
   * Forgets idle clients. A client that waits for an answer may send nothing, so it is not idle.
   * While too much is kept it is: its answer may never be produced, and a live client repeats its
   * request.
   */
  #sweep(now: number): void {
    const isPressed = this.isFull || this.#clients.size >= SOURCE_CLIENTS_MAX;
    if (now - this.#sweptMs < (isPressed ? PRESSED_SWEEP_MS : CLIENT_IDLE_MS)) return;
    this.#sweptMs = now;
    const idleMs = isPressed ? PRESSED_IDLE_MS : CLIENT_IDLE_MS;
    for (const [reader, client] of this.#clients) {
      if (now - client.heardMs <= idleMs) continue;
      const waits = client.answers.values().some((answer) => answer instanceof Pending);
      if (!isPressed && waits) continue;
      this.#noteLost(reader, client);
      this.#end(reader, IS_SILENT);
    }
  }

  /** Remembers the last item that a client is about to lose, or had lost before. */
  #noteLost(reader: ReaderId, { answers, lostUpTo }: Client): void {
    if (this.#options.refusesLost !== true) return;
    let last = lostUpTo;
    for (const [sequence, answer] of answers) if (isItem(answer)) last = Math.max(last, sequence);
    if (last === 0) return;
    this.#lost.set(reader, last);
    if (this.#lost.size > FORGOTTEN_MAX) this.#lost.delete(this.#lost.keys().next().value!);
  }
}

/**
 * An `onArrived` for a source that gives each element to one client: frees or reuses its memory. The
 * request is never answered again, and a client that restores gets elements that are produced anew.
 */
export function releaseArrived(answer: ElementAnswer): void {
  if ("element" in answer) answer.element.release();
}

/** Whether a client that has not received the answer lacks an element or error. */
function isMissed(answer: ElementAnswer | Pending): boolean {
  return !(answer instanceof Pending) && ("element" in answer || answer.kind === "error");
}

/** Whether the answer holds a part of the data, of which each part is given once. */
function isItem(answer: ElementAnswer | Pending): boolean {
  return !(answer instanceof Pending) && answer.kind !== "later" && answer.kind !== "end" &&
    answer.kind !== "skip";
}

function lostError({ clientId, sequence }: GetElementRequest): LeatError {
  return new LeatError(
    "aborted",
    `Client ${clientId} sent nothing to this task for minutes, so the task has dropped element ` +
      `${sequence}, which it had sent but which did not arrive. The network between them was ` +
      "probably cut off. Restore the readers of this job from what they saved, or begin again",
  );
}
