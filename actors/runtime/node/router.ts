/** Chooses the link to a node. */
import { LeatError } from "../../../core/error.ts";
import { copyBody } from "../body.ts";
import type { Envelope } from "../envelope.ts";
import type { Identity } from "../identity.ts";
import { closedThere, type Connector, type Link, type NodeId, unknownNode } from "../link.ts";

/** Limit of the envelopes per node that wait for a link to open; more are lost. */
const WAITING_MAX = 1_024;
/**
 * While a link holds more unsent bytes than this, further envelopes are lost. Credit keeps senders
 * of elements far below.
 */
const BUFFERED_BYTES_MAX = 1 << 30;
/** If two nodes dial each other at the same time, their links open within this time, in ms. */
const DIALLING_MS_MAX = 10_000;

/** The router's callbacks to its node. */
interface RouterOwner {
  readonly id: NodeId;
  nowMs(): number;
  receive(envelope: Envelope, sender: Identity): void;
  /** The envelopes could not be sent. */
  unreachable(envelopes: readonly Envelope[], error: LeatError): void;
  refused(envelope: Envelope, error: LeatError): void;
  /** A node of this identity got no link. */
  notAdmitted(identity: Identity, error: LeatError): void;
  /** The first link to the node is open, and envelopes that waited for it are sent. */
  linkUp(node: string): void;
  /** A link to this incarnation of the node is lost, at one end at least; another one is left. */
  linkChanged(node: string, error: LeatError): void;
  /** The last link to this incarnation of the node is lost. */
  linkDown(node: string, error: LeatError): void;
}

/** How a node reaches nodes that it has no link to. */
export interface Dialling {
  readonly connector?: Connector;
  /** Whether a node may be dialled, by its name. Default: all may. */
  readonly mayDial?: (node: string) => boolean;
}

/**
 * Sends envelopes over the links of one node, and opens links. It opens none for an answer: connecting
 * nodes choose their own names, and must not make this node dial an address.
 */
export class Router {
  readonly #owner: RouterOwner;
  readonly #dialling: Dialling;
  /** Links by remote node; the first is used for sending, so that order is kept. */
  readonly #links = new Map<string, Link[]>();
  /** When the links that this node dialled were opened. */
  readonly #dialledAtMs = new WeakMap<Link, number>();
  readonly #waiting = new Map<string, Envelope[]>();
  readonly #stopping = new AbortController();

  constructor(owner: RouterOwner, dialling: Dialling) {
    this.#owner = owner;
    this.#dialling = dialling;
  }

