/** The shape of answers to `getElement`. The source may be another party's: see SECURITY.md. */
import { LeatError } from "../../core/error.ts";
import { Payload } from "../../transport/payload.ts";
import {
  count,
  figure,
  flag,
  instance,
  kind,
  object,
  oneKindOf,
  optional,
  wireError,
} from "../runtime/checks.ts";
import { guardOf } from "../runtime/guard.ts";

const place = object({ sequence: count, split: count, index: count });
const element = instance(Payload);
const heldMs = optional(figure);
const skipped = optional(figure);

const isAnswer = guardOf(oneKindOf(
  object({ kind: kind("element"), element, place: optional(place), heldMs, skipped }),
  object({
    kind: kind("error"),
    error: wireError,
    place: optional(place),
    isFinal: optional(flag),
    skipped,
  }),
  object({ kind: kind("remainder"), element, place, heldMs }),
  object({ kind: kind("passed"), place, count }),
  object({ kind: kind("split_end"), place }),
  object({ kind: kind("later"), from: optional(count) }),
  object({ kind: kind("end") }),
  object({ kind: kind("skip") }),
));

/** The error if no source answers so. */
export function faultOfAnswer(answer: unknown): LeatError | undefined {
  if (isAnswer(answer)) return undefined;
  return new LeatError("invalid_argument", "A worker's answer to getElement is malformed");
}
