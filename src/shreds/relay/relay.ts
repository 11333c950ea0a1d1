import type { Clock } from '../../core/clock.ts'
import type { UdpPort } from '../../platform/udp/port.ts'
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

/** How often the relay says what it did. */
const REPORT_MS = 200

/** Receive, check, dedupe, fan out: the whole life of a packet, in a thread that does nothing else. Returns when it is told to stop. */
export async function runRelay(options: RelayOptions, { port, clock, post, poll }: RelayDeps): Promise<void> {
  const verifier = createVerifier({
    failuresPerSecond: options.signatureFailuresPerSecond,
    slots: options.window.backSlots + options.window.aheadSlots + 1,
  })
  verifier.setLeaders(options.leaders)
  const receiver = createReceiver(port.arena, { ...options, sources: options.port.sources.length }, verifier)
  using fanOut = createFanOut(port, options.caps, clock.monotonicMs())
  fanOut.setDestinations(options.destinations)
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

  /** False when the relay is to stop. */
  function obey(message: ToRelay): boolean {
    switch (message.kind) {
      case 'destinations':
        fanOut.setDestinations(message.list)
        post({ kind: 'settled', round: message.round })
        return true
      case 'leaders':
        verifier.setLeaders(message.ranges)
        return true
      case 'stop':
        return false
    }
  }

  await port.run({
    onBatch(count) {
      const nowMs = clock.monotonicMs()
      fanOut.send(receiver.sort(count, nowMs), nowMs)
    },
    onTick() {
      for (let message = poll(); message !== undefined; message = poll()) if (!obey(message)) return false
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
