import type { Access } from '../access/service.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { openUdpSocket, ownAddresses } from '../platform/udp/socket.ts'
import { decodedMetrics } from './decoded/metrics.ts'
import { type Decoded, type LookupTableSource, startDecoded } from './decoded/service.ts'
import { createSlotHistory, type DecodedReport } from './decoded/slot-history.ts'
import { createChallenger } from './destinations/challenge.ts'
import { candidatesOf, decideLeases, type LeaseDecisions } from './destinations/leases.ts'
import type { DestinationRules } from './destinations/rules.ts'
import { LABELLED_DESTINATIONS_MAX, shredsMetrics } from './metrics.ts'
import { parseListen, type ShredsOptions } from './options.ts'
import type { LeaderRange } from './relay/leaders.ts'
import { startRelayLink } from './relay/link.ts'
import type { Lease, RelayReport } from './relay/protocol.ts'
import { decodedLimitsOf, slotLimitsMax, slotLimitsOf } from './relay/slot-limits.ts'
import { createAlarms } from './report/alarms.ts'
import { startDelivery } from './report/delivery.ts'
import { createShredsStatus, type ShredsStatus } from './report/status.ts'
import { openReportStore } from './report/store.ts'

export type ShredsDeps = BaseDeps & {
  readonly access: Pick<Access, 'snapshot' | 'onChange' | 'countBytesOf'>
  readonly registry: MetricsRegistry
  readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
  /** SQLite file of the delivery reports. */
  readonly reportFile: string
  /** Key from which challenge codes are derived; the command line uses the same one. */
  readonly challengeKey: Uint8Array
  /** Stores that a destination echoed its challenge code. */
  prove(subscriptionId: string, code: string): Promise<void>
  /** The leader schedule, where it is known; signatures are checked against it. */
  readonly leaders?: LeaderSchedule | undefined
  /** Lookup tables for ShredStream Decoded, where nodes are configured. */
  readonly lookupTables?: LookupTableSource | undefined
  readonly slotLength: ShredsSlotLength
}

/** The length of a slot of the chain. */
export type ShredsSlotLength = {
  ms(): number
  onChange(listener: () => void): Disposable
  /** The newest slot relayed, for a process that has no nodes to learn the length from. */
  observe(slot: number): void
}

export type LeaderSchedule = {
  ranges(): readonly LeaderRange[]
  onChange(listener: () => void): Disposable
}

export type Shreds = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  status(): ShredsStatus
  /** The engine of ShredStream Decoded, when it is on. */
  readonly decoded: Decoded | undefined
  /** What it has decoded and lost; undefined when it is off. */
  decodedReport(): DecodedReport | undefined
  /** Writes the delivery reports counted so far. */
  flush(): Promise<void>
}

/** Leases also change with time: subscriptions expire and challenges fall due. */
const FOLLOW_MS = 500
const ALARMS_MS = 1000
const OWN_ADDRESSES_MS = 60_000

