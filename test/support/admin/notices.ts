import type { Condition } from '../../../src/admin/notices/notice.ts'
import type { OutboxFile } from '../../../src/admin/notices/outbox.ts'
import type { Receiver } from '../../../src/admin/notices/receivers.ts'
import { startNotices } from '../../../src/admin/notices/service.ts'
import { createManualClock } from '../../../src/core/clock.ts'
import { createSeededRandom } from '../../../src/core/random.ts'
import { type Logger, silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'

/** Between two checks of what is the case. */
export const CHECK_MS = 15_000

export const nodeDown = (name: string): Condition => ({
  key: `node.down ${name}`,
  kind: 'node.down',
  message: `node ${name} is failing`,
  data: { node: name },
})

export function memoryFile(): OutboxFile & { text: string | undefined } {
  return {
    text: undefined,
    async read() {
      return this.text
    },
    async write(text) {
      this.text = text
    },
  }
}

/** Notices on a manual clock, about the conditions that a test sets. */
export function setUpNotices(
  receivers: (clock: ReturnType<typeof createManualClock>) => Receiver[],
  file = memoryFile(),
  log: Logger = silentLogger,
) {
  const clock = createManualClock()
  let conditions: readonly Condition[] = []
  const start = () =>
    startNotices(
      { giveUpHours: 1 },
      {
        clock,
        registry: createMetricsRegistry(),
        random: createSeededRandom(1),
        log,
        file,
        receivers: receivers(clock),
        observe: async () => conditions,
      },
    )
  return { clock, file, start, set: (next: readonly Condition[]) => void (conditions = next) }
}
