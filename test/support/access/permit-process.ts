import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'
import { accessMetrics } from '../../../src/access/metrics.ts'
import { Calendar } from '../../../src/access/quota/calendar.ts'
import { QuotaMemory } from '../../../src/access/quota/memory.ts'
import { createQuotaMemory } from '../../../src/access/quota/memory-layout.ts'
import { createPermits, type Permit } from '../../../src/access/quota/permits.ts'
import { startSharedLedger } from '../../../src/access/quota/shared-ledger.ts'
import { openRedis } from '../../../src/platform/db/redis.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { createRandom } from '../process/property.ts'
import { connections } from './shared-permits.ts'

/**
 * One of several processes on one Redis that opens and closes permits of one subscription as the lines on its standard input say, and prints after
 * each how many it has.
 */
export type PermitCommand =
  /** Opens and closes at random, more of the former. */
  | { readonly do: 'storm'; readonly seed: number; readonly steps: number; readonly limit: number }
  | { readonly do: 'open'; readonly count: number; readonly limit: number }
  | { readonly do: 'close'; readonly count: number }
  | { readonly do: 'look' }

/** `own`: open here; `known`: as this process knows it, in all. */
export type PermitReport = {
  readonly own: number
  readonly known: number
  readonly isUp: boolean
  readonly processes: number
}

const [, , url = '', processId = '', silenceMsMax = ''] = process.argv
const memory = new QuotaMemory(createQuotaMemory({ accountsMax: 16, threads: 1 }), 0)
await using redis = openRedis({ url }, { clock: systemClock, log: silentLogger, random: secureRandom })
await using ledger = await startSharedLedger(
  { keyPrefix: 'test', processId, processesAssumed: 1, silenceMsMax: Number(silenceMsMax) },
  {
    redis,
    memory,
    calendar: new Calendar(systemClock),
    clock: systemClock,
    log: silentLogger,
    metrics: accessMetrics(createMetricsRegistry()),
  },
)
const permits = createPermits(memory, ledger.sendRequestedPermits)
const held: Permit[] = []

function open(limit: number): void {
  const permit = permits.acquire('sub_a', 'wsConnections', connections(limit))
  if (permit.ok) held.push(permit)
}

async function storm({ seed, steps, limit }: { seed: number; steps: number; limit: number }): Promise<void> {
  const random = createRandom(seed)
  for (let step = 0; step < steps; step++) {
    if (random(3) > 0) open(limit)
    else held.splice(random(held.length), 1)[0]?.release()
    if (random(4) === 0) await turn()
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as PermitCommand
  if (command.do === 'storm') await storm(command)
  if (command.do === 'open') for (let count = 0; count < command.count; count++) open(command.limit)
  if (command.do === 'close') for (const permit of held.splice(0, command.count)) permit.release()
  const report: PermitReport = { own: held.length, known: permits.taken('sub_a').wsConnections, ...ledger.state() }
  process.stdout.write(`${JSON.stringify(report)}\n`)
}
