import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../../core/clock.ts'
import type { Random } from '../../../core/random.ts'
import { redactText } from '../../../core/redact.ts'
import { createUlid, createUlidSource } from '../../../core/ulid.ts'
import { systemClock } from '../../process/clock.ts'
import { secureRandom } from '../../process/random.ts'

const REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
/** Version 00 of W3C Trace Context; ids of zeros only are invalid. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/**
 * The id of a request in logs and responses: its own `x-request-id` if that is well formed, else the trace id of its `traceparent`, else a new ULID.
 * An id that contains a token is not used, since ids are logged.
 */
export function requestIdOf(
  request: Pick<IncomingMessage, 'headersDistinct'>,
  deps: { clock: Clock; random: Random } = { clock: systemClock, random: secureRandom },
): string {
  const [id, ...more] = request.headersDistinct['x-request-id'] ?? []
  if (id !== undefined && more.length === 0 && isRequestId(id)) return id
  const trace = TRACEPARENT.exec(request.headersDistinct['traceparent']?.[0] ?? '')
  return trace?.[1] ?? createUlid(deps.clock.nowMs(), deps.random)
}

/** The same rule for raw headers, with cheaper new ids, for endpoints with many requests. */
export function createRequestIds(deps: { clock: Clock; random: Random }): (headers: readonly string[]) => string {
  const nextUlid = createUlidSource(deps.random)
  return (headers) => givenRequestId(headers) ?? nextUlid(deps.clock.nowMs())
}

/** The id that a request brings itself, by the same rule. */
export function givenRequestId(headers: readonly string[]): string | undefined {
  let own: string | undefined
  let ownCount = 0
  let trace: string | undefined
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string
    if (name.length === 12 && name.toLowerCase() === 'x-request-id') {
      own = headers[at + 1]
      ownCount += 1
    } else if (trace === undefined && name.length === 11 && name.toLowerCase() === 'traceparent') {
      trace = headers[at + 1]
    }
  }
  if (own !== undefined && ownCount === 1 && isRequestId(own)) return own
  return trace === undefined ? undefined : TRACEPARENT.exec(trace)?.[1]
}

function isRequestId(text: string): boolean {
  return REQUEST_ID.test(text) && redactText(text) === text
}
