/** A part of a foreign pipeline, in the process started to run it. */
import { RandomStream } from "../../core/philox.ts";
import { IteratorContext } from "../context.ts";
import { PartHost } from "./foreign.ts";
import type { ForeignPart, OpenInput, RemoteElements, ServedElements } from "./foreign_runners.ts";
import type { Host } from "../host.ts";
import type { ElementIterator } from "../iterator.ts";
import { type DatasetNode, registerNode } from "../node.ts";
import { PART_INPUT, PartInputNode } from "./part_input.ts";
import { RemoteIterator } from "./remote_iterator.ts";
import { restoreShared, saveShared } from "../checkpoint/shared_state.ts";
import { EncodedValue, encodeValue } from "../elements/value_codec.ts";
import { deserializeGraph } from "../wire.ts";

/** Shared state up to this size, in bytes, is passed to later iterations. A larger cache is filled again. */
const SHARED_BYTES_MAX = 256 * 2 ** 20;

/** Registers the node kind of parts. The program that runs in a confined process calls this once. */
export function provideParts(): void {
  registerNode(PART_INPUT, {
    fromWire: (attributes, below) => new PartInputNode(attributes, below),
  });
}

/** A part that runs in this process. It may call its functions, because the process has no permissions. */
export class OpenedPart implements ServedElements {
  readonly elements: ElementIterator;
  readonly #node: DatasetNode;
  readonly #context: IteratorContext;
  /** Whether `news()` was not called yet. */
  #isFirst = true;

  constructor(part: ForeignPart, host: Host, openInput: OpenInput<Promise<RemoteElements>>) {
    this.#node = deserializeGraph(part.graph, { isOwn: true });
    connect(this.#node, openInput);
    this.#context = contextOf(part, this.#node, host);
    if (part.shared !== undefined) {
      const shared = new EncodedValue(part.shared).read({ isOwn: true });
      restoreShared(this.#node, shared, this.#context);
      this.#context.endRestoring(true);
    }
    this.elements = this.#context.makeIterator();
  }

  async save(): Promise<Uint8Array> {
    try {
      const state = await this.elements.save();
      return encodeValue({ state, shared: saveShared(this.#node, this.#context) });
    } finally {
      this.#context.pause.end();
    }
  }

  async restore(bytes: Uint8Array): Promise<void> {
    const saved = new EncodedValue(bytes).read({ isOwn: true }) as Record<string, unknown>;
    restoreShared(this.#node, saved["shared"], this.#context);
    await this.elements.restore(saved["state"]);
    this.#context.endRestoring(true);
  }

  /** Reports shared state at the first step, when seeds are drawn, and at the end, when caches are full. */
  news(isEnd: boolean): { readonly isShare?: boolean; readonly shared?: Uint8Array } {
    const isShare = isEnd && this.#context.sharedReads > 0 ? { isShare: true } : {};
    if (!this.#isFirst && !isEnd) return isShare;
    this.#isFirst = false;
    const states = saveShared(this.#node, this.#context) as unknown[];
    if (states.length === 0) return isShare;
    const shared = encodeValue(states);
    return shared.length > SHARED_BYTES_MAX ? isShare : { ...isShare, shared };
  }
}

function contextOf(
  { randomState: { root, salt, ...randomState }, number, randomStateNumber, ...part }: ForeignPart,
  node: DatasetNode,
  host: Host,
): IteratorContext {
  const stream = RandomStream.named(root);
  return IteratorContext.root(node, new PartHost(host), {
    randomState: { ...randomState, root: () => stream, salt: BigInt(salt) },
    deterministic: part.deterministic,
    needsOrder: part.needsOrder,
    isReadOnly: true,
    first: { number, randomStateNumber },
  });
}

function connect(node: DatasetNode, openInput: OpenInput<Promise<RemoteElements>>): void {
  if (node instanceof PartInputNode) {
    node.connect((context) =>
      new RemoteIterator(context, () => openInput(node.input!, context.randomState.epoch))
    );
  }
  node.inputs.forEach((input) => connect(input, openInput));
}
