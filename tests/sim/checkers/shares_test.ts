/** What the checker of static shares detects. */
import { SharesChecker } from "../../../sim/checkers/shares.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import { assertEquals } from "../../assert.ts";

const SHARE = [10, 11, 12];
const CONSUMER = "a";

/** A checker of one share, whose worker is in its third life, and its findings. */
function checker() {
  const found: string[] = [];
  const checker = new SharesChecker([SHARE], { add: (what) => found.push(what) });
  for (let life = 0; life < 3; life++) checker.life(0);
  const observe = checker.consumer(CONSUMER);
  let sent = 0;
  return {
    found,
    /** The task of that life sends elements to the consumer. */
    send(life: string, elements: readonly number[]): void {
      for (const element of elements) {
        observe({
          type: "deliver",
          envelope: {
            kind: "reply",
            source: { node: "worker", path: "/worker/task-1", incarnation: life },
            target: { node: "client", path: "/client" },
            number: ++sent,
            id: sent,
            body: { kind: "element", element: new Payload(encodeMessage(element)) },
          },
        });
      }
    },
    take(elements: readonly number[]): void {
      for (const element of elements) checker.took(element, CONSUMER);
    },
  };
}

Deno.test("SharesChecker detects an element taken twice that only one life of its worker sent", () => {
  const { found, send, take } = checker();
  send("3-1", [10, 11, 12]);
  take([10, 11]);
  assertEquals(found, []);
  take([11]);
  assertEquals(found, [
    "a took 11 of share 0 for the 2th time, which 1 tasks have sent, of a worker that is in its 3th life",
    "a took place 1 of share 0 after 1, though only 1 tasks have sent it elements of that share",
  ]);
});

Deno.test("SharesChecker detects a share out of order that only one life of its worker sent", () => {
  const { found, send, take } = checker();
  send("3-1", [10, 11, 12]);
  take([10, 12, 11]);
  assertEquals(found, [
    "a took place 1 of share 0 after 2, though only 1 tasks have sent it elements of that share",
  ]);
});

Deno.test("SharesChecker accepts a share that two lives of its worker sent", () => {
  const { found, send, take } = checker();
  send("1-1", [10, 11]);
  take([10, 11]);
  send("2-1", [10, 11, 12]);
  take([10, 11, 12]);
  assertEquals(found, []);
});

Deno.test("SharesChecker detects an element that no task sent", () => {
  const { found, take } = checker();
  take([10]);
  assertEquals(found, [
    "a took 10 of share 0 for the 1th time, which 0 tasks have sent, of a worker that is in its 3th life",
  ]);
});
