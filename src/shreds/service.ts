import type { Access } from '../access/service.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { openUdpSocket, ownAddresses } from '../platform/udp/socket.ts'
import { createChallenger } from './destinations/challenge.ts'
import { candidatesOf, type LeaseBook, leasesOf } from './destinations/leases.ts'
import type { DestinationRules } from './destinations/rules.ts'
import { LABELLED_DESTINATIONS_MAX, shredsMetrics } from './metrics.ts'
import { parseListen, type ShredsOptions } from './options.ts'
import type { LeaderRange } from './relay/leaders.ts'
import { startRelayLink } from './relay/link.ts'
import type { Lease, RelayReport } from './relay/protocol.ts'
import { createAlarms } from './report/alarms.ts'
import { startDelivery } from './report/delivery.ts'
import { createShredsStatus, type ShredsStatus } from './report/status.ts'
import { openReportStore } from './report/store.ts'

export type ShredsDeps = {
  readonly access: Pick<Access, 'snapshot' | 'onChange'>
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly registry: MetricsRegistry
  readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
  /** Where delivery reports are kept. */
  readonly reportFile: string
  /** From which challenge codes are made; the command line has the same. */
  readonly challengeKey: Uint8Array
  /** Writes down that a destination gave back its code. */
  prove(subscriptionId: string, code: string): Promise<void>
  /** Who leads which slots, where that is known; signatures are checked there. */
  readonly leaders?: LeaderSchedule | undefined
}

export type LeaderSchedule = {
  ranges(): readonly LeaderRange[]
  onChange(listener: () => void): Disposable
}

export type Shreds = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  status(): ShredsStatus
  /** Writes the delivery reports counted so far. */
  flush(): Promise<void>
}

/** Time moves leases too: subscriptions expire, challenges fall due. */
const LOOK_MS = 500
const SECOND_MS = 1000

