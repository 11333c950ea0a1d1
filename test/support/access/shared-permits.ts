import { accessMetrics } from '../../../src/access/metrics.ts'
import { BUILT_IN_PLANS } from '../../../src/access/plan.ts'
import { Calendar } from '../../../src/access/quota/calendar.ts'
import { QuotaMemory } from '../../../src/access/quota/memory.ts'
import { createQuotaMemory } from '../../../src/access/quota/memory-layout.ts'
import { createPermits, type Permit } from '../../../src/access/quota/permits.ts'
import { type SharedLedger, startSharedLedger } from '../../../src/access/quota/shared-ledger.ts'
import { createManualClock } from '../../../src/core/clock.ts'
import type { RedisLink, RedisOutcome } from '../../../src/platform/db/redis.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { createPermitModel } from './permit-model.ts'

const DOWN: RedisOutcome = { ok: false, reason: 'down', message: 'gone' }

/** Limits with this many connections. */
export const connections = (wsConnections: number) => ({ ...BUILT_IN_PLANS.starter, wsConnections })

/** Processes with a memory each, that share their permits through the model of the scripts, on one clock. */
export function createSharedPermits(options: { latencyMs?: () => number; accountsMax?: number } = {}) {
  const { latencyMs = () => 1, accountsMax = 16 } = options
  const clock = createManualClock()
  const model = createPermitModel()
  /** `isUp`: the server; `runs`: scripts by their number of arguments. */
  const server = { isUp: true, runs: [] as number[] }

  /** One connection: commands and replies keep their order. */
  function connect(isCut: () => boolean): Pick<RedisLink, 'run' | 'tried'> {
    let arrivesMs = 0
    let repliedMs = 0
    const at = (ms: number) => new Promise<void>((resolve) => void clock.setTimer(ms - clock.monotonicMs(), resolve))
    return {
      tried: Promise.resolve(),
      async run(script, _keys, args) {
        if (isCut()) return DOWN
        arrivesMs = Math.max(arrivesMs, clock.monotonicMs() + latencyMs())
        await at(arrivesMs)
        if (isCut()) return DOWN
        server.runs.push(args.length)
        const reply = model.run(script, args, clock.nowMs())
        repliedMs = Math.max(repliedMs, arrivesMs + latencyMs())
        await at(repliedMs)
        return isCut() ? DOWN : { ok: true, reply }
      },
    }
  }

  let started = 0
  async function start() {
    const state = { isCut: false }
    const memory = new QuotaMemory(createQuotaMemory({ accountsMax, threads: 1 }), 0)
    let ledger: SharedLedger | undefined
    void startSharedLedger(
      { keyPrefix: 'test', processId: `p${started++}`, processesAssumed: 1 },
      {
        redis: connect(() => state.isCut || !server.isUp),
        memory,
        calendar: new Calendar(clock),
        clock,
        log: silentLogger,
        metrics: accessMetrics(createMetricsRegistry()),
      },
    ).then((opened) => (ledger = opened))
    for (let turn = 0; turn < 100 && ledger === undefined; turn++) await clock.advanceAsync(10)
    const permits = createPermits(memory, () => ledger?.sendRequestedPermits())
    const held: { id: string; permit: Permit }[] = []
    return {
      memory,
      permits,
      held,
      get ledger() {
        return ledger as SharedLedger
      },
      /** Cut off from the server, with everything in flight. */
      cut: (isCut: boolean) => (state.isCut = isCut),
      own: (id: string) => held.filter((one) => one.id === id).length,
      /** How many of so many attempts succeed. */
      open(limit: number, attempts = 1, id = 'sub_a'): number {
        let opened = 0
        for (let attempt = 0; attempt < attempts; attempt++) {
          const permit = permits.acquire(id, 'wsConnections', connections(limit))
          if (!permit.ok) continue
          held.push({ id, permit })
          opened += 1
        }
        return opened
      },
      close(count = 1, from = 0): void {
        for (const { permit } of held.splice(from, count)) permit.release()
      },
    }
  }

  /** Several processes on a server whose data is old enough. */
  async function startAll(count: number) {
    const members = []
    for (let at = 0; at < count; at++) members.push(await start())
    await clock.advanceAsync(7000)
    return members
  }

  return { clock, model, server, start, startAll }
}

export type PermitMember = Awaited<ReturnType<ReturnType<typeof createSharedPermits>['start']>>
