import type { Clock, Timer } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { UpstreamNode } from '../node.ts'
import type { HealthOptions } from '../options.ts'
import { applyProbeResult, NO_PROBES, type ProbeResult, type Probes, startProbes } from './probe.ts'

/** A node whose health follows the results of probes. */
export type ProbeTarget = {
  /** The same for this node in all threads. */
  readonly key: string
  readonly node: UpstreamNode
  readonly options: HealthOptions
  readonly clock: Clock
  readonly random: Random
  /** The node's slot moved. */
  readonly onSlot: () => void
  /** The length of a slot by the node's own statistics. */
  readonly onSlotLength: (ms: number) => void
}

/** Where the results of probes come from: by default this thread probes itself. */
export type StartProbing = (target: ProbeTarget) => Probes

export const probeHere: StartProbing = ({ node, options, ...deps }) => startProbes(node, options, deps)

/** The thread that probes the nodes for all threads of the process. */
export type ProbePublisher = {
  readonly start: StartProbing
  /** Undefined where it has no such node, or has not heard of it yet: its first results follow. */
  known(key: string): ProbeResult | undefined
  /** A thread waits for a probe: its breaker is half-open. */
  request(key: string): void
  onResult(listener: (key: string, result: ProbeResult) => void): Disposable
}

/** The time between two probes of a node, at least, however many threads request some. */
const REQUESTED_MS = 100

export function createProbePublisher(): ProbePublisher {
  const probed = new Map<string, { known(): ProbeResult | undefined; request(): void }>()
  const listeners = new Set<(key: string, result: ProbeResult) => void>()

  return {
    start({ key, node, options, ...deps }) {
      const { clock } = deps
      let lastMs = Number.NEGATIVE_INFINITY
      let waiting: Timer | undefined
      let slotMs: number | undefined
      const probes = startProbes(node, options, {
        ...deps,
        onProbe: () => void (lastMs = clock.monotonicMs()),
        onResult(result) {
          if (result.kind === 'slot-length') slotMs = result.ms
          for (const listener of listeners) listener(key, result)
        },
      })
      const entry = {
        known: () => knownOf(node, options, slotMs),
        request() {
          // Out of rotation here too: its next probe is due by its own backoff, and all threads get the result.
          if (node.breaker.state !== 'closed' || waiting !== undefined) return
          const inMs = Math.max(0, lastMs + REQUESTED_MS - clock.monotonicMs())
          waiting = clock.setTimer(inMs, () => {
            waiting = undefined
            probes.probe()
          })
          waiting.unref?.()
        },
      }
      probed.set(key, entry)
      return {
        probe: probes.probe,
        [Symbol.dispose]() {
          waiting?.cancel()
          probes[Symbol.dispose]()
          if (probed.get(key) === entry) probed.delete(key)
        },
      }
    },
    known: (key) => probed.get(key)?.known(),
    request: (key) => probed.get(key)?.request(),
    onResult(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
  }
}

function knownOf(node: UpstreamNode, { silentMs }: HealthOptions, slotMs: number | undefined): ProbeResult | undefined {
  const { health, latencyMs, isSilent, lastFailure } = node
  const isOut = node.breaker.state !== 'closed'
  if (health.slot === 0 && !isOut && !isSilent) return undefined
  const { slot, shredSlot } = health
  return {
    kind: 'known',
    slot,
    shredSlot,
    latencyMs,
    slotMs,
    isOut,
    silentMs: isSilent ? silentMs : undefined,
    failure: lastFailure,
  }
}

/** A thread whose nodes another thread probes. */
export type ProbeReceiver = {
  readonly start: StartProbing
  receive(key: string, result: ProbeResult): void
  /** Resolves when what is known of all nodes so far has arrived. */
  settled(): Promise<void>
}

export type ProbeReceiverDeps = {
  known(key: string): Promise<ProbeResult | undefined>
  request(key: string): void
}

export function createProbeReceiver({ known, request }: ProbeReceiverDeps): ProbeReceiver {
  const targets = new Map<string, ProbeTarget>()
  const asked = new Set<Promise<void>>()

  function receive(key: string, result: ProbeResult): void {
    const target = targets.get(key)
    if (target === undefined) return
    const { node, clock, onSlot, onSlotLength } = target
    applyProbeResult(node, result, { nowMs: clock.monotonicMs(), onSlot, onSlotLength })
  }

  function ask(target: ProbeTarget): void {
    const asking = known(target.key).then(
      (result) => {
        if (result !== undefined && targets.get(target.key) === target) receive(target.key, result)
      },
      // It follows with the next result.
      () => {},
    )
    asked.add(asking)
    void asking.then(() => asked.delete(asking))
  }

  return {
    start(target) {
      const { key, node } = target
      if (node.http === undefined) return NO_PROBES
      targets.set(key, target)
      ask(target)
      return {
        probe: () => request(key),
        [Symbol.dispose]() {
          if (targets.get(key) === target) targets.delete(key)
        },
      }
    },
    receive,
    settled: async () => void (await Promise.all(asked)),
  }
}
