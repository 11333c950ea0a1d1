import type { Clock } from '../../core/clock.ts'
import type { AddressBackoff } from '../address-backoff.ts'
import { errorCodeOf } from '../extract-slot.ts'

/** A node that has not responded to a subscribe in this time is late. */
const OVERDUE_MS = 2000
/** Parse error, invalid request, method not found, invalid params (JSON-RPC 2.0): the request may be wrong, or of a kind that the node lacks. */
const FAULTS_OF_REQUEST: readonly (number | undefined)[] = [-32_700, -32_600, -32_601, -32_602]

/** Records what becomes of one subscribe. A node that does not accept subscriptions has the fewest, and would get every new one. */
type Acceptance = {
  accepted(): void
  refused(response: string): void
  closed(sentAtMs: number): void
}

export function recordAcceptance(refusals: AddressBackoff | undefined, clock: Clock): Acceptance {
  let isOver = false

  function settle(isFaultOfNode: boolean): void {
    // Those that fail at the same time are one failure.
    if (isFaultOfNode && !isOver && refusals?.isActive === false) refusals.recordFailure()
    isOver = true
  }

  return {
    accepted() {
      isOver = true
      refusals?.recordSuccess()
    },
    refused: (response) => settle(!FAULTS_OF_REQUEST.includes(errorCodeOf(Buffer.from(response)))),
    closed: (sentAtMs) => settle(clock.monotonicMs() - sentAtMs >= OVERDUE_MS),
  }
}
