import { until } from '../../src/platform/process/test-wait.ts'
import { createRandom } from '../support/property.ts'
import { caller } from './caller.ts'
import { type Client, type Crowd, pause } from './crowd.ts'
import { runFaults } from './faults.ts'
import { geyserWatcher } from './geyser-watcher.ts'
import { startSoakService } from './service.ts'
import { slotWatcher } from './slot-watcher.ts'
import { createStreamFollower, type StreamTruth, startStreamTruth } from './stream-follower.ts'
import { createLiveness, openDescriptors } from './vitals.ts'

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
  readonly objections: readonly string[]
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
/** Use is written once a second; on a busy machine that takes another moment. */
const UNWRITTEN_MS = 2500
const SAMPLE_MS = 5000
/** Connections to nodes that nobody needs are closed within 30 s. */
const IDLE_MS_MAX = 60_000
/** Objections are kept up to this; one is enough to fail. */
const OBJECTIONS_MAX = 50

/**
 * The service under two hundred clients and a seeded mix of faults. It is killed once and ended politely once; then it runs
 * through for the time asked for, faults come, and its memory is watched.
 */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const { seconds, clients, seed } = options
  await using service = await startSoakService()
  const random = createRandom(seed)
  const counts = new Map<string, number>()
  const objections: string[] = []
  const startMs = performance.now()
  let areClientsOver = false
  const count = (what: string, by = 1) => void counts.set(what, (counts.get(what) ?? 0) + by)
  const crowd: Crowd = {
    service,
    random,
    count,
    isOver: () => areClientsOver,
    object: (what) => {
      if (objections.length < OBJECTIONS_MAX)
        objections.push(`${Math.round((performance.now() - startMs) / 1000)} s: ${what}`)
    },
  }

  /** What customers were told to have spent, quarter second by quarter second. */
  const tolds: number[] = []
  const ticking = setInterval(() => {
    tolds.push(counts.get('told units') ?? 0)
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
  truth = await startStreamTruth(crowd)
  await pause(1000)
  const before = openDescriptors(service.pid)
  const running = Array.from({ length: clients }, (_, at) => (kinds[at % kinds.length] as Client)(crowd))

  let lostMax = 0
  async function restart(how: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    count(`restart by ${how}`)
    await truth?.[Symbol.asyncDispose]()
    truth = undefined
    const reportedBefore = tolds.at(-Math.ceil(UNWRITTEN_MS / TICK_MS)) ?? 0
    await service.restart(how, () => {
      if (how === 'SIGKILL') lostMax += (counts.get('told units') ?? 0) - reportedBefore
    })
    truth = await startStreamTruth(crowd)
  }
  await pause(BETWEEN_RESTARTS_MS)
  await restart('SIGKILL')
  await pause(BETWEEN_RESTARTS_MS)
  await restart('SIGTERM')

  const steadyMs = performance.now()
  const endMs = steadyMs + seconds * 1000
  const liveness = createLiveness(service.pid)
  const warmMs = steadyMs + seconds * 1000 * 0.2
  const faults = runFaults({ ...crowd, isOver: () => areClientsOver || performance.now() > endMs })
  while (performance.now() < endMs) {
    liveness.sample(performance.now())
    options.onProgress?.(
      `${Math.round((performance.now() - steadyMs) / 1000)} of ${seconds} s, ${counts.get('calls') ?? 0} calls, ${liveness.lastMiB.toFixed(0)} MiB, ${objections.length} objections`,
    )
    await pause(Math.min(SAMPLE_MS, seconds * 20))
  }
  await faults
  areClientsOver = true
  await Promise.all(running)
  await truth?.[Symbol.asyncDispose]()
  await until(
    'all that customers held open is closed',
    () => openDescriptors(service.pid) <= before + 30,
    IDLE_MS_MAX,
  ).catch(() => {})
  const after = openDescriptors(service.pid)
  await service.stop()
  clearInterval(ticking)
  const reported = counts.get('told units') ?? 0
  return {
    seed,
    seconds,
    clients,
    counts: Object.fromEntries([...counts].toSorted(([a], [b]) => a.localeCompare(b))),
    objections,
    ledger: {
      reported,
      booked: await service.booked(),
      awaitingResponse: counts.get('unanswered') ?? 0,
      lostMax,
    },
    memory: { endMiB: liveness.lastMiB, slopeMiBPerMinute: liveness.slopeMiBPerMinute(warmMs) },
    descriptors: { before, after },
  }
}