  get nodes(): string[] {
    return [...this.#links.keys()];
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  isLinked(node: string): boolean {
    return this.#links.has(node);
  }

  /**
   * Adds a link that another node opened. That node chooses its own name. If another identity has a
   * link with the same name, the new one is refused: it would receive the messages of the other.
   */
  attach(link: Link): void {
    const { remote: { node }, identity } = link;
    const { name, role } = identity;
    const other = this.#links.get(node)?.find((known) => known.identity.name !== name);
    if (other === undefined || role === "admin") return this.#take(link);
    const why =
      `The node's name "${node}" is that of "${other.identity.name}", and this is "${name}": ` +
      "each node has a name of its own. Give this one another (a worker's is its address: " +
      "--advertise), or end the other one";
    const error = new LeatError("permission_denied", why);
    this.#owner.notAdmitted(identity, error);
    link.close(error);
  }

  /** A link from a new incarnation of a node replaces those of earlier ones. */
  #take(link: Link): void {
    const { node, incarnation } = link.remote;
    if (this.#isStopped) return link.close(new LeatError("cancelled", "This node has stopped"));
    const earlier = (this.#links.get(node) ?? []).filter((other) =>
      other.remote.incarnation !== incarnation
    );
    for (const other of earlier) {
      const error = new LeatError("unavailable", `${node} has restarted`);
      other.close(error);
      this.#detach(other, closedThere(error));
    }
    const links = this.#links.get(node);
    const replaces = links !== undefined && this.#hasLost(links[0]!, link);
    if (links === undefined) this.#links.set(node, [link]);
    else if (replaces) links.unshift(link);
    else links.push(link);
    link.closed.then((error) => this.#detach(link, error));
    // Waiting envelopes first: an answer to an incoming request must not overtake them.
    this.#flush(node, link);
    if (links === undefined) this.#owner.linkUp(node);
    if (replaces) this.#owner.linkChanged(node, unavailable(node, "it has lost its connection"));
    link.start((envelope) => this.#owner.receive(envelope, link.identity));
  }

  /**
   * Whether the other node has lost a link that seems open here, as after a reset by a device between
   * the nodes: it has dialled `next`, and a node with a link does not dial. The lost link stays, because
   * that node may also have dialled this one by two names.
   */
  #hasLost(link: Link, next: Link): boolean {
    if (this.#dialledAtMs.has(next)) return false;
    const dialledAtMs = this.#dialledAtMs.get(link);
    return dialledAtMs === undefined || this.#owner.nowMs() - dialledAtMs > DIALLING_MS_MAX;
  }

  /**
   * Sends an envelope, or calls `unreachable` for it. `senderKeepsBody`: the sender keeps the body.
   * @throws LeatError when the link cannot carry the envelope.
   */
  send(envelope: Envelope, senderKeepsBody: boolean): void {
    const node = envelope.target.node;
    const link = this.#links.get(node)?.[0];
    if (link !== undefined) this.#sendOver(link, envelope, senderKeepsBody);
    else this.#sendLater(node, envelope, senderKeepsBody);
  }

  /** Closes all links and waits until they are released. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const error = new LeatError("cancelled", "The node at the other end has stopped");
    const links = [...this.#links.values()].flat();
    for (const link of links) link.close(error);
    this.#links.clear();
    this.#waiting.clear();
    await Promise.all(links.map((link) => link.released));
  }

  #sendOver(link: Link, envelope: Envelope, senderKeepsBody: boolean): void {
    const { node } = link.remote;
    if (link.bufferedBytes > BUFFERED_BYTES_MAX) {
      const why = `${link.bufferedBytes} bytes already wait for it`;
      this.#owner.unreachable([envelope], unavailable(node, why));
    } else if (!link.send(envelope, senderKeepsBody) && envelope.kind !== "watch") {
      // Watches end when the link is detached, which is imminent: then it is known why it closed.
      this.#owner.unreachable([envelope], unavailable(node, "the link has closed"));
    }
  }

  #sendLater(node: string, envelope: Envelope, senderKeepsBody: boolean): void {
    const waiting = this.#waiting.get(node);
    if (waiting === undefined && (this.#isStopped || !this.#mayDial(envelope))) {
      this.#owner.unreachable([envelope], this.#whyNotDialled(node));
      return;
    }
    if (waiting !== undefined && waiting.length >= WAITING_MAX) {
      const why = `${WAITING_MAX} messages already wait for a link`;
      this.#owner.unreachable([envelope], unavailable(node, why));
      return;
    }
    // A copy: the sender may change the body before the link is open.
    const snapshot = "body" in envelope
      ? { ...envelope, body: copyBody(envelope.body, senderKeepsBody) }
      : envelope;
    if (waiting !== undefined) waiting.push(snapshot);
    else this.#dial(node, snapshot);
  }

  #mayDial({ kind, target }: Envelope): boolean {
    const { connector, mayDial } = this.#dialling;
    const isAnswer = kind === "reply" || kind === "failure" || kind === "down";
    return connector !== undefined && !isAnswer && mayDial?.(target.node) !== false;
  }

  #whyNotDialled(node: string): LeatError {
    const { connector, mayDial } = this.#dialling;
    return connector === undefined || mayDial?.(node) !== false
      ? unavailable(node, "there is no link to it")
      : unknownNode(
        `"${node}" is not dialled: it has not registered here, and has no link to this node`,
      );
  }

  #dial(node: string, first: Envelope): void {
    const waiting = [first];
    this.#waiting.set(node, waiting);
    const { signal } = this.#stopping;
    this.#dialling.connector!.connect(node, this.#owner.id, signal).then(
      (link) => {
        this.#dialledAtMs.set(link, this.#owner.nowMs());
        this.#take(link);
      },
      (error) => {
        // They may have been sent over another link since, and others wait for a later dial.
        if (this.#waiting.get(node) !== waiting) return;
        this.#waiting.delete(node);
        if (!this.#isStopped) {
          this.#owner.unreachable(waiting, LeatError.from(error, "unavailable"));
        }
      },
    );
  }

  #flush(node: string, link: Link): void {
    const waiting = this.#waiting.get(node);
    if (waiting === undefined) return;
    this.#waiting.delete(node);
    const first = this.#links.get(node)?.[0] ?? link;
    for (const envelope of waiting) {
      try {
        this.#sendOver(first, envelope, false);
      } catch (error) {
        this.#owner.refused(envelope, LeatError.from(error, "internal"));
      }
    }
  }

  #detach(link: Link, error: LeatError): void {
    const { node } = link.remote;
    const links = this.#links.get(node);
    const at = links?.indexOf(link) ?? -1;
    if (links === undefined || at < 0) return;
    links.splice(at, 1);
    if (links.length === 0) this.#links.delete(node);
    if (this.#isStopped) return;
    if (links.length === 0) this.#owner.linkDown(node, error);
    else this.#owner.linkChanged(node, error);
  }
}

function unavailable(node: string, why: string): LeatError {
  return new LeatError("unavailable", `Cannot reach ${node}: ${why}`);
}
