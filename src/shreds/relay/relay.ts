import type { Clock } from '../../core/clock.ts'
import type { UdpPort } from '../../platform/udp/port.ts'
import { openInputWriter } from '../decoded/input-ring.ts'
import { createDecodedFeed } from './decoded-feed.ts'
import { createFanOut } from './fan-out.ts'
import type { FromRelay, RelayOptions, ToRelay } from './protocol.ts'
import { createReceiver } from './receive.ts'
import { createVerifier } from './verify.ts'

export type RelayDeps = {
  readonly port: UdpPort
  readonly clock: Pick<Clock, 'monotonicMs'>
  post(message: FromRelay): void
  /** The next message for the relay, if one has come. */
  poll(): ToRelay | undefined
}

const REPORT_MS = 200

/** Runs in its own thread: receives packets, drops duplicates, verifies signatures and fans out. Returns after a `stop` message. */
export async function runRelay(options: RelayOptions, { port, clock, post, poll }: RelayDeps): Promise<void> {
  const { window } = options.limitsMax
  const verifier = createVerifier({
    failuresPerSecond: options.signatureFailuresPerSecond,
    slots: window.backSlots + window.aheadSlots + 1,
  })
  verifier.setLeaders(options.leaders)
  const receiver = createReceiver(port.arena, { ...options, sources: options.port.sources.length }, verifier)
  using fanOut = createFanOut(port, options.caps, clock.monotonicMs())
  fanOut.setDestinations(options.destinations)
  const decoded =
    options.decodedInput && createDecodedFeed(port.arena, receiver.unchecked, openInputWriter(options.decodedInput))
  let reportedMs = clock.monotonicMs()

  function report(): void {
    post({
      kind: 'report',
      ...receiver.takeCounts(),
      destinations: fanOut.takeReports(),
      newestSlot: receiver.window.newest(),
      version: receiver.window.version(),
      windowResets: receiver.window.resets(),
      overruns: port.overruns(),
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
        receiver.setLimits(message.limits)
        return true
      case 'stop':
        return false
    }
  }

  await port.run({
    onBatch(count) {
      const nowMs = clock.monotonicMs()
      const batch = receiver.select(count, nowMs)
      fanOut.send(batch, nowMs)
      decoded?.offer(batch, nowMs)
    },
    onTick() {
      for (let message = poll(); message !== undefined; message = poll()) if (!apply(message)) return false
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
