/** A client must not make a dispatcher keep pipelines without bound, however small each is. */
import { DATASET_BYTES } from "../../actors/dispatcher/held_bytes.ts";
import { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import { checkDatasetBytes, checkedQuotas } from "../../actors/dispatcher/jobs/quotas.ts";
import { hashBytes } from "../../core/hash.ts";
import { LeatError } from "../../mod.ts";
import { TestCluster } from "../actors/dispatcher/lib.ts";
import { assertEquals, assertStringIncludes, assertThrows } from "../assert.ts";

const ID_LENGTH = 1_024;

function small(text: string) {
  const graph = new TextEncoder().encode(text);
  return {
    graph,
    fingerprint: hashBytes(graph),
    cardinality: 1,
    datasetId: "id".padEnd(ID_LENGTH, text),
  };
}

Deno.test("the number of an identity's pipelines is limited even if they are small, also after a restart", async () => {
  const DATASETS = 4;
  const bytes = DATASET_BYTES + ID_LENGTH + 1 + hashBytes("a").length;
  const quotas = { datasetsBytesMax: DATASETS * bytes };
  await using cluster = await TestCluster.start({ quotas });
  for (const text of "abcd") await cluster.ask("registerDataset", small(text));
  const isRefused = async () => {
    const { code, message } = await cluster.refused("registerDataset", small("e"));
    assertEquals(code, "resource_exhausted");
    assertStringIncludes(message, "datasetsBytesMax");
  };
  await isRefused();
  // What is there already takes nothing more.
  await cluster.ask("registerDataset", small("a"));
  await cluster.restart();
  await isRefused();
});

Deno.test("a dispatcher keeps no empty pipeline", async () => {
  await using cluster = await TestCluster.start();
  const { code, message } = await cluster.refused("registerDataset", small(""));
  assertEquals([code, message.includes("empty")], ["invalid_argument", true]);
});

Deno.test("checking a new pipeline reads none of the registered ones", () => {
  const state = new DispatcherState();
  const register = (datasetId: string, owner: string) =>
    state.apply({
      type: "dataset_registered",
      owner,
      datasetId,
      graph: new Uint8Array(1_000),
      fingerprint: datasetId,
      cardinality: 1,
    });
  for (let i = 0; i < 10; i++) register(`dataset ${i}`, i < 7 ? "one" : "other");
  state.apply({ type: "dataset_forgotten", datasetId: "dataset 0" });
  const bytes = DATASET_BYTES + 1_000 + 2 * "dataset 0".length;
  for (const each of [state, DispatcherState.restore(state.snapshot())]) {
    Object.defineProperty(each, "datasets", {
      get: () => {
        throw new Error("the datasets were looked at");
      },
    });
    const fits = (own: number, all: number) =>
      checkDatasetBytes(
        each,
        "one",
        bytes,
        checkedQuotas({ datasetsBytesMax: own, allDatasetsBytesMax: all }),
      );
    fits(7 * bytes, 10 * bytes);
    assertThrows(() => fits(7 * bytes - 1, 10 * bytes), LeatError, "datasetsBytesMax");
    assertThrows(() => fits(7 * bytes, 10 * bytes - 1), LeatError, "allDatasetsBytesMax");
  }
});
