import type { IncomingMessage } from 'node:http'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { redactText } from '../core/redact.ts'
import { createUlid } from '../core/ulid.ts'
import { systemClock } from './clock.ts'
import { secureRandom } from './random.ts'

const REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
/** version 00 of the W3C text; an all-zero trace id is not one. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/**
 * The id a request goes by in logs and answers: its own `x-request-id` if that is well formed, else the trace id of its
 * `traceparent`, else a new ULID. An id that holds a token is not kept, since ids are logged.
 */
export function requestIdOf(
  request: Pick<IncomingMessage, 'headersDistinct'>,
  deps: { clock: Clock; random: Random } = { clock: systemClock, random: secureRandom },
): string {
  const [id, ...more] = request.headersDistinct['x-request-id'] ?? []
  if (id !== undefined && more.length === 0 && REQUEST_ID.test(id) && redactText(id) === id) return id
  const trace = TRACEPARENT.exec(request.headersDistinct['traceparent']?.[0] ?? '')
  return trace?.[1] ?? createUlid(deps.clock.nowMs(), deps.random)
}
