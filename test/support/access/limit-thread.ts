import { parentPort, workerData } from 'node:worker_threads'
import { createManualClock } from '../../../src/core/clock.ts'
import { createKeyedBuckets } from '../../../src/core/keyed-buckets.ts'
import { createWindowCounts } from '../../../src/core/window-counts.ts'
import { type LimitMemory, openSharedLimits } from '../../../src/gateway/limits.ts'
import { createHeldBytes } from '../../../src/platform/http/held-bytes.ts'
import { createAuthTarpit } from '../../../src/platform/net/auth-tarpit.ts'
import { createConnectionCaps } from '../../../src/platform/net/connection-caps.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { createRandom } from '../process/property.ts'

export const RATE = { perSecond: 10, burst: 1000 }
export const WINDOW_MS = 10_000
export const HELD_MAX = { total: 400, key: 150 }
export const CAPS = {
  connectionsMax: 40,
  perAddressMax: 15,
  perAddressPerSecond: 100_000_000,
  isExempt: () => false,
}
export const HELD_BYTES = { bytesMax: 40_000, ownerBytesMax: 15_000, waitMs: 1000 }

export type LimitThreadData = {
  readonly memory: LimitMemory
  readonly thread: number
  readonly keys: readonly string[]
  /** What threads hold as they saw it: Int32 for each key and for all, once over all threads and once for each thread. */
  readonly witness: SharedArrayBuffer
  /** Int32 for each thread: takes so far; and how often a witness was above its limit. */
  readonly progress: SharedArrayBuffer
}

export type LimitTask =
  /** Calls of buckets, windows and held amounts, with the clock standing still. Replies with a StepReport. */
  | { readonly kind: 'steps'; readonly seed: number; readonly atMs: number; readonly steps: number }
  /** Takes and releases; for ever, or so many times, after which everything is released. */
  | { readonly kind: 'storm'; readonly subject: 'caps' | 'heldBytes'; readonly seed: number; readonly rounds: number }
  /** Refused tokens of an address. Replies with how many of them were delayed. */
  | { readonly kind: 'failures'; readonly address: string; readonly count: number }

/** By key: what was taken, the cheapest refusal, events counted, and what the thread holds at the end. */
export type StepReport = Record<string, { taken: number; refusedCost: number; events: number; held: number }>

if (parentPort !== null) {
  const port = parentPort
  const { memory, thread, keys, witness, progress } = workerData as LimitThreadData
  const limits = openSharedLimits(memory, thread)
  const clock = createManualClock()
  const nowMs = () => clock.monotonicMs()
  const buckets = createKeyedBuckets(RATE, nowMs, limits.buckets.health)
  const events = createWindowCounts(limits.failures, WINDOW_MS, nowMs)
  const amounts = limits.held.watches
  const tarpit = createAuthTarpit({}, clock, limits.failures)
  const caps = createConnectionCaps(CAPS, systemClock, limits.connections.rpc)
  const heldBytes = createHeldBytes(HELD_BYTES, systemClock, limits.held.bytes)
  const held: { key: string; amount: number }[] = []

  const steps = ({ seed, steps: count }: { seed: number; steps: number }): StepReport => {
    const random = createRandom(seed)
    const report: StepReport = Object.fromEntries(
      keys.map((key) => [key, { taken: 0, refusedCost: Number.POSITIVE_INFINITY, events: 0, held: 0 }]),
    )
    for (let step = 0; step < count; step++) {
      const key = keys[random(keys.length)] as string
      const own = report[key] as StepReport[string]
      const cost = 1 + random(9)
      if (buckets.take(key, cost).ok) own.taken += cost
      else own.refusedCost = Math.min(own.refusedCost, cost)
      if (random(3) === 0) {
        events.add(key)
        own.events += 1
      }
      if (random(2) === 0) {
        if (amounts.take(key, cost, HELD_MAX) === undefined) held.push({ key, amount: cost })
      } else {
        const [oldest] = held.splice(random(Math.max(1, held.length)), 1)
        if (oldest !== undefined) amounts.release(oldest.key, oldest.amount)
      }
    }
    for (const { key, amount } of held) (report[key] as StepReport[string]).held += amount
    return report
  }

  const storm = ({ subject, seed, rounds }: Extract<LimitTask, { kind: 'storm' }>): void => {
    const random = createRandom(seed)
    const seen = new Int32Array(witness)
    const counts = new Int32Array(progress)
    const width = keys.length + 1
    const own = (1 + thread) * width
    const maxima =
      subject === 'caps' ? [CAPS.connectionsMax, CAPS.perAddressMax] : [HELD_BYTES.bytesMax, HELD_BYTES.ownerBytesMax]
    const take = (key: string, amount: number) =>
      subject === 'caps' ? caps.enter(key) === undefined : heldBytes.acquire(key, amount)
    const release = (key: string, amount: number) =>
      subject === 'caps' ? caps.leave(key) : heldBytes.release(key, amount)
    const releaseAt = (at: number) => {
      const [entry] = held.splice(at, 1)
      if (entry === undefined) return
      const key = keys.indexOf(entry.key)
      for (const index of [key, keys.length]) {
        Atomics.sub(seen, index, entry.amount)
        Atomics.sub(seen, own + index, entry.amount)
      }
      release(entry.key, entry.amount)
    }
    for (let round = 0; round < rounds; round++) {
      const at = random(keys.length)
      const key = keys[at] as string
      const amount = subject === 'caps' ? 1 : 1 + random(4000)
      if (random(3) > 0 && take(key, amount)) {
        held.push({ key, amount })
        Atomics.add(counts, 2 * thread, 1)
        for (const [index, max] of [
          [at, maxima[1]],
          [keys.length, maxima[0]],
        ] as const) {
          // The own column first: what a dead thread leaves in it is then at least what it left in the sum.
          Atomics.add(seen, own + index, amount)
          if (Atomics.add(seen, index, amount) + amount > (max as number)) Atomics.add(counts, 2 * thread + 1, 1)
        }
      } else releaseAt(random(Math.max(1, held.length)))
    }
    while (held.length > 0) releaseAt(0)
  }

  port.on('message', (task: LimitTask) => {
    if (task.kind === 'steps') {
      clock.advance(task.atMs - clock.monotonicMs())
      port.postMessage(steps(task))
    } else if (task.kind === 'storm') {
      storm(task)
      port.postMessage(undefined)
    } else {
      let delayed = 0
      const late = { inc: () => void (delayed += 1) }
      for (let at = 0; at < task.count; at++)
        tarpit.refuse({ remoteAddress: task.address, headers: [] }, late, () => {})
      port.postMessage(delayed)
    }
  })
}
