import type { UdpPort } from '../../platform/udp/port.ts'
import { CODE_SHRED_BYTES, DATA_SHRED_BYTES } from '../../solana/shred/shred.ts'
import { createDestinationHealth } from '../destinations/health.ts'
import type { DestinationReport, Lease, RelayOptions, UnsentReason } from './protocol.ts'
import { createRateCap, type RateCap } from './rate-cap.ts'

/** The relayed packets of one batch. */
export type Batch = {
  /** Slots of the arena: data shreds first, then code shreds. */
  readonly order: Uint8Array
  data: number
  code: number
  /** The different chain slots the packets belong to. */
  readonly chainSlots: Float64Array
  chainSlotCount: number
  duplicates: number
}

export type FanOut = Disposable & {
  setDestinations(list: readonly Lease[]): void
  send(batch: Batch, nowMs: number): void
  /** Looks for answers of the network that no send has met. */
  tick(nowMs: number): void
  /** What happened since the last call. Destinations that are gone are told once more. */
  takeReports(): DestinationReport[]
}

type Caps = RelayOptions['caps']

export function createFanOut(port: Pick<UdpPort, 'connect' | 'stage'>, caps: Caps, nowMs: number): FanOut {
  const total = createRateCap({ packets: caps.totalPacketsPerSecond, bytes: caps.totalBytesPerSecond }, nowMs)
  let destinations: Destination[] = []
  let gone: DestinationReport[] = []
  let turn = 0

  return {
    setDestinations(list) {
      const before = new Map(destinations.map((destination) => [destination.key, destination]))
      destinations = list.map((lease) => {
        const key = keyOf(lease)
        const kept = before.get(key)
        before.delete(key)
        return kept ?? openDestination(lease, key, port, caps, nowMs)
      })
      for (const left of before.values()) {
        left.close()
        gone.push(left.takeReport())
      }
    },
    send(batch, atMs) {
      const { length } = destinations
      if (length === 0) return
      if (batch.data + batch.code > 0) {
        port.stage(
          batch.order,
          { count: batch.data, bytes: DATA_SHRED_BYTES },
          { count: batch.code, bytes: CODE_SHRED_BYTES },
        )
      }
      // Whoever is first when the total runs out is another one each time.
      turn = (turn + 1) % length
      for (let i = 0; i < length; i++) (destinations[(turn + i) % length] as Destination).offer(batch, total, atMs)
    },
    tick(atMs) {
      for (const destination of destinations) destination.tick(atMs)
    },
    takeReports() {
      const reports = [...gone, ...destinations.map((destination) => destination.takeReport())]
      gone = []
      return reports
    },
    [Symbol.dispose]() {
      for (const destination of destinations) destination.close()
      destinations = []
    },
  }
}

export function keyOf({ subscriptionId, ip, port }: Lease): string {
  return `${subscriptionId} ${ip} ${port}`
}

type Destination = {
  readonly key: string
  offer(batch: Batch, total: RateCap, nowMs: number): void
  tick(nowMs: number): void
  takeReport(): DestinationReport
  close(): void
}

/** Chain slots told apart when counting how many were covered; a power of two. */
const SLOT_RING = 256

function openDestination(
  lease: Lease,
  key: string,
  port: Pick<UdpPort, 'connect'>,
  caps: Caps,
  openedMs: number,
): Destination {
  const socket = port.connect(lease)
  const health = createDestinationHealth()
  const own = createRateCap(
    { packets: caps.destinationPacketsPerSecond, bytes: caps.destinationBytesPerSecond },
    openedMs,
  )
  const coveredSlots = new Float64Array(SLOT_RING).fill(-1)
  let lastFault: string | undefined
  let report = newCounts()

  function noteFault(nowMs: number): UnsentReason {
    const fault = socket.takeFault()
    if (fault === undefined) return 'error'
    lastFault = fault
    if (fault === 'buffer-full') return 'buffer'
    if (fault !== 'refused' && fault !== 'unreachable') return 'error'
    report.refusals += 1
    health.refused(nowMs)
    return 'error'
  }

  function cover({ chainSlots, chainSlotCount }: Batch): void {
    for (let i = 0; i < chainSlotCount; i++) {
      const slot = chainSlots[i] as number
      const position = slot & (SLOT_RING - 1)
      if (coveredSlots[position] === slot) continue
      coveredSlots[position] = slot
      report.slots += 1
      if (report.firstSlot === undefined || slot < report.firstSlot) report.firstSlot = slot
      if (report.lastSlot === undefined || slot > report.lastSlot) report.lastSlot = slot
    }
  }

  return {
    key,
    offer(batch, total, nowMs) {
      report.duplicates += batch.duplicates
      const offered = batch.data + batch.code
      if (offered === 0) return
      const allowance = health.allowance(nowMs)
      if (allowance === 'none') {
        report.unsent.paused += offered
        return
      }
      const byOwn = own.allowed(CODE_SHRED_BYTES, nowMs)
      const byTotal = total.allowed(CODE_SHRED_BYTES, nowMs)
      const allowed = Math.min(offered, byOwn, byTotal, allowance === 'one' ? 1 : offered)
      if (allowed < offered) {
        const reason = allowance === 'one' ? 'paused' : byTotal < byOwn ? 'total-rate' : 'rate'
        report.unsent[reason] += offered - allowed
      }
      if (allowed <= 0) return
      if (allowance === 'one') {
        // What was sent before the pause has been answered meanwhile; that says nothing about who listens now.
        socket.poll()
        socket.takeFault()
      }
      const data = Math.min(allowed, batch.data)
      const sent = socket.send(data, allowed - data)
      if (allowance === 'one') health.tried(nowMs)
      const bytes = Math.min(sent, data) * DATA_SHRED_BYTES + Math.max(0, sent - data) * CODE_SHRED_BYTES
      own.take(sent, bytes)
      total.take(sent, bytes)
      report.packets += sent
      report.bytes += bytes
      if (sent > 0) cover(batch)
      const reason = noteFault(nowMs)
      if (sent < allowed) report.unsent[reason] += allowed - sent
    },
    tick(nowMs) {
      if (health.state() !== 'trying') return
      socket.poll()
      noteFault(nowMs)
    },
    takeReport() {
      const taken = { lease, ...report, state: health.state(), lastFault }
      report = newCounts()
      return taken
    },
    close: socket.close,
  }
}

function newCounts() {
  return {
    packets: 0,
    bytes: 0,
    unsent: { rate: 0, 'total-rate': 0, buffer: 0, paused: 0, error: 0 },
    refusals: 0,
    slots: 0,
    firstSlot: undefined as number | undefined,
    lastSlot: undefined as number | undefined,
    duplicates: 0,
  }
}
