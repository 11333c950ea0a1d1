import type { Logger } from '../../platform/telemetry/logger.ts'
import type { RelayReady } from '../relay/relay-in-worker.ts'

export type StartFacts = {
  readonly ready: RelayReady
  readonly signatures: 'off' | 'no schedule' | 'checked'
  readonly destinations: number
  /** As configured. */
  readonly receiveBufferBytes: number
}

/** Logs that the relay runs, and what the kernel has not granted to it. */
export function logStart(log: Logger, { ready, signatures, destinations, ...requested }: StartFacts): void {
  const { engine, note, receiveBufferBytes, schedule } = ready
  log.info(
    { engine, ...(note === undefined ? {} : { note }), receiveBufferBytes, signatures, destinations },
    'shred relay started',
  )
  if (schedule.refused.length > 0) {
    log.warn(
      { refused: schedule.refused, priority: schedule.priority },
      'the relay thread is not scheduled as configured',
    )
  }
  if (receiveBufferBytes < requested.receiveBufferBytes) {
    log.warn(
      { requested: requested.receiveBufferBytes, granted: receiveBufferBytes },
      'the kernel granted a smaller receive buffer than requested',
    )
  }
}
