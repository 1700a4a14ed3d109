/** Pipelines in confined processes, for tests, with given permissions. */
import type { Runner, RunnerSettings, RunnerSplits } from "../../../actors/worker/runner/runner.ts";
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { Dataset } from "../../../mod.ts";
import { decodeMessage } from "../../../transport/codec.ts";
import {
  ConfinedRunners,
  type ConfinedRunnersOptions,
} from "../../../platform/sandbox/confined_runners.ts";
import { sandboxGrants, type SandboxOptions } from "../../../platform/sandbox/grants.ts";
import type { WorkerStorage } from "../../../platform/storage/storage.ts";
import { until } from "../../lib/until.ts";

/** The result of an element. */
export type Came = { readonly value: unknown } | {
  readonly code: LeatErrorCode;
  readonly message: string;
};

/** For pipelines without splits. */
export const NO_SPLITS: RunnerSplits = {
  next: () => Promise.resolve(null),
  total: () => Promise.resolve(0),
};

/** A folder of a test with confined runners that read in it. */
export class Sandbox implements AsyncDisposable {
  readonly folder: string;
  readonly runners: ConfinedRunners;

  private constructor(
    folder: string,
    options: SandboxOptions,
    storage: WorkerStorage,
    runners: ConfinedRunnersOptions,
  ) {
    this.folder = folder;
    this.runners = new ConfinedRunners(
      sandboxGrants({ dataRoots: [`${folder}/data`], ...options }),
      storage,
      runners,
    );
  }

  /** @param files Texts by their names below the folder; those in `data/` may be read. */
  static async open(
    files: Readonly<Record<string, string>> = {},
    options: (folder: string) => SandboxOptions = () => ({}),
    storage: WorkerStorage = {},
    runners: ConfinedRunnersOptions = {},
  ): Promise<Sandbox> {
    const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "leat-sandbox-" }));
    await Deno.mkdir(`${folder}/data`);
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${folder}/${name}`, text);
    }
    return new Sandbox(folder, options(folder), storage, runners);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runners.close();
    await Deno.remove(this.folder, { recursive: true });
  }

  /** Resolves when only the spare process is left. */
  async processesEnded(): Promise<void> {
    await until(() => this.runners.processes <= 1, 10);
  }

  /** All results of a pipeline, up to its end, or to the death of its process. */
  async elements(dataset: Dataset<unknown>): Promise<Came[]> {
    const runner = this.runners.start(settingsOf(dataset), NO_SPLITS);
    try {
      return await drain(runner);
    } finally {
      runner.dispose();
    }
  }

  /**
   * The value of an expression in a user function, once it has settled. `globalThis` is the real
   * one, and the function's last argument is `extra`.
   */
  async evaluate(expression: string): Promise<Came> {
    const [came] = await this.evaluateAll([expression]);
    return came!;
  }

  /** The same for several in one pipeline. */
  async evaluateAll(expressions: readonly string[]): Promise<Came[]> {
    return await this.elements(evaluating(expressions));
  }

  /** All results of several pipelines, one after the other in one process. */
  async elementsOf(...[first, ...others]: readonly Dataset<unknown>[]): Promise<Came[]> {
    return await this.elements(others.reduce((all, one) => all.concatenate(one), first!));
  }
}

/** The values of expressions, each in a call of one user function. */
export function evaluating(expressions: readonly string[]): Dataset<unknown> {
  return Dataset.from([...expressions]).map((expression, extra) =>
    new Function("extra", `return (${expression});`)(extra)
  );
}

/** Creates a link with another program: `Deno.symlink` needs permission for the whole disk. */
export async function link(target: string, path: string): Promise<void> {
  const code = "import os, sys; os.symlink(sys.argv[1], sys.argv[2])";
  await new Deno.Command("python3", { args: ["-c", code, target, path] }).output();
}

/** The settings of a runner. */
export function settingsOf(dataset: Dataset<unknown>): RunnerSettings {
  return {
    graph: dataset.serialize(),
    seed: "0000000000000007",
    epoch: 0,
    splits: false,
    shared: false,
  };
}

async function drain(runner: Runner): Promise<Came[]> {
  const came: Came[] = [];
  for (;;) {
    try {
      const outcome = await runner.next();
      if (outcome.kind === "end") return came;
      if (outcome.kind === "error") {
        came.push(outcome.error);
        if (outcome.isFinal) return came;
      } else came.push({ value: decodeMessage(outcome.frame) });
    } catch (error) {
      const { code, message } = LeatError.from(error);
      return [...came, { code, message }];
    }
  }
}
