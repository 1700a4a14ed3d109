/** A holder of a token that speaks the protocol by hand: it sends, reads and omits what it likes. */
import { DenoWorld } from "../../platform/deno_world.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { writeHello } from "../../transport/hello.ts";
import { dialSocket } from "../../transport/web_socket/connector.ts";
import { FRAME, readBatch, writeAck } from "../../transport/web_socket/frames.ts";
import type { Socket } from "../../transport/web_socket/socket.ts";
import { DiallerSide, type Target } from "../../transport/web_socket/tokens/proof.ts";

/** A message that it received, decoded. */
export type RawMessage = Readonly<Record<string, unknown>>;

export class RawNode implements AsyncDisposable {
  /** Messages that came whole; parts of larger ones only count as bytes. */
  readonly messages: RawMessage[] = [];
  readonly node = `raw-${crypto.randomUUID()}`;
  readonly incarnation = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
  readonly #socket: Socket;
  readonly #service: string;
  /** Bytes of frames that have come, but for those that nobody acknowledges. */
  bytes = 0;
  isClosed = false;
  #asked = 0;

  private constructor(socket: Socket, service: string) {
    this.#socket = socket;
    this.#service = service;
    socket.listen({
      message: (data) => this.#take(data as Uint8Array),
      closed: () => this.isClosed = true,
    });
  }

  /** Connects and proves a token, and says nothing else. */
  static async prove(
    service: string,
    token: string,
    target: Target = "service",
  ): Promise<RawNode> {
    const socket = await dialSocket({
      world: new DenoWorld({ logLevel: "off" }),
      url: new URL(service),
      side: new DiallerSide(token, target, service),
      ca: undefined,
      signal: new AbortController().signal,
    });
    return new RawNode(socket, service);
  }

  /** Connects, proves a token, and says hello. */
  static async link(service: string, token: string, messageBytesMax = 2 ** 30): Promise<RawNode> {
    const raw = await RawNode.prove(service, token);
    raw.hello(messageBytesMax);
    return raw;
  }

  /** Whether the system has accepted all that was sent. */
  get isSent(): boolean {
    return this.#socket.bufferedAmount === 0;
  }

  hello(messageBytesMax = 2 ** 30): void {
    const { node, incarnation } = this;
    this.send(writeHello({ role: "dialler", node, incarnation, messageBytesMax }));
  }

  send(frame: Uint8Array): void {
    this.#socket.send(frame);
  }

  /** The bytes of a request. */
  asking(method: string, body: unknown, path = "/dispatcher"): Uint8Array {
    const number = ++this.#asked;
    const { node, incarnation } = this;
    return encodeMessage({
      kind: "ask",
      source: { node, path: "/raw", incarnation: `${incarnation}-1` },
      target: { node: this.#service, path },
      ...{ number, id: number, method, body, timeoutMs: 600_000 },
    });
  }

  /** The code of the goodbye, if there was one. */
  get goodbye(): string | undefined {
    const bye = this.messages.find(({ kind }) => kind === "bye");
    return bye === undefined ? undefined : (bye.error as { code: string }).code;
  }

  /** Acknowledges all that has come. */
  acknowledge(): void {
    this.send(writeAck(this.bytes));
  }

  /** The numbers of the requests that were answered, whether well or not, in whole messages. */
  answered(kind: "reply" | "failure"): number[] {
    return this.messages.flatMap((message) => message.kind === kind ? [Number(message.id)] : []);
  }

  #take(data: Uint8Array): void {
    const [kind] = data;
    // It lives, although it may not read.
    if (kind === FRAME.PING) return this.send(Uint8Array.of(FRAME.PONG));
    if (kind === FRAME.ACK || kind === FRAME.PONG) return;
    const isFirst = this.messages.length === 0;
    if (kind === FRAME.MESSAGE) this.messages.push(decodeMessage(data) as RawMessage);
    else if (kind === FRAME.BATCH) {
      readBatch(data, (message) => this.messages.push(decodeMessage(message) as RawMessage));
    }
    // A hello is no frame of the link.
    if (!isFirst) this.bytes += data.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.drop();
    await this.#socket.released;
  }
}
