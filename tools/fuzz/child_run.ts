/**
 * Runs inputs in a process of their own, so that a crash, a hang or exhausted memory affects nothing
 * else.
 */
import { fileURLToPath } from "node:url";
import { LineStream } from "../../cli/lib/line_stream.ts";
import { EXIT_MEMORY, type Failure, type News, type Task } from "./news.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CHILD = fileURLToPath(new URL("./child.ts", import.meta.url));
/** Number of characters kept from the beginning of a child's error output. */
const SAID_CHARS_MAX = 2_000;
/** Time limit of a starting child, which loads its modules and creates its seeds. */
const START_MS = 120_000;

/** How a child ended. */
interface ChildEnd {
  /** The last input that it announced; `undefined` if it announced none. */
  readonly at: Extract<News, { kind: "at" }> | undefined;
  /** Its last message, if it ended by itself. */
  readonly done?: Extract<News, { kind: "done" }>;
  /** The failures that it reported. */
  readonly failures: readonly Failure[];
  /** Why it ended early, and its error output. */
  readonly died?: { readonly reason: "crash" | "hang" | "memory"; readonly said: string };
}

/** How a child is watched. */
interface Watch {
  /** Maximum time without output, in ms. */
  readonly stepMs: number;
  /** Called for each line. */
  readonly onNews?: (news: News) => void;
  /** Ends the child. */
  readonly signal?: AbortSignal;
}

/** Runs a child until it ends, by itself or early. */
export async function runChild(
  task: Task,
  { stepMs, onNews = () => {}, signal }: Watch,
): Promise<ChildEnd> {
  const heapMiB = Math.ceil(task.memoryBytesMax / 2 ** 20);
  const child = new Deno.Command("deno", {
    args: [
      ...["run", "--no-prompt", "-P=fuzz_case", `--v8-flags=--max-old-space-size=${heapMiB}`],
      ...[CHILD, JSON.stringify(task)],
    ],
    cwd: ROOT,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let isHanging = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const kill = () => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
  };
  const wait = (ms: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      isHanging = true;
      kill();
    }, ms);
  };
  signal?.addEventListener("abort", kill, { once: true });
  wait(START_MS);
  const said = beginningOf(child.stderr);
  const failures: Failure[] = [];
  let at: ChildEnd["at"];
  let done: ChildEnd["done"];
  try {
    for await (const line of child.stdout.pipeThrough(new LineStream())) {
      wait(stepMs);
      const news = JSON.parse(line) as News;
      if (news.kind === "at") at = news;
      else if (news.kind === "failure") failures.push(news);
      else done = news;
      onNews(news);
    }
    const { code } = await child.status;
    const end = { at, failures, ...(done === undefined ? {} : { done }) };
    if (done !== undefined && code === 0) return end;
    const reason = isHanging ? "hang" : code === EXIT_MEMORY ? "memory" : "crash";
    return { ...end, died: { reason, said: await said } };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", kill);
    kill();
    await child.status;
    await said;
  }
}

async function beginningOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const part of stream.pipeThrough(new TextDecoderStream())) {
    text = (text + part).slice(0, SAID_CHARS_MAX);
  }
  return text;
}
