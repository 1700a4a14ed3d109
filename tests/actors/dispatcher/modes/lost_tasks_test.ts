/** Reports of tasks that a consumer cannot reach. */
import { Consumers } from "../../../../actors/dispatcher/modes/consumers.ts";
import { handleRoundsReport } from "../../../../actors/dispatcher/modes/coordinated/rounds.ts";
import type { RoundsReport } from "../../../../actors/dispatcher/protocol_heartbeats.ts";
import { assertEquals } from "../../../assert.ts";

Deno.test("handleRoundsReport keeps no invented, foreign or repeated task that a consumer reports as lost", () => {
  const [own, foreign] = [{ taskId: 7 }, { taskId: 8 }];
  const state = {
    tasks: new Map([[7, { iterationId: 1 }], [8, { iterationId: 2 }]]),
    iterations: new Map([[1, { rounds: { reached: 0, proposal: null } }]]),
    roundIndexOf: () => ({ awaited: new Set() }),
    clientsOfIteration: () => [],
  };
  const kept: unknown[] = [];
  class Watched extends Consumers {
    override noteReport(_clientId: number, { lostTasks }: RoundsReport): void {
      kept.push(lostTasks);
    }
    override isUnreachable(): boolean {
      return false;
    }
  }
  const invented = [...Array(1_000).keys()].map((i) => ({ taskId: 1e9 + i }));
  const report = { kind: "rounds", lostTasks: [...invented, foreign, own, own] } as const;
  const client = { clientId: 1, iterationId: 1 } as never;
  handleRoundsReport({ state, nowMs: 0 } as never, client, new Watched(), report, 1e6);
  assertEquals(kept, [[own]]);
});
