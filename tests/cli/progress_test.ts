/** Progress as a user sees it: on a screen, reconstructed from the output, and in a log. */

// deno-lint-ignore-file no-control-regex -- terminals are steered by control characters
import { Writable } from "node:stream";
import { Progress } from "../../cli/simulate/progress.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { until } from "../lib/until.ts";

const STOP_REQUESTS_URL = import.meta.resolve("../../cli/lib/stop_requests.ts");
const PROGRESS_URL = import.meta.resolve("../../cli/simulate/progress.ts");

/** A stream that keeps what was written, as a terminal or as a file. */
class Recorder extends Writable {
  readonly isTTY: boolean;
  readonly columns = 120;
  text = "";

  constructor(isTTY: boolean) {
    super({ decodeStrings: false });
    this.isTTY = isTTY;
  }

  override _write(chunk: string, _encoding: string, done: () => void): void {
    this.text += chunk;
    done();
  }
}

/**
 * The lines a terminal shows after this output, for the few control sequences that the bars use.
 */
function screen(output: string): string[] {
  const rows: string[] = [""];
  let row = 0;
  let column = 0;
  for (const [token] of output.matchAll(/\x1b\[\??\d*[A-Za-z]|\r|\n|[^\x1b\r\n]+/g)) {
    const count = Number(/\d+/.exec(token)?.[0] ?? 1);
    if (token === "\r") column = 0;
    else if (token === "\n") rows[++row] ??= "";
    else if (!token.startsWith("\x1b")) {
      const line = (rows[row] ?? "").padEnd(column);
      rows[row] = line.slice(0, column) + token + line.slice(column + token.length);
      column += token.length;
    } else if (token.endsWith("A")) row -= count;
    else if (token.endsWith("G")) column = count - 1;
    else if (token.endsWith("2K")) rows[row] = "";
    else if (token.endsWith("K")) rows[row] = (rows[row] ?? "").slice(0, column);
    else if (token.endsWith("J")) {
      rows.splice(row + 1), rows[row] = (rows[row] ?? "").slice(0, column);
    } else assertMatch(token, /^\x1b\[\?(25|7)[hl]$/, "a sequence this screen does not know");
  }
  return rows.map((line) => line.trimEnd());
}

/** Waits until the bars show the pattern. */
async function drawn(stream: Recorder, pattern: RegExp): Promise<void> {
  await until(() => screen(stream.text).some((line) => pattern.test(line)), 10);
}

Deno.test("Progress draws three bars on a terminal and keeps notes above them", async () => {
  const stream = new Recorder(true);
  using progress = new Progress({ experiments: 2, stream });
  progress.beginExperiment("scale-out", 3);
  progress.beginRun("4 workers", 20);
  progress.update({ done: 5, stallShare: 0.25 });
  await drawn(stream, /5\/20/);
  progress.note("the corpus has 300 photographs");
  progress.update({ done: 6, stallShare: 0.25 });
  await drawn(stream, /6\/20/);
  const [note, experiments, runs, work, ...rest] = screen(stream.text);
  assertEquals(note, "the corpus has 300 photographs");
  assertMatch(experiments ?? "", /^experiments .* 0\/2$/);
  assertMatch(runs ?? "", /^scale-out .* 0\/3 runs$/);
  assertMatch(work ?? "", /^4 workers .* 6\/20 batches, \d+\.\d batches\/s, 25 % stalled$/);
  assertEquals(rest, []);
});

Deno.test("Progress restores a terminal's cursor and wrapping, and removes the bars", async () => {
  const stream = new Recorder(true);
  {
    using progress = new Progress({ experiments: 1, stream });
    progress.beginExperiment("sharing", 1);
    progress.beginRun("16 trainers", 10);
    progress.note("a note");
    await drawn(stream, /a note/);
  }
  const switched = [...stream.text.matchAll(/\x1b\[\?(?:25|7)[hl]/g)].map(([token]) => token);
  assert(switched.includes("\x1b[?25l"), "the cursor was hidden while bars were drawn");
  assertEquals(switched.findLast((it) => it.includes("25")), "\x1b[?25h");
  assertEquals(switched.findLast((it) => it.includes("?7")), "\x1b[?7h");
  assertEquals(screen(stream.text).filter((line) => line !== ""), ["a note"]);
});

Deno.test("Progress writes whole lines without control characters outside a terminal", () => {
  const stream = new Recorder(false);
  {
    using progress = new Progress({ experiments: 1, stream, plainIntervalMs: 0 });
    progress.beginExperiment("scale-out", 1);
    progress.beginRun("4 workers", 20);
    progress.update({ done: 7, stallShare: 0.5 });
    progress.update({ done: 20, stallShare: 0.5 });
    progress.endRun("12 batches/s");
  }
  const lines = stream.text.split("\n");
  assertEquals(lines.length, 5);
  assertEquals(lines[0], "scale-out: 1 run");
  assertStringIncludes(lines[1] ?? "", "scale-out: 4 workers: 7/20 batches");
  assertMatch(lines[3] ?? "", /20\/20 batches.*50 % stalled: 12 batches\/s$/);
  assertEquals(lines[4], "");
  assert(!stream.text.includes("\x1b"));
});

Deno.test("Progress writes rarely outside a terminal", () => {
  const stream = new Recorder(false);
  using progress = new Progress({ experiments: 1, stream, plainIntervalMs: 3_600_000 });
  progress.beginExperiment("scale-out", 1);
  progress.beginRun("4 workers", 1000);
  for (let done = 1; done <= 1000; done++) progress.update({ done });
  progress.endRun();
  assertEquals(stream.text.trimEnd().split("\n").length, 2);
});

Deno.test("Progress restores the terminal on Ctrl-C and exits with status 130", async () => {
  const program = `
    import { StopRequests } from ${JSON.stringify(STOP_REQUESTS_URL)};
    import { Progress } from ${JSON.stringify(PROGRESS_URL)};
    import process from "node:process";
    const stream = Object.assign(process.stdout, { isTTY: true });
    const requests = new StopRequests();
    const progress = new Progress({ experiments: 1, stream });
    progress.beginExperiment("sharing", 1);
    progress.beginRun("16 trainers", 10);
    await requests.interrupting(new Promise(() => setInterval(() => {}, 1000)), () => "stopped");
  `;
  const child = new Deno.Command("deno", {
    args: ["run", "--no-prompt", "--ext=ts", "-"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const said = new Response(child.stderr).text();
  const stdin = child.stdin.getWriter();
  await stdin.write(new TextEncoder().encode(program));
  await stdin.close();
  let output = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    if (output === "") child.kill("SIGINT");
    output += chunk;
  }
  assertEquals((await child.status).code, 130);
  assertStringIncludes(await said, "stopped\n");
  assert(output.includes("\x1b[?25l"), "the cursor was hidden");
  assert(output.endsWith("\x1b[?25h\x1b[?7h"), "the cursor was given back");
});
