/** Counts the bytes of the answers that clients of a source have not acknowledged. */
import { OBJECT_BYTES, VALUE_BYTES } from "../../transport/codec/structure.ts";
import type { Payload } from "../../transport/payload.ts";
import type { ElementAnswer } from "../worker/protocol.ts";

/** Bytes counted for each answer, in addition to its element. */
const ANSWER_BYTES = 256;

interface KeptElement {
  /** How many kept answers contain the element. */
  answers: number;
  /**
   * Its size when it was added: since then its buffer may have been transferred to another thread.
   */
  readonly bytes: number;
}

/** The bytes of an error, causes included; 0 for other answers. */
export function errorBytesOf(answer: ElementAnswer): number {
  return answer.kind === "error" ? bytesOf(answer.error) : 0;
}

/** The bytes of an element or error; 0 for other answers, and for none. */
export function bytesOfAnswer(answer: ElementAnswer | undefined): number {
  if (answer === undefined) return 0;
  return "element" in answer ? answer.element.byteLength : errorBytesOf(answer);
}

/** About the memory of plain data. The recursion ends: the codec limits the depth of messages. */
function bytesOf(value: unknown): number {
  if (typeof value === "string") return VALUE_BYTES + 2 * value.length;
  if (ArrayBuffer.isView(value)) return OBJECT_BYTES + value.byteLength;
  if (typeof value !== "object" || value === null) return VALUE_BYTES;
  return Object.entries(value).reduce<number>(
    (sum, [key, item]) => sum + 2 * key.length + bytesOf(item),
    VALUE_BYTES,
  );
}

/** Counts the bytes of kept answers. An element that a cache gives to many clients counts once. */
export class KeptAnswers {
  readonly #elements = new Map<Payload, KeptElement>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  add(answer: ElementAnswer): void {
    this.#bytes += ANSWER_BYTES + errorBytesOf(answer);
    if (!("element" in answer)) return;
    const { element } = answer;
    const known = this.#elements.get(element);
    if (known !== undefined) {
      known.answers++;
      return;
    }
    this.#elements.set(element, { answers: 1, bytes: element.byteLength });
    this.#bytes += element.byteLength;
  }

  /** @param answer was added. */
  remove(answer: ElementAnswer): void {
    this.#bytes -= ANSWER_BYTES + errorBytesOf(answer);
    if (!("element" in answer)) return;
    const kept = this.#elements.get(answer.element);
    if (kept === undefined || --kept.answers > 0) return;
    this.#elements.delete(answer.element);
    this.#bytes -= kept.bytes;
  }
}
