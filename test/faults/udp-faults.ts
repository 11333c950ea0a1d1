import type { Clock, Timer } from '../../src/core/clock.ts'
import { type Random, randomInt } from '../../src/core/random.ts'
import type { UdpCounts } from './udp-fault-proxy.ts'

/** Faults of one direction of UDP packets. Rates are shares of the packets, from 0 to 1, each drawn independently. */
export type UdpFaults = {
  /** Dropped packets. */
  readonly lossRate?: number
  /** Packets that arrive twice. */
  readonly duplicateRate?: number
  /** Packets that arrive after later ones: after `reorderBy` of them, or after all within `reorderMs`. */
  readonly reorderRate?: number
  /** 3 by default. */
  readonly reorderBy?: number
  /** 50 by default: the last packet of all is not held for ever. */
  readonly reorderMs?: number
  /** Packets with one flipped bit. */
  readonly damageRate?: number
  /** Delays every packet by this time ± the jitter; jitter may reorder packets. */
  readonly delayMs?: number
  readonly jitterMs?: number
}

export type UdpPath = {
  receive(packet: Buffer): void
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

/** Packets above this number in flight are dropped and counted as lost, as in a full router. */
const HELD_PACKETS_MAX = 100_000

/** One direction of one sender: draws the faults of each packet and forwards the result. */
export function createUdpPath({ clock, random, faults, counts }: PathDeps, pass: (packet: Buffer) => void): UdpPath {
  const overtaken = new Set<Overtaken>()
  const delayed = new Set<Timer>()

  function receive(packet: Buffer): void {
    counts.received += 1
    const now = faults()
    // Every fault is drawn for every packet, so that enabling one does not change the draws of the others.
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
    receive,
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
