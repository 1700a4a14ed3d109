/** What the checker of the order within a task detects. */
import { TaskOrderChecker } from "../../../sim/checkers/task_order.ts";
import { Payload } from "../../../transport/payload.ts";
import { assertEquals } from "../../assert.ts";

/** A number, the life of the task that gives it, and the consumer. */
interface Given {
  readonly number: number;
  readonly life?: string;
  readonly consumer?: string;
}

/** The findings if these are received in this order from one worker. */
function found(taken: readonly Given[]): string[] {
  const found: string[] = [];
  const checker = new TaskOrderChecker({ add: (what) => found.push(what) });
  for (const [id, { number, life = "1-1", consumer = "a" }] of taken.entries()) {
    const element = new Payload(new Uint8Array([number]));
    checker.observe({
      type: "deliver",
      envelope: {
        kind: "reply",
        source: { node: "worker", path: "/worker/task-1", incarnation: life },
        target: { node: "client", path: "/client" },
        number: id + 1,
        id,
        body: { kind: "element", element },
      },
    });
    checker.took(element, number, consumer);
  }
  return found;
}

Deno.test("TaskOrderChecker detects elements out of order, or twice, at one consumer", () => {
  assertEquals(found([{ number: 1 }, { number: 3 }, { number: 2 }]), [
    "a took 2 of worker/worker/task-1#1-1 after 3",
  ]);
  assertEquals(found([{ number: 1 }, { number: 1 }]).length, 1);
});

Deno.test("TaskOrderChecker compares neither different consumers nor different lives of a task", () => {
  assertEquals(found([{ number: 2 }, { number: 1, consumer: "b" }, { number: 3 }]), []);
  assertEquals(found([{ number: 2 }, { number: 1, life: "1-2" }, { number: 3 }]), []);
});

Deno.test("TaskOrderChecker detects an element that no task sent to the consumer", () => {
  const found: string[] = [];
  const checker = new TaskOrderChecker({ add: (what) => found.push(what) });
  checker.took(new Payload(new Uint8Array(1)), 7, "a");
  assertEquals(found, ["a took 7, which no task sent it"]);
});
