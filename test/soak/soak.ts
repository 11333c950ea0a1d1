import { until } from '../../src/platform/process/test-wait.ts'
import { createRandom } from '../support/process/property.ts'
import { caller } from './caller.ts'
import { type Client, pause, type SoakContext } from './client.ts'
import { runFaults } from './faults.ts'
import { geyserWatcher } from './geyser-watcher.ts'
import { createProcessStats, openDescriptors } from './process-stats.ts'
import { startSoakService } from './service.ts'
import { slotWatcher } from './slot-watcher.ts'
import { createStreamFollower, type StreamTruth, startStreamTruth } from './stream-follower.ts'

export type SoakOptions = {
  readonly seconds: number
  readonly clients: number
  readonly seed: number
  onProgress?(line: string): void
}

export type SoakReport = {
  readonly seed: number
  readonly seconds: number
  readonly clients: number
  readonly counts: Readonly<Record<string, number>>
  readonly violations: readonly string[]
  readonly ledger: {
    readonly reported: number
    readonly booked: number
    readonly awaitingResponse: number
    readonly lostMax: number
  }
  readonly memory: { readonly endMiB: number; readonly slopeMiBPerMinute: number }
  readonly descriptors: { readonly before: number; readonly after: number }
}

const TICK_MS = 250
const BETWEEN_RESTARTS_MS = 4000
/** Usage is written once per second; on a busy machine it takes longer. */
const UNWRITTEN_MS = 2500
const SAMPLE_MS = 5000
/** Unused connections to nodes are closed within 30 s. */
const IDLE_MS_MAX = 60_000
/** At most this many violations are kept; one is enough to fail. */
const VIOLATIONS_MAX = 50

/**
 * Runs the service under two hundred clients and a seeded mix of faults. It is restarted once by SIGKILL and once by SIGTERM; then it
 * runs for the requested time with faults while its memory is sampled.
 */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const { seconds, clients, seed } = options
  await using service = await startSoakService()
  const random = createRandom(seed)
  const counts = new Map<string, number>()
  const violations: string[] = []
  const startMs = performance.now()
  let areClientsOver = false
  const count = (what: string, by = 1) => void counts.set(what, (counts.get(what) ?? 0) + by)
  const context: SoakContext = {
    service,
    random,
    count,
    isOver: () => areClientsOver,
    reportViolation: (what) => {
      if (violations.length < VIOLATIONS_MAX)
        violations.push(`${Math.round((performance.now() - startMs) / 1000)} s: ${what}`)
    },
  }

  /** The cost reported to customers so far, one sample per tick. */
  const reportedUnits: number[] = []
  const ticking = setInterval(() => {
    reportedUnits.push(counts.get('reported units') ?? 0)
    for (const node of service.nodes) node.tick()
  }, TICK_MS)
  let truth: StreamTruth | undefined
  const follower = createStreamFollower(() => truth)
  const kinds: Client[] = [
    caller,
    caller,
    caller,
    slotWatcher,
    slotWatcher,
    follower,
    geyserWatcher,
    caller,
    slotWatcher,
    caller,
  ]
  truth = await startStreamTruth(context)
  await pause(1000)
  const before = openDescriptors(service.pid)
  const running = Array.from({ length: clients }, (_, at) => (kinds[at % kinds.length] as Client)(context))

  let lostMax = 0
  async function restart(how: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    count(`restart by ${how}`)
    await truth?.[Symbol.asyncDispose]()
    truth = undefined
    const reportedBefore = reportedUnits.at(-Math.ceil(UNWRITTEN_MS / TICK_MS)) ?? 0
    await service.restart(how, () => {
      if (how === 'SIGKILL') lostMax += (counts.get('reported units') ?? 0) - reportedBefore
    })
    truth = await startStreamTruth(context)
  }
  await pause(BETWEEN_RESTARTS_MS)
  await restart('SIGKILL')
  await pause(BETWEEN_RESTARTS_MS)
  await restart('SIGTERM')

  const steadyMs = performance.now()
  const endMs = steadyMs + seconds * 1000
  const stats = createProcessStats(service.pid)
  const warmMs = steadyMs + seconds * 1000 * 0.2
  const faults = runFaults({ ...context, isOver: () => areClientsOver || performance.now() > endMs })
  while (performance.now() < endMs) {
    stats.sample(performance.now())
    options.onProgress?.(
      `${Math.round((performance.now() - steadyMs) / 1000)} of ${seconds} s, ${counts.get('calls') ?? 0} calls, ${stats.lastMiB.toFixed(0)} MiB, ${violations.length} violations`,
    )
    await pause(Math.min(SAMPLE_MS, seconds * 20))
  }
  await faults
  areClientsOver = true
  await Promise.all(running)
  await truth?.[Symbol.asyncDispose]()
  await until(
    "the customers' connections are closed",
    () => openDescriptors(service.pid) <= before + 30,
    IDLE_MS_MAX,
  ).catch(() => {})
  const after = openDescriptors(service.pid)
  await service.stop()
  clearInterval(ticking)
  const reported = counts.get('reported units') ?? 0
  return {
    seed,
    seconds,
    clients,
    counts: Object.fromEntries([...counts].toSorted(([a], [b]) => a.localeCompare(b))),
    violations,
    ledger: {
      reported,
      booked: await service.booked(),
      awaitingResponse: counts.get('calls without response') ?? 0,
      lostMax,
    },
    memory: { endMiB: stats.lastMiB, slopeMiBPerMinute: stats.slopeMiBPerMinute(warmMs) },
    descriptors: { before, after },
  }
}
