import type { Access } from '../access/call-access.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { decodedMetrics } from './decoded/metrics.ts'
import { type Decoded, type LookupTableSource, startDecoded } from './decoded/service.ts'
import { createSlotHistory, type DecodedReport } from './decoded/slot-history.ts'
import { openChallenger } from './destinations/open-challenger.ts'
import { createServedDestinations } from './destinations/serve-destinations.ts'
import { shredsMetrics } from './metrics.ts'
import { parseListen, type ShredsOptions } from './options.ts'
import type { LeaderRange } from './relay/leaders.ts'
import type { RelayOptions, RelayReport } from './relay/protocol.ts'
import { startRelayInWorker } from './relay/relay-in-worker.ts'
import { decodedLimitsOf, slotLimitsMax, slotLimitsOf } from './relay/slot-limits.ts'
import { createAlarms } from './report/alarms.ts'
import { startDeliveryReports } from './report/delivery-reports.ts'
import { logStart } from './report/log-start.ts'
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

type StartOptions = ShredsOptions & { readonly isDecoding?: boolean; readonly isMerging?: boolean }

const ALARMS_MS = 1000

/** Starts the relay thread, follows the access store to decide its destinations, and reports what each subscription was sent. */
export async function startShreds(options: StartOptions, deps: ShredsDeps): Promise<Shreds> {
  const { access, clock, random, lifecycle, slotLength } = deps
  const log = deps.log.child({ part: 'shreds' })
  await using opening = new AsyncDisposableStack()
  const status = createShredsStatus()
  const metrics = shredsMetrics(deps.registry, status.readings)
  const store = opening.use(await openReportStore(deps.reportFile, { clock, random, create: true }))
  const delivery = opening.use(
    startDeliveryReports({ ...options, recordedMs: await store.newestHour() }, { store, clock, log }),
  )
  const destinations = createServedDestinations(options.destinations, { access, clock, metrics })
  const alarms = createAlarms(options, {
    log,
    onChange(alarm, isRaised) {
      metrics.setAlarm(alarm, isRaised)
      if (alarm !== 'source-lost' && alarm !== 'version-mismatch') return
      if (isRaised) lifecycle.degraded(`shreds ${alarm}`, ALARM_REASONS[alarm])
      else lifecycle.recovered(`shreds ${alarm}`)
    },
  })

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
    if (isUp) return lifecycle.recovered('shreds decoded')
    metrics.threadRestarted('decoder')
    lifecycle.degraded('shreds decoded', 'the decoding thread ended unexpectedly and is restarted')
  }

  const relay = opening.use(
    await startRelayInWorker(
      {
        ...relayOptionsOf(options, slotLength.ms()),
        leaders: deps.leaders?.ranges() ?? [],
        decodedInput: decoded?.input,
      },
      {
        clock,
        random,
        log,
        onReport: recordReport,
        onState: setRelayState,
        onSignatureRestart: () => metrics.threadRestarted('signatures'),
      },
    ),
  )

  function recordReport(report: RelayReport): void {
    delivery.record(report)
    for (const { lease, bytes } of report.destinations)
      if (bytes > 0) access.countBytesOf(lease.subscriptionId, 'shreds', bytes)
    metrics.record(report, destinations.indexOf)
    alarms.record(report, clock.monotonicMs())
    status.record(report)
    if (report.newestSlot !== undefined) slotLength.observe(report.newestSlot)
  }

  function setRelayState(isUp: boolean): void {
    if (isUp) return lifecycle.recovered('shreds relay')
    metrics.threadRestarted('relay')
    lifecycle.degraded('shreds relay', 'the relay thread ended unexpectedly and is restarted')
  }

  const challenger = opening.use(
    await openChallenger({
      log,
      key: deps.challengeKey,
      prove: deps.prove,
      onSent: () => metrics.challengesSent.inc(),
    }),
  )
  opening.use(await destinations.start({ relay, challenger }))
  opening.use(slotLength.onChange(() => relay.setLimits(slotLimitsOf(options, slotLength.ms()))))
  if (deps.leaders !== undefined) {
    const { leaders } = deps
    opening.use(leaders.onChange(() => relay.setLeaders(leaders.ranges())))
  }
  const checkAlarms = () => alarms.tick(clock.monotonicMs(), destinations.served().length > 0)
  const alarmTimer = opening.use(clock.setRepeating(ALARMS_MS, checkAlarms))
  alarmTimer.unref?.()

  status.setReady(relay.ready)
  logStart(log, {
    ready: relay.ready,
    signatures: options.signatures === 'off' ? 'off' : deps.leaders === undefined ? 'no schedule' : 'checked',
    destinations: destinations.served().length,
    receiveBufferBytes: options.receiveBufferBytes,
  })

  const opened = opening.move()
  return {
    address: relay.ready.address,
    status: () =>
      status.read({
        served: destinations.served(),
        refusals: destinations.refusals(),
        destinationIndexOf: destinations.indexOf,
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

/** The relay starts without destinations: they are set when it runs. */
function relayOptionsOf(
  options: ShredsOptions,
  slotMs: number,
): Omit<RelayOptions, 'leaders' | 'decodedInput' | 'signatureMemory'> {
  return {
    port: {
      listen: parseListen(options.listen),
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
    limits: slotLimitsOf(options, slotMs),
    limitsMax: slotLimitsMax(options),
    decodedSlotsBehindMax: decodedLimitsOf(options).slotsBehindMax,
    caps: options.caps,
    destinations: [],
  }
}
