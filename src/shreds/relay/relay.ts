import type { Clock } from '../../core/clock.ts'
import type { Sha256, Sha256Lanes } from '../../core/sha256.ts'
import type { UdpPort } from '../../platform/udp/port.ts'
import { openInputWriter } from '../decoded/input-ring.ts'
import { createDecodedFeed } from './decoded-feed.ts'
import { createDelays } from './delays.ts'
import { createFanOut } from './fan-out.ts'
import type { FromRelay, RelayOptions, ToRelay } from './protocol.ts'
import type { RelayedBatch } from './select/relayed-batch.ts'
import { createSelector } from './select/select.ts'
import { openSignatureSubmitter } from './signature-ring.ts'
import { createVerifier } from './verify.ts'

export type RelayDeps = {
  readonly port: UdpPort
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly sha256: Sha256
  readonly lanes?: Sha256Lanes | undefined
  post(message: FromRelay): void
  /** The next message for the relay, if one has come. */
  poll(): ToRelay | undefined
}

const REPORT_MS = 200

/** Runs in its own thread: receives packets, drops duplicates, verifies signatures and fans out. Returns after a `stop` message. */
export async function runRelay(options: RelayOptions, deps: RelayDeps): Promise<void> {
  const { port, clock, post, poll } = deps
  const ring = options.signatureMemory && openSignatureSubmitter(options.signatureMemory)
  const verifier = createVerifier({ failuresPerSecond: options.signatureFailuresPerSecond }, { ...deps, ring })
  verifier.setLeaders(options.leaders)
  const selector = createSelector(port.arena, { ...options, sources: options.port.sources.length }, verifier)
  using fanOut = createFanOut(port, options, clock.monotonicMs())
  fanOut.setDestinations(options.destinations)
  const decoded =
    options.decodedInput &&
    createDecodedFeed(selector.marks, { port, clock, input: openInputWriter(options.decodedInput) })
  const delays = createDelays(port)
  let reportedMs = clock.monotonicMs()

  function report(): void {
    post({
      kind: 'report',
      ...selector.takeCounts(),
      destinations: fanOut.takeReports(),
      newestSlot: selector.window.newest(),
      version: selector.window.version(),
      windowResets: selector.window.resets(),
      overruns: port.overruns(),
      delays: delays.take(),
    })
  }

  /** False when the relay stops. */
  function apply(message: ToRelay): boolean {
    switch (message.kind) {
      case 'destinations':
        fanOut.setDestinations(message.list)
        post({ kind: 'settled', round: message.round })
        return true
      case 'leaders':
        verifier.setLeaders(message.ranges)
        return true
      case 'limits':
        selector.setLimits(message.limits)
        return true
      case 'stop':
        return false
    }
  }

  function send(batch: RelayedBatch, nowMs: number): void {
    // Whole milliseconds: V8 allocates memory for a fractional number each time it is passed to a function.
    fanOut.send(batch, Math.floor(nowMs))
    delays.record(batch)
    decoded?.offer(batch)
  }

  function sendHeld(): void {
    const nowMs = clock.monotonicMs()
    for (let batch = selector.release(nowMs); batch !== undefined; batch = selector.release(nowMs)) send(batch, nowMs)
  }

  await port.run({
    onBatch(count) {
      const nowMs = clock.monotonicMs()
      send(selector.select(count, nowMs), nowMs)
      if (selector.isHolding()) sendHeld()
    },
    isWaiting: selector.isHolding,
    onWake: sendHeld,
    isIdleDue: decoded?.isWakeDue,
    onIdle: decoded?.wake,
    onTick() {
      for (let message = poll(); message !== undefined; message = poll()) if (!apply(message)) return false
      // Also while nothing is held: a late verdict shows that the checking thread runs again.
      sendHeld()
      const nowMs = clock.monotonicMs()
      fanOut.tick(nowMs)
      if (nowMs - reportedMs >= REPORT_MS) {
        reportedMs = nowMs
        report()
      }
      return true
    },
  })
  report()
  post({ kind: 'stopped' })
}
