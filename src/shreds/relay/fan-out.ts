import type { UdpPort } from '../../platform/udp/port.ts'
import { CODING_SHRED_BYTES, DATA_SHRED_BYTES } from '../../solana/shred/shred.ts'
import { createDestinationHealth } from '../destinations/health.ts'
import type { DestinationReport, Lease, RelayOptions, UnsentReason } from './protocol.ts'
import { createRateCap, type RateCap } from './rate-cap.ts'
import type { RelayedBatch } from './select/relayed-batch.ts'

export type FanOut = Disposable & {
  setDestinations(list: readonly Lease[]): void
  send(batch: RelayedBatch, nowMs: number): void
  /** Polls for ICMP errors at destinations that are probed. */
  tick(nowMs: number): void
  /** Counts since the last call; a removed destination is included one last time. */
  takeReports(): DestinationReport[]
}

type FanOutOptions = Pick<RelayOptions, 'caps' | 'limitsMax'>

export function createFanOut(port: Pick<UdpPort, 'connect' | 'stage'>, options: FanOutOptions, nowMs: number): FanOut {
  const { caps } = options
  const total = createRateCap({ packets: caps.totalPacketsPerSecond, bytes: caps.totalBytesPerSecond }, nowMs)
  let destinations: Destination[] = []
  let removed: DestinationReport[] = []
  let first = 0

  return {
    setDestinations(list) {
      const before = new Map(destinations.map((destination) => [destination.key, destination]))
      destinations = list.map((lease) => {
        const key = keyOf(lease)
        const existing = before.get(key)
        before.delete(key)
        return existing ?? openDestination(lease, key, port, options, nowMs)
      })
      for (const destination of before.values()) {
        destination.close()
        removed.push(destination.takeReport())
      }
    },
    send(batch, atMs) {
      const { length } = destinations
      if (length === 0) return
      if (batch.data + batch.coding > 0) {
        port.stage(
          batch.order,
          { count: batch.data, bytes: DATA_SHRED_BYTES },
          { count: batch.coding, bytes: CODING_SHRED_BYTES },
        )
      }
      // Starts with another destination for each batch, so that the total rate cap is shared fairly.
      first = (first + 1) % length
      for (let i = 0; i < length; i++) (destinations[(first + i) % length] as Destination).send(batch, total, atMs)
    },
    tick(atMs) {
      for (const destination of destinations) destination.tick(atMs)
    },
    takeReports() {
      const reports = [...removed, ...destinations.map((destination) => destination.takeReport())]
      removed = []
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
  send(batch: RelayedBatch, total: RateCap, nowMs: number): void
  tick(nowMs: number): void
  takeReport(): DestinationReport
  close(): void
}

/** Slots remembered so that each is counted once: as many as the longest window has, rounded up to a power of two. */
function slotRingOf({ backSlots, aheadSlots }: RelayOptions['limitsMax']['window']): number {
  return 2 ** Math.ceil(Math.log2(backSlots + aheadSlots + 1))
}

function openDestination(
  lease: Lease,
  key: string,
  port: Pick<UdpPort, 'connect'>,
  { caps, limitsMax }: FanOutOptions,
  openedMs: number,
): Destination {
  const socket = port.connect(lease)
  const health = createDestinationHealth()
  const own = createRateCap(
    { packets: caps.destinationPacketsPerSecond, bytes: caps.destinationBytesPerSecond },
    openedMs,
  )
  const countedSlots = new Float64Array(slotRingOf(limitsMax.window)).fill(-1)
  let lastFault: string | undefined
  let report = newCounts()

  /** Takes the socket's pending error and returns what it means for packets that were not sent. */
  function takeFault(nowMs: number): UnsentReason {
    const fault = socket.takeFault()
    if (fault === undefined) return 'error'
    lastFault = fault
    if (fault === 'buffer-full') return 'buffer'
    if (fault !== 'refused' && fault !== 'unreachable') return 'error'
    report.refusals += 1
    health.refused(nowMs)
    return 'error'
  }

  function countSlots({ slots, slotCount }: RelayedBatch): void {
    for (let i = 0; i < slotCount; i++) {
      const slot = slots[i] as number
      const ringIndex = slot & (countedSlots.length - 1)
      if (countedSlots[ringIndex] === slot) continue
      countedSlots[ringIndex] = slot
      report.slots += 1
      if (report.firstSlot === undefined || slot < report.firstSlot) report.firstSlot = slot
      if (report.lastSlot === undefined || slot > report.lastSlot) report.lastSlot = slot
    }
  }

  return {
    key,
    send(batch, total, nowMs) {
      report.duplicates += batch.duplicates
      const offered = batch.data + batch.coding
      if (offered === 0) return
      const allowance = health.allowance(nowMs)
      if (allowance === 'none') {
        report.unsent.paused += offered
        return
      }
      const byOwn = own.allowed(CODING_SHRED_BYTES, nowMs)
      const byTotal = total.allowed(CODING_SHRED_BYTES, nowMs)
      const allowed = Math.min(offered, byOwn, byTotal, allowance === 'one' ? 1 : offered)
      if (allowed < offered) {
        const reason = allowance === 'one' ? 'paused' : byTotal < byOwn ? 'total-rate' : 'rate'
        report.unsent[reason] += offered - allowed
      }
      if (allowed <= 0) return
      if (allowance === 'one') {
        // Discards ICMP errors of packets sent before the pause: they say nothing about the destination's state now.
        socket.poll()
        socket.takeFault()
      }
      const data = Math.min(allowed, batch.data)
      const sent = socket.send(data, allowed - data)
      if (allowance === 'one') health.probeSent(nowMs)
      const bytes = Math.min(sent, data) * DATA_SHRED_BYTES + Math.max(0, sent - data) * CODING_SHRED_BYTES
      own.take(sent, bytes)
      total.take(sent, bytes)
      report.packets += sent
      report.bytes += bytes
      if (sent > 0) countSlots(batch)
      const reason = takeFault(nowMs)
      if (sent < allowed) report.unsent[reason] += allowed - sent
    },
    tick(nowMs) {
      if (health.state() !== 'trying') return
      socket.poll()
      takeFault(nowMs)
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
