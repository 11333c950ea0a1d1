import { accessMetrics } from '../../../src/access/metrics.ts'
import { BUILT_IN_PLANS } from '../../../src/access/plan.ts'
import { Calendar } from '../../../src/access/quota/calendar.ts'
import { startSharedLedger } from '../../../src/access/quota/shared-ledger.ts'
import { compileTerms } from '../../../src/access/terms.ts'
import { openRedis } from '../../../src/platform/db/redis.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'

/**
 * One of several processes on one Redis. Spends as much of one subscription on the plan `build` as it can until it reads a line from
 * standard input, then prints how much was admitted and the start and end times.
 */
const [, , url = '', processId = ''] = process.argv
const terms = compileTerms({ ...BUILT_IN_PLANS.build, unitsPerMonth: 1_000_000 })
const calls = ['getSlot', 'getAccountInfo', 'getTransaction', 'getProgramAccounts'].map((method) =>
  terms.callOf(method),
)

await using redis = openRedis({ url }, { clock: systemClock, log: silentLogger, random: secureRandom })
await using ledger = await startSharedLedger(
  { keyPrefix: 'test', processId, processesAssumed: 1 },
  {
    redis,
    calendar: new Calendar(systemClock),
    clock: systemClock,
    log: silentLogger,
    metrics: accessMetrics(createMetricsRegistry()),
  },
)
process.stdout.write(`${JSON.stringify({ ready: ledger.state() })}\n`)

let units = 0
let isStopped = false
await new Promise((resolve) => process.stdin.once('data', resolve))
process.stdin.once('data', () => (isStopped = true))
const fromMs = Date.now()
for (let turn = 0; !isStopped; turn++) {
  for (let at = 0; at < 25; at++) {
    const nowMs = systemClock.monotonicMs()
    const call = calls[(turn + at) % calls.length] ?? terms.callOf('')
    const outcome = ledger.open('sub_a', terms, nowMs).charge(terms, call, nowMs)
    if (outcome.ok) units += outcome.cost
  }
  await new Promise((resolve) => setTimeout(resolve, 1))
}
process.stdout.write(`${JSON.stringify({ units, fromMs, toMs: Date.now(), ...ledger.state() })}\n`)
process.stdin.destroy()
