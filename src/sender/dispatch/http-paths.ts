import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { TokenBucket } from '../../core/token-bucket.ts'
import type { Secret } from '../../platform/config/secret-ref.ts'
import { createHttpPool } from '../../platform/http/client/pool.ts'
import { createPinnedAddress, type PinnedAddressDeps, parseRemoteAddress } from '../../platform/net/pinned-address.ts'
import { createGate } from '../../upstreams/address-policy.ts'
import type { Upstream } from '../../upstreams/service.ts'
import type { PathOptions } from '../options.ts'
import type { AttemptReport } from '../receipts/receipt.ts'
import type { Path } from './dispatch.ts'

const DEADLINE_MS = 5000
const SEND = { kind: 'write', isHeavy: false, method: 'sendTransaction' } as const
const SAYS_CHARS_MAX = 200
/** So many failures in a row shut a path for a while. */
const FAILURES_IN_ROW = 5
const GATE = { firstMs: 250, maxMs: 5000 }

/** The nodes that serve the bundle too: one of them, the best at the moment. */
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
        return report({ to: 'upstreams', answer: 'busy', says: `${inFlightMax} answers are awaited` })
      inFlight += 1
      const { body } = job
      const call = { ...SEND, body, bodyBytes: body.length }
      upstream.call(call, (outcome) => {
        inFlight -= 1
        if (outcome.kind === 'answered') {
          outcome.rest?.abort()
          report({ to: outcome.upstream, ...judge(outcome.status, outcome.body) })
        } else report({ to: 'upstreams', answer: 'failed', says: outcome.kind })
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
  const remote = parseRemoteAddress(options.url, ['http:', 'https:'])
  if (remote === undefined) throw new TypeError(`the address of ${name} was checked before`)
  const lookup = deps.lookup === undefined ? {} : { lookup: deps.lookup }
  const address = createPinnedAddress(remote, { allowPrivate: options.allowPrivate }, lookup)
  const pool = createHttpPool(
    {
      headers: deps.credential === undefined ? {} : { [options.credentialHeader]: deps.credential.reveal() },
      connectionsMax: inFlightMax,
      waitingMax: inFlightMax,
      ca: deps.ca,
    },
    { clock, address },
  )
  const bucket = new TokenBucket({ capacity: perSecond, perSecond }, clock.monotonicMs())
  const gate = createGate(GATE, deps)
  let failures = 0

  function settle(isGood: boolean): void {
    failures = isGood ? 0 : failures + 1
    if (isGood) gate.worked()
    else if (failures >= FAILURES_IN_ROW) gate.failed()
  }

  return {
    name,
    get isOpen() {
      return !gate.isShut
    },
    get hasSpare() {
      return pool.inFlight < inFlightMax / 2 && bucket.level(clock.monotonicMs()) >= perSecond / 2
    },
    send(job, report) {
      if (pool.inFlight >= inFlightMax)
        return report({ to: name, answer: 'busy', says: `${inFlightMax} answers are awaited` })
      if (!bucket.take(1, clock.monotonicMs()))
        return report({ to: name, answer: 'busy', says: `${perSecond} per second` })
      pool.call({ body: job.body, bodyBytes: job.body.length, deadlineMs: DEADLINE_MS }, (outcome) => {
        if (outcome.kind === 'reply') {
          outcome.rest?.abort()
          settle(outcome.head.status < 500)
          report({ to: name, ...judge(outcome.head.status, outcome.body) })
        } else {
          settle(false)
          report({ to: name, answer: 'failed', says: outcome.cause })
        }
      })
    },
    [Symbol.dispose]: () => pool[Symbol.dispose](),
  }
}

/** A result is a yes; what else is said is kept for the receipt, shortened, since it comes from outside. */
function judge(status: number, body: Buffer): Pick<AttemptReport, 'answer' | 'says'> {
  let answer: { result?: unknown; error?: { message?: unknown } } | undefined
  try {
    answer = JSON.parse(body.toString()) as typeof answer
  } catch {
    answer = undefined
  }
  if (answer?.error !== undefined && answer.error !== null) {
    const { message } = answer.error
    const text = typeof message === 'string' ? message : 'an error without a message'
    return { answer: 'refused', says: text.slice(0, SAYS_CHARS_MAX).replaceAll(/[^\x20-\x7e]/g, ' ') }
  }
  // Some relays answer with an empty body.
  if (status >= 200 && status < 300 && (answer?.result !== undefined || body.length === 0))
    return { answer: 'taken', says: '' }
  return { answer: 'refused', says: `HTTP ${status}` }
}
