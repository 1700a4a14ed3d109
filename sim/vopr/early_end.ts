/**
 * Runs that end at the first broken promise: all there is to know of one that is run for its verdict.
 *
 * @module
 */
import { Violations } from "../checkers/checker.ts";
import { SimCluster } from "../cluster.ts";
import { changed } from "../mutants/mutant.ts";

/** From now on, until the answer is disposed of, the one run of this thread ends so. */
export function endingEarly(): Disposable {
  const { by } = Violations.prototype;
  const { run } = SimCluster.prototype;
  let isBroken = false;
  const checkers = changed(Violations.prototype, {
    by(checker) {
      const findings = by.call(this, checker);
      return {
        // What follows from ending early is no finding.
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