/** Starts the relay thread, follows the access store to decide its destinations, and reports what each subscription was sent. */
export async function startShreds(
  options: ShredsOptions & { readonly isDecoding?: boolean; readonly isMerging?: boolean },
  deps: ShredsDeps,
): Promise<Shreds> {
  const { access, clock, random, lifecycle, slotLength } = deps
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
      if (isRaised) lifecycle.degraded(`shreds ${alarm}`, ALARM_REASONS[alarm])
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
  let decisions = decideNow()

  function decideNow(): LeaseDecisions {
    return decideLeases(candidates, { rules, leasesMax: options.destinations.max }, clock.nowMs())
  }

  const slotHistory = createSlotHistory(clock)
  const decoded = options.isDecoding
    ? opening.use(
        await startDecoded(
          { ...options.decoded, ...decodedLimitsOf(options), isMerging: options.isMerging },
          {
            clock,
            random,
            log,
            lookupTables: deps.lookupTables,
            slotLength,
            onState: setDecodedState,
            onReport: decodedMetrics(deps.registry).record,
            onSlot: slotHistory.add,
          },
        ),
      )
    : undefined

  function setDecodedState(isUp: boolean): void {
    if (isUp) lifecycle.recovered('shreds decoded')
    else lifecycle.degraded('shreds decoded', 'the decoding thread ended unexpectedly and is restarted')
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
          busyPollMicros: options.relay.busyPollMicros,
        },
        schedule: { priority: options.relay.priority, core: options.relay.core },
        version: options.version,
        signatures: options.signatures,
        signatureFailuresPerSecond: options.signatureFailuresPerSecond,
        limits: slotLimitsOf(options, slotLength.ms()),
        limitsMax: slotLimitsMax(options),
        caps: options.caps,
        leaders: deps.leaders?.ranges() ?? [],
        destinations: [],
        decodedInput: decoded?.input,
      },
      { clock, random, log, onReport: recordReport, onState: setRelayState },
    ),
  )
  rules = { ...rules, sourcePort: relay.ready.address.port }

  function recordReport(report: RelayReport): void {
    delivery.record(report)
    for (const { lease, bytes } of report.destinations)
      if (bytes > 0) access.countBytesOf(lease.subscriptionId, 'shreds', bytes)
    metrics.record(report, destinationIndexes.of)
    alarms.record(report, clock.monotonicMs())
    status.record(report)
    if (report.newestSlot !== undefined) slotLength.observe(report.newestSlot)
  }

  function setRelayState(isUp: boolean): void {
    if (isUp) lifecycle.recovered('shreds relay')
    else lifecycle.degraded('shreds relay', 'the relay thread ended unexpectedly and is restarted')
  }

  const challenger = createChallenger({
    log,
    key: deps.challengeKey,
    prove: deps.prove,
    send: (packet, to) => (to.ip.includes(':') ? socket6 : socket4)?.send(packet, to),
    onSent: () => metrics.challengesSent.inc(),
  })
  const socket4 = opening.use(await openUdpSocket({ listen: { host: '0.0.0.0', port: 0 } }, challenger.receive))
  const socket6 = await openUdpSocket({ listen: { host: '::', port: 0 } }, challenger.receive).catch(() => undefined)
  if (socket6 !== undefined) opening.use(socket6)

  function follow(): void {
    const next = decideNow()
    challenger.setChallenges(next.challenges)
    challenger.tick(clock.nowMs())
    metrics.setRefused(next.refusals.size)
    const isSame = isSameList(next.leases, decisions.leases)
    decisions = next
    if (isSame) return
    destinationIndexes.assign(next.leases)
    void relay.setDestinations(next.leases).then(() => {
      served = next.leases
    })
  }
  /** The destinations the relay sends to now, as it has confirmed. */
  let served = decisions.leases
  destinationIndexes.assign(decisions.leases)
  await relay.setDestinations(decisions.leases)
  follow()

  opening.use(
    access.onChange(() => {
      candidates = candidatesOf(access.snapshot())
      follow()
    }),
  )
  opening.use(slotLength.onChange(() => relay.setLimits(slotLimitsOf(options, slotLength.ms()))))
  if (deps.leaders !== undefined) {
    const { leaders } = deps
    opening.use(leaders.onChange(() => relay.setLeaders(leaders.ranges())))
  }
  for (const timer of [
    clock.setRepeating(FOLLOW_MS, follow),
    clock.setRepeating(ALARMS_MS, () => alarms.tick(clock.monotonicMs())),
    clock.setRepeating(OWN_ADDRESSES_MS, () => {
      rules = { ...rules, ownAddresses: ownAddresses() }
    }),
  ]) {
    timer.unref?.()
    opening.use(timer)
  }

  status.setReady(relay.ready)
  const { engine, note, receiveBufferBytes, address, schedule } = relay.ready
  log.info(
    {
      engine,
      ...(note === undefined ? {} : { note }),
      receiveBufferBytes,
      signatures: options.signatures === 'off' ? 'off' : deps.leaders === undefined ? 'no schedule' : 'checked',
      destinations: decisions.leases.length,
    },
    'shred relay started',
  )
  if (schedule.refused.length > 0) {
    log.warn(
      { refused: schedule.refused, priority: schedule.priority },
      'the relay thread is not scheduled as configured',
    )
  }
  if (receiveBufferBytes < options.receiveBufferBytes) {
    log.warn(
      { requested: options.receiveBufferBytes, granted: receiveBufferBytes },
      'the kernel granted a smaller receive buffer than requested',
    )
  }

  const opened = opening.move()
  return {
    address,
    status: () =>
      status.read({
        served,
        refusals: decisions.refusals,
        destinationIndexOf: destinationIndexes.of,
        totals: delivery.totals,
        alarms: alarms.raised(),
      }),
    decoded,
    decodedReport: () => (decoded === undefined ? undefined : slotHistory.report()),
    flush: delivery.flush,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

const ALARM_REASONS = {
  'source-lost': 'no source has sent shreds for shreds.sourceLostMs',
  'version-mismatch': 'shreds of another version arrive: from another cluster, or the cluster has forked',
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

/** Indexes of served destinations for metric labels (metrics.ts). A subscription keeps its index while it is served; free ones are reused. */
function createDestinationIndexes() {
  const indexes = new Map<string, number>()
  return {
    of: (subscriptionId: string): number | undefined => indexes.get(subscriptionId),
    assign(leases: readonly Lease[]): void {
      const served = new Set(leases.map(({ subscriptionId }) => subscriptionId))
      for (const subscriptionId of indexes.keys()) if (!served.has(subscriptionId)) indexes.delete(subscriptionId)
      const taken = new Set(indexes.values())
      let next = 1
      for (const subscriptionId of served) {
        if (indexes.has(subscriptionId)) continue
        while (taken.has(next)) next += 1
        if (next > LABELLED_DESTINATIONS_MAX) return
        taken.add(next)
        indexes.set(subscriptionId, next)
      }
    },
  }
}
