/** A report like the main job's, from formulas instead of runs. */

import { batchTokens, stepTimeMs, synchronousStep } from "../../cli/simulate/accelerator.ts";
import { measured, modelled } from "../../cli/lib/quantity.ts";
import {
  type ReadsRun,
  type ScaleOutCurve,
  type ScaleOutRun,
  SHARING_MODES,
  type SharingMode,
  type SharingRun,
  type SimulationReport,
} from "../../cli/simulate/results.ts";
import { costOf } from "../../mod.ts";

const HOST_CORES = 2;
const IDEAL_BATCHES_PER_SECOND = 12.5;

/** The same report every time. */
export function sampleReport(): SimulationReport {
  return {
    run: {
      startedAt: "2026-03-04T10:20:30.000Z",
      durationSeconds: 54.2,
      commandLine: "deno task simulate --quick --storage-latency-ms 20",
      hostCores: HOST_CORES,
      platform: "linux x86_64",
      versions: { leat: "0.1.0", deno: "2.9.6" },
      corpus: [
        "240 photographs of 111.8 KB and 488×377 on average; decoding one takes 0.98 ms (ImageNet: 1.0 ms).",
        "4,000 texts of 94 tokens on average, 1 to 512, median 60.",
      ],
      quick: true,
    },
    experiments: [
      {
        kind: "scale_out",
        notes: [
          "One decode is in flight per worker and in the baseline.",
          "CPU is that of the whole process: workers are threads of it, and their memory is not told apart.",
        ],
        hostCores: HOST_CORES,
        curves: [scaleOutCurve(0), scaleOutCurve(100)],
      },
      {
        kind: "sharing",
        notes: ["The sliding window holds 32 batches."],
        workers: 2,
        runs: (Object.keys(SHARING_MODES) as SharingMode[]).flatMap((mode) =>
          [1, 2, 4, 8, 16].map((trainers) => sharingRun(mode, trainers))
        ),
      },
      {
        kind: "coordinated_reads",
        notes: ["A step takes 4 ms and 0.02 ms for each token, padding included."],
        trainers: 4,
        workers: 2,
        bucketBoundaries: [64, 128, 192, 256, 320, 384, 448],
        uncoordinated: readsRun(false),
        coordinated: readsRun(true),
      },
      {
        kind: "worker_failure",
        notes: ["Splits that a dead worker held are not handed out again under DYNAMIC."],
        processingMode: "DYNAMIC",
        intervalMs: 100,
        killedWorker: "worker 2",
        killedAtMs: 2_450,
        restartedAtMs: 3_900,
        timeline: ["worker 1", "worker 2", "worker 3"].map((worker, index) => ({
          worker,
          provenance: "measured" as const,
          batches: Array.from({ length: 60 }, (_, interval) => {
            if (index === 1 && interval >= 24 && interval < 39) return 0;
            return 2 + (interval * 7 + index * 3) % 3;
          }),
        })),
        elements: {
          expected: measured(8_192, "elements"),
          delivered: measured(8_000, "elements"),
          lost: measured(192, "elements"),
          repeated: measured(0, "elements"),
        },
      },
    ],
  };
}

function scaleOutCurve(storageLatencyMs: number): ScaleOutCurve {
  const perWorker = 1 / (0.31 + storageLatencyMs * 0.012);
  const coreBound = storageLatencyMs === 0 ? perWorker * 2.05 : IDEAL_BATCHES_PER_SECOND;
  const run = (workers: number): ScaleOutRun => {
    const wanted = workers === 0 ? perWorker * 1.08 : perWorker * workers * 0.94;
    const throughput = Math.min(wanted, coreBound, IDEAL_BATCHES_PER_SECOND);
    const cpu = Math.min(throughput * 0.29, HOST_CORES);
    const cost = costOf({
      jobSeconds: 1000 / throughput,
      workers,
      workerCores: workers === 0 ? 0 : cpu / workers,
      workerMemoryGB: 0.2,
      trainers: 1,
      trainerCores: 96,
      trainerMemoryGB: 335,
      acceleratorsPerTrainer: 1,
    });
    return {
      workers,
      throughput: workers > 16
        ? modelled(throughput, "batches/s")
        : measured(throughput, "batches/s"),
      stallShare: measured(1 - throughput / IDEAL_BATCHES_PER_SECOND, "1"),
      cpu: measured(cpu, "cores"),
      costPerThousandBatches: modelled(cost.total, "USD"),
    };
  };
  return {
    storageLatencyMs,
    colocated: run(0),
    runs: [1, 2, 4, 8, 16, 32].map(run),
    ideal: measured(IDEAL_BATCHES_PER_SECOND, "batches/s"),
    ...(storageLatencyMs === 0 ? { coresEndAtWorkers: 4 } : {}),
  };
}

function sharingRun(mode: SharingMode, trainers: number): SharingRun {
  const copies = mode === "A" ? 1 + 0.01 * trainers : trainers;
  return {
    mode,
    trainers,
    jobTime: measured(mode === "B" ? 6 * Math.max(1, trainers / 4) : 6, "s"),
    batchesProduced: measured(Math.round(200 * copies), "batches"),
    bytesRead: measured(55e6 * copies, "bytes"),
    cpuTime: measured(3.1 * copies * (mode === "C" ? 1.04 : 1), "s"),
    batchesSkipped: measured(mode === "A" ? trainers - 1 : 0, "batches"),
  };
}

/** Steps of four trainers on batches of 16 texts; coordinated ones take theirs from one bucket. */
function readsRun(coordinated: boolean): ReadsRun {
  const trainers = 4;
  const rows = 16;
  let state = 12_345;
  const uniform = () => (state = state * 1_103_515_245 + 12_345 & 0x7fffffff) / 0x7fffffff;
  const length = () => {
    const normal = Math.sqrt(-2 * Math.log(uniform() + 1e-9)) * Math.cos(2 * Math.PI * uniform());
    return Math.min(512, Math.max(1, Math.round(60 * Math.exp(normal))));
  };
  const stepTimesMs: number[] = [];
  let real = 0;
  let padded = 0;
  let idle = 0;
  for (let step = 0; step < 400; step++) {
    const bucket = Math.ceil(length() / 64) * 64;
    const durations = Array.from({ length: trainers }, () => {
      const lengths = Array.from(
        { length: rows },
        () => coordinated ? Math.max(1, Math.round(bucket - 63 * uniform())) : length(),
      );
      const tokens = batchTokens(lengths);
      real += tokens.real;
      padded += tokens.padded;
      return stepTimeMs({ constantMs: 4, perTokenMs: 0.02 }, tokens.padded);
    });
    const { stepMs, idleShare } = synchronousStep(durations);
    stepTimesMs.push(stepMs);
    idle += idleShare;
  }
  const seconds = stepTimesMs.reduce((sum, ms) => sum + ms, 0) / 1000;
  return {
    paddingShare: measured(1 - real / padded, "1"),
    idleShare: modelled(idle / stepTimesMs.length, "1"),
    throughput: modelled(real / seconds, "tokens/s"),
    stepTimesMs,
    stepTimesProvenance: "modelled",
  };
}
