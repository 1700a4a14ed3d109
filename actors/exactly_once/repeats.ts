/** Answers kept until their client has acknowledged them: a lost answer loses no element. */
import { LeatError } from "../../core/error.ts";
import type { Ref } from "../runtime/ref.ts";
import type { World } from "../runtime/world.ts";
import type {
  ElementAnswer,
  ElementReaderProtocol,
  GetElementRequest,
} from "../worker/protocol.ts";
import { bytesOfAnswer, KeptAnswers } from "./kept_answers.ts";
import { Pending, repeatable } from "./pending.ts";

/**
 * How far beyond its last acknowledgement a client may request. A distance and not a count:
 * otherwise later requests could use up the answers that an earlier one waits for.
 */
export const UNACKNOWLEDGED_MAX = 1_024;
/** Bytes of one client's unacknowledged answers and open requests; more requests are refused. */
const UNACKNOWLEDGED_BYTES_MAX = 512 * 2 ** 20;
/**
 * Bytes kept for all clients of a source together. Above it, a client gets its next answer only after
 * it has acknowledged all earlier ones. So each consumer of a round can still get its part.
 */
export const ALL_UNACKNOWLEDGED_BYTES_MAX = 2 * 2 ** 30;
/** Above it, all clients wait: anyone who may read the source can make up client numbers. */
export const SOURCE_BYTES_MAX = 4 * 2 ** 30;
/** Requests of all clients of a source that wait for an answer. */
const ALL_PENDING_MAX = 131_072;
/** The most clients of a source. One identity may have as many. */
export const SOURCE_CLIENTS_MAX = 65_536;
/** Elements that a client may have requested while the size of elements is unknown. */
const UNKNOWN_MAX = 128;
/** A client idle for this long is forgotten, in ms. */
const CLIENT_IDLE_MS = 600_000;
/**
 * The same, in ms, while too much is kept: dead clients must not make others wait. A live client that
 * misses an answer repeats its request within 30 s, so a silent one has all its answers.
 */
export const PRESSED_IDLE_MS = 120_000;
/** How often idle clients are looked for while too much is kept, in ms. */
const PRESSED_SWEEP_MS = 1_000;

/**
 * Names a reader of a source: its client number and its node. So no node can take, acknowledge or end
 * what another node reads.
 */
export type ReaderId = string;

export function readerId({ node }: Ref, clientId: number): ReaderId {
  return `${clientId} ${node}`;
}

/** Shared errors: capturing a stack takes longer than refusing, and many may leave together. */
const HAS_LEFT = new LeatError("cancelled", "The client has left");
const IS_SILENT = new LeatError("aborted", "The client has sent nothing for minutes");
const ACKNOWLEDGES_EARLY = new LeatError(
  "aborted",
  "The client has acknowledged an element that it was not given",
);

/** A client that has not acknowledged everything it was given. */
export interface Awaited {
  readonly reader: ReaderId;
  readonly asker: Ref<ElementReaderProtocol>;
  /** Until when to wait for the acknowledgement, in ms. */
  readonly untilMs: number;
}

interface Client {
  readonly answers: Map<number, ElementAnswer | Pending>;
  /** Requests that wait for an earlier one still in transit, by sequence. */
  readonly early: Map<number, () => void>;
  /** Requests up to this number have come. */
  begun: number;
  acknowledged: number;
  heardMs: number;
  /** The latest requester. */
  asker: Ref<ElementReaderProtocol>;
}

export interface RepeatsOptions {
  /** Called with each answer that its client has acknowledged. */
  readonly onArrived?: (answer: ElementAnswer) => void;
  /** Called when a client has left or is forgotten. Its open requests are refused. */
  readonly onEnded?: (reader: ReaderId, why: LeatError) => void;
  /** Bytes requested and not acknowledged by one client. Default 512 MiB. */
  readonly bytesMax?: number;
}

/**
 * Produces one answer for each (reader, sequence), in order, and repeats that answer if the request
 * is repeated. If the answer is still being produced, it goes to the latest request; the earlier
 * one is refused with `aborted`.
 */
export class Repeats {
  readonly #world: World;
  readonly #options: RepeatsOptions;
  readonly #bytesMax: number;
  #given = 0;
  #givenBytes = 0;
  /** All answers that clients were given and have not acknowledged. */
  readonly #kept = new KeptAnswers();
  #pending = 0;
  readonly #clients = new Map<ReaderId, Client>();
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
   * Whether no client is given more. A source must then produce nothing, even for requests that it has
   * accepted, until clients acknowledge or leave.
   */
  get isAtLimit(): boolean {
    return this.#kept.bytes >= SOURCE_BYTES_MAX;
  }

