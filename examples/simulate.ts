/**
 * The main job: a cluster on this host, simulated by threads, in four experiments.
 *
 *     deno run -P examples/simulate.ts --help
 */
import { run } from "../cli/simulate.ts";

if (import.meta.main) await run();