/** Follow the store to the leases, relay in a thread, count what each subscription got. */
export async function startShreds(options: ShredsOptions, deps: ShredsDeps): Promise<Shreds> {
  const { access, clock, random, lifecycle } = deps
  const log = deps.log.child({ part: 'shreds' })
  await using opening = new AsyncDisposableStack()
  const listen = parseListen(options.listen)
  const status = createShredsStatus()
  const metrics = shredsMetrics(deps.registry, status.readings)
  const store = opening.use(await openReportStore(deps.reportFile, { clock, random, create: true }))
  const delivery = opening.use(startDelivery(options, { store, clock, log }))
  const destinationIndexes = createDestinationIndexes()
  const alarms = createAlarms(options, {
    log,
    onChange(alarm, isRaised) {
      metrics.setAlarm(alarm, isRaised)
      if (alarm !== 'source-lost' && alarm !== 'version-mismatch') return
      if (isRaised) lifecycle.degraded(`shreds ${alarm}`, ALARM_WORDS[alarm])
      else lifecycle.recovered(`shreds ${alarm}`)
    },
  })

  let rules: DestinationRules = {
    allowLoopback: options.destinations.allowLoopback === true,
    allowPrivate: options.destinations.allowPrivate,
    ownAddresses: ownAddresses(),
    sourcePort: listen.port,
  }
  let candidates = candidatesOf(access.snapshot())
  let book = leasesNow()

  function leasesNow(): LeaseBook {
    return leasesOf(candidates, { rules, leasesMax: options.destinations.max }, clock.nowMs())
  }

  const relay = opening.use(
    await startRelayLink(
      {
        port: {
          listen,
          sources: options.sources,
          engine: options.engine,
          receiveBufferBytes: options.receiveBufferBytes,
          sendBufferBytes: options.sendBufferBytes,
        },
        version: options.version,
        signatures: options.signatures,
        signatureFailuresPerSecond: options.signatureFailuresPerSecond,
        shredsPerSlotMax: options.shredsPerSlotMax,
        window: options.window,
        caps: options.caps,
        leaders: deps.leaders?.ranges() ?? [],
        destinations: [],
      },
      { clock, random, log, onReport: takeReport, onState: reportRelay },
    ),
  )
  rules = { ...rules, sourcePort: relay.ready.address.port }

  function takeReport(report: RelayReport): void {
    delivery.take(report.destinations)
    metrics.take(report, destinationIndexes.of)
    alarms.take(report, clock.monotonicMs())
    status.take(report)
  }

  function reportRelay(isUp: boolean): void {
    if (isUp) lifecycle.recovered('shreds relay')
    else lifecycle.degraded('shreds relay', 'the relaying thread is gone and is started again')
  }

  const challenger = createChallenger({
    log,
    key: deps.challengeKey,
    prove: deps.prove,
    send: (packet, to) => (to.ip.includes(':') ? socket6 : socket4)?.send(packet, to),
    onSent: () => metrics.challengesSent.inc(),
  })
  const socket4 = opening.use(await openUdpSocket({ listen: { host: '0.0.0.0', port: 0 } }, challenger.hear))
  const socket6 = await openUdpSocket({ listen: { host: '::', port: 0 } }, challenger.hear).catch(() => undefined)
  if (socket6 !== undefined) opening.use(socket6)

  function follow(): void {
    const next = leasesNow()
    challenger.setOpen(next.challenges)
    challenger.tick(clock.nowMs())
    metrics.setRefused(next.refusals.size)
    const isSame = isSameList(next.leases, book.leases)
    book = next
    if (isSame) return
    destinationIndexes.settle(next.leases)
    void relay.setDestinations(next.leases).then(() => {
      served = next.leases
    })
  }
  /** Where packets go at this moment: what the relay has said it obeys. */
  let served = book.leases
  destinationIndexes.settle(book.leases)
  await relay.setDestinations(book.leases)
  follow()

  opening.use(
    access.onChange(() => {
      candidates = candidatesOf(access.snapshot())
      follow()
    }),
  )
  if (deps.leaders !== undefined) {
    const { leaders } = deps
    opening.use(leaders.onChange(() => relay.setLeaders(leaders.ranges())))
  }
  for (const timer of [
    clock.setRepeating(LOOK_MS, follow),
    clock.setRepeating(SECOND_MS, () => alarms.tick(clock.monotonicMs())),
    // Addresses of this machine come and go.
    clock.setRepeating(60_000, () => {
      rules = { ...rules, ownAddresses: ownAddresses() }
    }),
  ]) {
    timer.unref?.()
    opening.use(timer)
  }

  status.setReady(relay.ready)
  const { engine, note, receiveBufferBytes, address } = relay.ready
  log.info(
    {
      engine,
      ...(note === undefined ? {} : { note }),
      receiveBufferBytes,
      signatures: options.signatures === 'off' ? 'off' : deps.leaders === undefined ? 'no schedule' : 'checked',
      destinations: book.leases.length,
    },
    'shreds are relayed',
  )
  if (receiveBufferBytes < options.receiveBufferBytes) {
    log.warn({ asked: options.receiveBufferBytes, granted: receiveBufferBytes }, 'the receive buffer is small')
  }

  const opened = opening.move()
  return {
    address,
    status: () =>
      status.now({
        served,
        refusals: book.refusals,
        destinationIndexOf: destinationIndexes.of,
        totals: delivery.totals,
        alarms: alarms.raised(),
      }),
    flush: delivery.flush,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

const ALARM_WORDS = {
  'source-lost': 'no source has sent shreds for a while',
  'version-mismatch': 'shreds of another version come in: another cluster, or this one has forked',
} as const

function isSameList(a: readonly Lease[], b: readonly Lease[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ subscriptionId, ip, port }, at) => {
      const other = b[at]
      return other?.subscriptionId === subscriptionId && other.ip === ip && other.port === port
    })
  )
}

/** Numbers for those who are served, for metrics; one that is free is given out again. */
function createDestinationIndexes() {
  const taken = new Map<string, number>()
  return {
    of: (subscriptionId: string): number | undefined => taken.get(subscriptionId),
    settle(leases: readonly Lease[]): void {
      const here = new Set(leases.map(({ subscriptionId }) => subscriptionId))
      for (const subscriptionId of taken.keys()) if (!here.has(subscriptionId)) taken.delete(subscriptionId)
      const numbers = new Set(taken.values())
      let next = 1
      for (const subscriptionId of here) {
        if (taken.has(subscriptionId)) continue
        while (numbers.has(next)) next += 1
        if (next > LABELLED_DESTINATIONS_MAX) return
        numbers.add(next)
        taken.set(subscriptionId, next)
      }
    },
  }
}
