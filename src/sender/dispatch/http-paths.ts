import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { TokenBucket } from '../../core/token-bucket.ts'
import { credentialText } from '../../platform/config/credential-text.ts'
import type { Secret } from '../../platform/config/secret-ref.ts'
import { createHttpPool } from '../../platform/http/client/pool.ts'
import { createPinnedAddress, type PinnedAddressDeps, parseRemoteAddress } from '../../platform/net/pinned-address.ts'
import { createAddressBackoff } from '../../upstreams/address-backoff.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import type { PathOptions } from '../options.ts'
import { PATH_PROTOCOLS } from '../path-protocols.ts'
import type { AttemptReport } from '../receipts/receipt.ts'
import type { Path } from './dispatch.ts'

const DEADLINE_MS = 5000
const SEND = { kind: 'write', isHeavy: false, method: 'sendTransaction' } as const
const MESSAGE_CHARS_MAX = 200
/** Consecutive failures after which a path backs off. */
const FAILURES_IN_ROW = 5
const BACKOFF = { firstMs: 250, maxMs: 5000 }

/** Sends through the best of the upstream nodes. */
export function createUpstreamPath(upstream: Upstream, inFlightMax = 1024): Path {
  let inFlight = 0
  return {
    name: 'upstreams',
    get isOpen() {
      return upstream.isAvailable
    },
    get hasSpare() {
      return inFlight < inFlightMax / 2
    },
    send(job, report) {
      if (inFlight >= inFlightMax)
        return report({ to: 'upstreams', response: 'busy', message: `${inFlightMax} requests in flight` })
      inFlight += 1
      const { body } = job
      upstream.forward({ ...SEND, body, bodyBytes: body.length }, (outcome) => {
        inFlight -= 1
        if (outcome.kind === 'responded') {
          outcome.rest?.abort()
          report({ to: outcome.nodeName, ...parseResponse(outcome.status, outcome.body) })
        } else report({ to: 'upstreams', response: 'failed', message: outcome.kind })
      })
    },
  }
}

export type HttpPathDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly credential: Secret | undefined
  readonly lookup?: PinnedAddressDeps['lookup']
  readonly ca?: string | undefined
}

/** One RPC node or relay that takes sendTransaction over HTTP. */
export function createHttpPath(options: PathOptions, deps: HttpPathDeps): Path & Disposable {
  const { name, perSecond, inFlightMax } = options
  const { clock } = deps
  const remote = parseRemoteAddress(options.url, PATH_PROTOCOLS, { mayHaveQuery: true })
  if (remote === undefined) throw new TypeError(`the address of ${name} was checked before`)
  const address = createPinnedAddress(remote, { allowPrivate: options.allowPrivate }, { lookup: deps.lookup, clock })
  const pool = createHttpPool(
    {
      headers: credentialHeaders(options, deps.credential),
      connectionsMax: inFlightMax,
      waitingMax: inFlightMax,
      ca: deps.ca,
    },
    { clock, address },
  )
  const bucket = new TokenBucket({ capacity: perSecond, perSecond }, clock.monotonicMs())
  const backoff = createAddressBackoff(BACKOFF, deps)
  let failures = 0

  function settle(isGood: boolean): void {
    failures = isGood ? 0 : failures + 1
    if (isGood) backoff.recordSuccess()
    else if (failures >= FAILURES_IN_ROW) backoff.recordFailure()
  }

  return {
    name,
    get isOpen() {
      return !backoff.isActive
    },
    get hasSpare() {
      return pool.inFlight < inFlightMax / 2 && bucket.level(clock.monotonicMs()) >= perSecond / 2
    },
    send(job, report) {
      if (pool.inFlight >= inFlightMax)
        return report({ to: name, response: 'busy', message: `${inFlightMax} requests in flight` })
      if (!bucket.take(1, clock.monotonicMs()))
        return report({ to: name, response: 'busy', message: `${perSecond} per second` })
      pool.call({ body: job.body, bodyBytes: job.body.length, deadlineMs: DEADLINE_MS }, (outcome) => {
        if (outcome.kind === 'reply') {
          outcome.rest?.abort()
          settle(outcome.head.status < 500)
          report({ to: name, ...parseResponse(outcome.head.status, outcome.body) })
        } else {
          settle(false)
          report({ to: name, response: 'failed', message: outcome.cause })
        }
      })
    },
    [Symbol.dispose]: () => pool[Symbol.dispose](),
  }
}

function credentialHeaders(
  { name, credentialHeader }: PathOptions,
  credential: Secret | undefined,
): Readonly<Record<string, string>> {
  if (credential === undefined) return {}
  return { [credentialHeader]: credentialText(credential, `the credential of the path ${name}`) }
}

/** A result means taken. The message of an error comes from outside, so it is shortened and stripped to ASCII. */
function parseResponse(status: number, body: Buffer): Pick<AttemptReport, 'response' | 'message'> {
  let response: { result?: unknown; error?: { message?: unknown } } | undefined
  try {
    response = JSON.parse(body.toString()) as typeof response
  } catch {
    response = undefined
  }
  if (response?.error !== undefined && response.error !== null) {
    const { message } = response.error
    const text = typeof message === 'string' ? message : 'an error without a message'
    return { response: 'refused', message: text.slice(0, MESSAGE_CHARS_MAX).replaceAll(/[^\x20-\x7e]/g, ' ') }
  }
  // Some relays respond with an empty body.
  if (status >= 200 && status < 300 && (response?.result !== undefined || body.length === 0))
    return { response: 'taken', message: '' }
  return { response: 'refused', message: `HTTP ${status}` }
}
