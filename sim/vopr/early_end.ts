/** Ends runs at the first broken promise, if only the verdict of the run matters. */
import { Violations } from "../checkers/checker.ts";
import { SimCluster } from "../engine/cluster.ts";
import { changed } from "../mutants/mutant.ts";

/** Makes the run in this thread end early. Dispose of the result to end this. */
export function endingEarly(): Disposable {
  const { by } = Violations.prototype;
  const { run } = SimCluster.prototype;
  let isBroken = false;
  const checkers = changed(Violations.prototype, {
    by(checker) {
      const findings = by.call(this, checker);
      return {
        // Violations that follow from ending early do not count.
        add(what) {
          if (!isBroken) findings.add(what);
          isBroken = true;
        },
      };
    },
  });
  const cluster = changed(SimCluster.prototype, {
    run(limits) {
      return run.call(this, { ...limits, until: () => isBroken || limits.until() });
    },
  });
  return {
    [Symbol.dispose]() {
      cluster[Symbol.dispose]();
      checkers[Symbol.dispose]();
    },
  };
}
