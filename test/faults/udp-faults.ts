import type { Clock, Timer } from '../../src/core/clock.ts'
import { type Random, randomInt } from '../../src/core/random.ts'
import type { UdpCounts } from './udp-fault-proxy.ts'

/** What can be wrong with a way of UDP packets. Rates are shares of the packets, from 0 to 1, each drawn on its own. */
export type UdpFaults = {
  /** Vanish. */
  readonly lossRate?: number
  /** Arrive twice. */
  readonly duplicateRate?: number
  /** Are overtaken by the packets after them: by `reorderBy` of those, or by all that come within `reorderMs`. */
  readonly reorderRate?: number
  /** 3 by default. */
  readonly reorderBy?: number
  /** 50 by default: the last packet of all is not held for ever. */
  readonly reorderMs?: number
  /** Have one bit turned. */
  readonly damageRate?: number
  /** Every packet arrives so much later, give or take the jitter; with jitter later ones may overtake. */
  readonly delayMs?: number
  readonly jitterMs?: number
}

export type UdpPath = {
  take(packet: Buffer): void
  held(): number
  stop(): void
}

type PathDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly faults: () => UdpFaults
  readonly counts: UdpCounts
}
type Overtaken = { readonly packet: Buffer; left: number; readonly timer: Timer }

/** More than this under way is dropped and counted as lost, as a full router does. */
const HELD_PACKETS_MAX = 100_000

/** One way of one sender: draws the fate of each packet and passes on what is left of it. */
export function createUdpPath({ clock, random, faults, counts }: PathDeps, pass: (packet: Buffer) => void): UdpPath {
  const overtaken = new Set<Overtaken>()
  const delayed = new Set<Timer>()

  function take(packet: Buffer): void {
    counts.received += 1
    const now = faults()
    // Every fate is drawn for every packet, so that turning one fault on leaves the draws of the others as they were.
    const [isLost, isTwice, isLate, isDamaged] = [now.lossRate, now.duplicateRate, now.reorderRate, now.damageRate].map(
      (rate = 0) => random.float() < rate,
    )
    const bit = randomInt(random, Math.max(1, packet.length * 8))
    if (isLost || overtaken.size + delayed.size >= HELD_PACKETS_MAX) {
      counts.lost += 1
      return letOvertake()
    }
    let arriving = packet
    if (isDamaged && packet.length > 0) {
      counts.damaged += 1
      arriving = turnBit(packet, bit)
    }
    if (isLate) holdBack(arriving, now)
    else send(arriving, now)
    if (isTwice) {
      counts.duplicated += 1
      send(arriving, now)
    }
    if (!isLate) letOvertake()
  }

  function holdBack(packet: Buffer, { reorderBy = 3, reorderMs = 50 }: UdpFaults): void {
    counts.reordered += 1
    const entry: Overtaken = { packet, left: reorderBy, timer: clock.setTimer(reorderMs, () => letGo(entry)) }
    overtaken.add(entry)
  }

  function letOvertake(): void {
    for (const entry of [...overtaken]) {
      entry.left -= 1
      if (entry.left <= 0) letGo(entry)
    }
  }

  function letGo(entry: Overtaken): void {
    entry.timer.cancel()
    if (overtaken.delete(entry)) send(entry.packet, faults())
  }

  function send(packet: Buffer, { delayMs = 0, jitterMs = 0 }: UdpFaults): void {
    const waitMs = Math.max(0, delayMs + (random.float() * 2 - 1) * jitterMs)
    if (waitMs === 0) return out(packet)
    const timer = clock.setTimer(waitMs, () => {
      delayed.delete(timer)
      out(packet)
    })
    delayed.add(timer)
  }

  function out(packet: Buffer): void {
    counts.passed += 1
    pass(packet)
  }

  return {
    take,
    held: () => overtaken.size + delayed.size,
    stop() {
      for (const { timer } of overtaken) timer.cancel()
      for (const timer of delayed) timer.cancel()
      overtaken.clear()
      delayed.clear()
    },
  }
}

function turnBit(packet: Buffer, bit: number): Buffer {
  const copy = Buffer.from(packet)
  const at = bit >> 3
  copy[at] = (copy[at] as number) ^ (1 << (bit & 7))
  return copy
}
