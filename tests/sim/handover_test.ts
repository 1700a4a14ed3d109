/** What the checker of made and received elements detects. */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { HandoverChecker } from "../../sim/checkers/handover.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import { assertEquals } from "../assert.ts";

const TASK = { node: "worker", path: "/worker/task-1", incarnation: "1-1" };
const CLIENT = { node: "client", path: "/client", incarnation: "2-1" };

/** The events of one worker and one client. */
interface Course {
  readonly made: readonly string[];
  readonly taken: readonly string[];
  /** The answer of each request; undefined: unknown. */
  readonly answers?: readonly (string | undefined)[];
  readonly isWorkerLost?: boolean;
  readonly isClientLost?: boolean;
}

function found(
  { made, taken, answers = [], isWorkerLost = false, isClientLost = false }: Course,
): string[] {
  const found: string[] = [];
  const checker = new HandoverChecker({ add: (what) => found.push(what) });
  const worker = checker.worker(() => !isWorkerLost);
  const client = checker.consumer("a", () => !isClientLost);
  for (const element of made) worker(element);
  for (const [index, kind] of answers.entries()) {
    const id = index + 1;
    const body = { clientId: 1, sequence: id, acknowledged: 0 };
    const method = "getElement";
    const ask = { kind: "ask", id, number: id, method, body, timeoutMs: 1_000 } as const;
    client.observe({ type: "send", envelope: { ...ask, source: CLIENT, target: TASK } });
    if (kind === undefined) continue;
    const answer = kind === "element"
      ? { kind, element: new Payload(encodeMessage("x")) }
      : { kind };
    const reply = { kind: "reply", id, number: id, body: answer } as const;
    const envelope: Envelope = { ...reply, source: TASK, target: CLIENT };
    client.observe({ type: "deliver", envelope });
  }
  for (const element of taken) client.took(element);
  checker.expectAll();
  return found;
}

Deno.test("HandoverChecker detects an element that is received more often than it was made", () => {
  assertEquals(found({ made: ["x", "x"], taken: ["x", "x"] }), []);
  assertEquals(found({ made: ["x"], taken: ["x", "x"] }), [
    "a took x for the 2th time, which was made 1 times",
  ]);
});

Deno.test("HandoverChecker detects unreceived elements of a living worker, but not of a lost one", () => {
  const course = { made: ["x", "y", "y"], taken: ["y"] };
  assertEquals(found(course), [
    "2 elements that living workers have made never came, and dead clients had asked for 0: x, y",
  ]);
  assertEquals(found({ ...course, isWorkerLost: true }), []);
});

Deno.test("HandoverChecker lets a dead client lose what it had requested, and no more", () => {
  const made = ["x", "y", "z"];
  const answers = ["element", "later", undefined];
  const course = { made, taken: ["x"], answers, isClientLost: true };
  assertEquals(found({ ...course, made: ["x", "y"] }), []);
  assertEquals(found(course).length, 1);
  assertEquals(found({ ...course, made: ["x", "y"], isClientLost: false }).length, 1);
});
