/**
 * Output and errors of functions, in the log of their worker: none of it passes for a line of the
 * worker's own, or steers the terminal that shows it.
 */
import { Dataset } from "../../mod.ts";
import { assert, assertEquals } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { until } from "../lib/until.ts";
import { soon, startDispatcher } from "./lib.ts";

/** A line in a worker's format, printed by a function. */
const FORGED = "2026-01-01T00:00:00.000Z ERROR forged";
/** Terminal escapes, and characters that some log readers treat as an end of line. */
const UNSAFE_CHARACTERS = "\x1b[2J\x1b]0;title\x07\x9b31m\r\x85\u2028\u202e\b";
/** The end of a function's output, so that the test knows that all of it has arrived. */
const LAST = "the last line";

Deno.test("what a function prints or throws begins no line of its worker's log, and steers no terminal", async () => {
  await using dispatcher = await startDispatcher();
  const { address } = dispatcher;
  await using worker = startChild("cli/worker.ts", { args: ["--dispatcher", address] });
  await worker.line(/listening on/);
  const hostile = Dataset.range(4).map((step, { forged, steering, last }) => {
    const bytes = new TextEncoder().encode(`half of it\n${forged} in bytes\nunended`);
    const { Deno, process, console } = globalThis as unknown as {
      Deno: { stderr: { writeSync(bytes: Uint8Array): number } };
      process: { stderr: { write(text: string): void } };
      console: { log(...parts: unknown[]): void; error(...parts: unknown[]): void };
    };
    switch (step) {
      case 0:
        console.log(`printed\n${forged} by log`);
        console.error(`\n${forged} by error${steering}`);
        return step;
      case 1:
        process.stderr.write(`\r\n\n${forged} by process\n${steering}${forged}`);
        // A character in two pieces, and bytes that are no text.
        for (const byte of bytes) Deno.stderr.writeSync(new Uint8Array([byte]));
        Deno.stderr.writeSync(new Uint8Array([0xff, 0xc2]));
        Deno.stderr.writeSync(new Uint8Array([0x9b, 0x0a]));
        return step;
      case 2:
        throw new Error(`thrown\n${forged} as an error${steering}\r${forged}`);
      default:
        // As in the stack of an error of a module.
        console.error("at f (leat-http://USER:PASSWORD@host.org/m.js?SECRET:1:2)");
        console.error(last);
        // The worker's log contains the error that ended the process.
        return Promise.reject(new Error(`left\n${forged} as a rejection${steering}`));
    }
  }, { captures: { forged: FORGED, steering: UNSAFE_CHARACTERS, last: LAST } });
  const iterator = hostile.distribute({ service: address, processingMode: "DYNAMIC" }).iterator();
  for (let i = 0; i < 4; i++) await soon("a step", iterator.next().catch(() => {}));
  await iterator.return();
  await until(() => worker.stderr.text.includes(LAST), 20);
  worker.kill("SIGTERM");
  await worker.status;
  const lines = `${worker.stderr.text}${worker.stdout.text}`.split("\n");
  for (const line of lines) {
    assert(!line.startsWith(FORGED), line);
    // deno-lint-ignore no-control-regex -- they are what is looked for
    assert(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e]/.test(line), line);
  }
  assert(!/USER|PASSWORD|SECRET/.test(lines.join("\n")), "the log tells secrets of a URL");
  assert(lines.some((line) => line.includes("leat-http://host.org/m.js")));
  const printed = lines.filter((line) => line.startsWith("runner: "));
  for (const how of ["by log", "by error", "by process", "in bytes"]) {
    assertEquals(printed.filter((line) => line.startsWith(`runner: ${FORGED} ${how}`)).length, 1);
  }
});

Deno.test("a function that prints endlessly fills its worker's log up to a limit", async () => {
  await using dispatcher = await startDispatcher();
  const { address } = dispatcher;
  await using worker = startChild("cli/worker.ts", { args: ["--dispatcher", address] });
  await worker.line(/listening on/);
  const loud = Dataset.range(64).map((x) => {
    const text = `${"x".repeat(1_023)}\n`.repeat(64);
    (globalThis as unknown as { process: { stderr: { write(text: string): void } } })
      .process.stderr.write(text);
    return x;
  });
  const read: number[] = [];
  for await (const x of loud.distribute({ service: address, processingMode: "DYNAMIC" })) {
    read.push(x);
  }
  assertEquals(read.length, 64);
  worker.kill("SIGTERM");
  await worker.status;
  const { length } = worker.stderr.text;
  assert(length > 2 ** 19 && length < 1.1 * 2 ** 20, `${length} characters of 4 Mi`);
});
