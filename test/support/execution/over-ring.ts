import type { ExecutionDeps } from '../../../src/execution/deps.ts'
import { startRingSource } from '../../../src/execution/source/ring-source.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { startTestExecution, type TestExecution } from './start.ts'

/** The whole service over a real ring file, read in its thread. */
export function startExecutionOverRing(path: string, deps: Partial<ExecutionDeps> = {}): Promise<TestExecution> {
  return startTestExecution({
    clock: systemClock,
    deps: {
      startSource: (onMessages) =>
        startRingSource(
          {
            kind: 'ring',
            path,
            start: 'newest-block',
            topAccessesMs: 200,
            topAccessesResetMs: 60_000,
            blockBytesMax: 2 ** 24,
          },
          { log: silentLogger, clock: systemClock, random: secureRandom, onMessages },
        ),
      ...deps,
    },
  })
}