  /**
   * The answer kept for this request, or a new one from `produce`, with the time that it took (`heldMs`).
   * @param asker The reader, which {@linkcode awaited} returns later.
   */
  answer(
    request: GetElementRequest,
    produce: () => ElementAnswer | Promise<ElementAnswer>,
    asker: Ref<ElementReaderProtocol>,
  ): ElementAnswer | Promise<ElementAnswer> {
    const askedMs = this.#world.nowMs();
    const client = this.#heard(request, asker, askedMs);
    const answer = this.#answerOnce(client, request, produce);
    if (!(answer instanceof Promise)) return answer;
    return answer.then((late) => {
      const heldMs = this.#world.nowMs() - askedMs;
      return "element" in late && heldMs > 0 ? { ...late, heldMs } : late;
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
    if (known instanceof Pending) return known.again();
    if (known !== undefined) return repeatable(known);
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
      this.#advance(client, sequence);
      return produce();
    });
    return this.#pend(client, sequence, producing);
  }

  /**
   * Bounds a client's unacknowledged answers and open requests. An open request counts as the mean size
   * of all elements given so far. A single element may have any size.
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
      `Client ${clientId} has acknowledged only the elements up to ${acknowledged}, and those ` +
        `that it has asked for since take about ${Math.round(bytes)} bytes: at most ` +
        `${this.#bytesMax} are kept for one client. Acknowledge them, or ask for fewer at a time ` +
        "(maxOutstandingRequests)",
    );
  }

  /** Bounds what is kept for all clients. A refused client asks again, which acknowledges its answers. */
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

  #gave(answer: ElementAnswer): void {
    if (!("element" in answer)) return;
    this.#given++;
    this.#givenBytes += answer.element.byteLength;
  }

  /** Clients that may lack an element or error, and sent a request in the last `patienceMs`. */
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
    this.#end(reader, HAS_LEFT);
  }

  /** Forgets a client, and refuses its open requests. */
  #end(reader: ReaderId, why: LeatError): void {
    const client = this.#clients.get(reader);
    if (client === undefined) return;
    this.#clients.delete(reader);
    for (const [sequence, answer] of [...client.answers]) {
      this.#drop(client, sequence);
      if (answer instanceof Pending) answer.asked.reject(why);
    }
    this.#options.onEnded?.(reader, why);
  }

  #keep(client: Client, sequence: number, answer: ElementAnswer): void {
    this.#drop(client, sequence);
    client.answers.set(sequence, answer);
    this.#kept.add(answer);
  }

  /** Returns the dropped answer, if it was given. */
  #drop({ answers }: Client, sequence: number): ElementAnswer | undefined {
    const answer = answers.get(sequence);
    if (answer === undefined) return undefined;
    answers.delete(sequence);
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
    this.#gave(answer);
    this.#keep(client, sequence, answer);
    return answer;
  }

  /** Handles the next request now, if it arrived before the one with this number. */
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
        this.#gave(answer);
        if (answers.has(sequence)) this.#keep(client, sequence, answer);
        pending.asked.resolve(answer);
      },
      (error) => {
        this.#drop(client, sequence);
        pending.asked.reject(error);
      },
    );
    return pending.asked.promise;
  }

  #heard(request: GetElementRequest, asker: Ref<ElementReaderProtocol>, now: number): Client {
    const reader = readerId(asker as Ref, request.clientId);
    let client = this.#clients.get(reader);
    if (client === undefined) {
      this.#checkClients(now);
      const [answers, early] = [new Map(), new Map()];
      client = { answers, early, begun: 0, acknowledged: 0, heardMs: now, asker };
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

  /** @throws {LeatError} `aborted` if the client has not been given all this. It is forgotten then. */
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
   * Forgets the answers after `from` up to `to`. Takes as many steps as there are numbers or answers,
   * whichever are fewer. False if an answer is still being produced: a client cannot have got it.
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
   * Forgets idle clients. A client that waits for an answer may send nothing, so it does not count as
   * idle. It does while too much is kept: its answer may not be produced, and a live client repeats.
   */
  #sweep(now: number): void {
    const isPressed = this.isFull || this.#clients.size >= SOURCE_CLIENTS_MAX;
    if (now - this.#sweptMs < (isPressed ? PRESSED_SWEEP_MS : CLIENT_IDLE_MS)) return;
    this.#sweptMs = now;
    const idleMs = isPressed ? PRESSED_IDLE_MS : CLIENT_IDLE_MS;
    for (const [reader, { answers, heardMs }] of this.#clients) {
      if (now - heardMs <= idleMs) continue;
      const waits = answers.values().some((answer) => answer instanceof Pending);
      if (isPressed || !waits) this.#end(reader, IS_SILENT);
    }
  }
}

/** Whether a client that has not received the answer lacks an element or error. */
function isMissed(answer: ElementAnswer | Pending): boolean {
  return !(answer instanceof Pending) && ("element" in answer || answer.kind === "error");
}
