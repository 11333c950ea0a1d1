import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { STREAM_PATHS } from '../../contract/stream-events.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { requestIdOf } from '../../platform/http/server/request-id.ts'
import { createConnectionCaps } from '../../platform/net/connection-caps.ts'
import type { RefusalRecorder } from '../../platform/telemetry/refusal-log.ts'
import type { WsRefusal } from '../../platform/ws/server.ts'
import { authenticate, type Policy, UNAUTHORIZED_HEADERS, unauthorizedBody } from '../api/authorize.ts'
import { requestTarget } from '../api/request-target.ts'
import { ownerOf, PRICE, type WorkBudget, type WorkOwner } from '../api/work-budget.ts'
import type { ExecutionMetrics } from '../metrics.ts'
import { workLimitReached } from '../rpc/failure.ts'
import { retryAfter } from '../rpc/post.ts'

export type HandshakeAdmissionOptions = {
  readonly connectionsPerAddress: number
  /** Where tokens are required. */
  readonly connectionsPerSubscription: number
  /** Whether loopback addresses are limited too; false by default. */
  readonly countsLoopback?: boolean
}

export type HandshakeAdmissionDeps = Policy & {
  readonly clock: Clock
  readonly clientAddress: (request: IncomingMessage) => string
  readonly metrics: Pick<ExecutionMetrics, 'refused' | 'limits'>
  readonly budget: WorkBudget
  readonly random: Random
  readonly refusals?: RefusalRecorder | undefined
}

/** The client of an admitted handshake. */
export type Admitted = {
  readonly address: string
  readonly owner: WorkOwner
  readonly tokenSha256: string | undefined
}

/** Admits handshakes: path, token, budget, connections of the subscription and of the address. */
export type HandshakeAdmission = {
  /** Why a handshake is refused; undefined where it is admitted, and counts for its subscription and address from now on. */
  admit(request: IncomingMessage): WsRefusal | undefined
  /** An admitted handshake became a connection. */
  open(request: IncomingMessage): Admitted
  /** A handshake is complete. One that was admitted but failed does not count any more. */
  settle(request: IncomingMessage): void
  /** A connection was closed. */
  leave(admitted: Admitted): void
}

const NO_LIMIT = Number.MAX_SAFE_INTEGER

export function createHandshakeAdmission(
  options: HandshakeAdmissionOptions,
  deps: HandshakeAdmissionDeps,
): HandshakeAdmission {
  const { metrics } = deps
  const caps = createConnectionCaps(
    {
      connectionsMax: NO_LIMIT,
      perAddressMax: options.connectionsPerAddress,
      perAddressPerSecond: 1_000_000,
      ...(options.countsLoopback === true ? { isExempt: () => false } : {}),
    },
    deps.clock,
  )
  const connections = new Map<WorkOwner, number>()
  const handshakes = new WeakMap<IncomingMessage, { readonly admitted: Admitted; isOpened: boolean }>()

  function check(request: IncomingMessage): WsRefusal | undefined {
    const { path, query } = requestTarget(request)
    const address = deps.clientAddress(request)
    // A refused handshake costs its address as much as an admitted one.
    const ofAddress = ownerOf(address, undefined)
    if (!(STREAM_PATHS as readonly string[]).includes(path)) {
      const unpaid = pay(ofAddress)
      if (unpaid !== undefined) return unpaid
      metrics.refused.inc({ reason: 'path' })
      return { status: 404, body: JSON.stringify(NO_STREAM) }
    }
    const caller = authenticate(deps, request, query.getAll('ticket'))
    const owner = caller?.ok === true ? ownerOf(address, caller.subscription.id) : ofAddress
    const unpaid = pay(owner)
    if (unpaid !== undefined) return unpaid
    if (caller?.ok === false) {
      metrics.refused.inc({ reason: 'token' })
      const body = JSON.stringify(unauthorizedBody('executionWs', caller, request, deps.docsUrl))
      return { status: 401, body, headers: UNAUTHORIZED_HEADERS }
    }
    const { connectionsPerSubscription, connectionsPerAddress } = options
    if (caller !== undefined && (connections.get(owner) ?? 0) >= connectionsPerSubscription) {
      metrics.refused.inc({ reason: 'subscription_limit' })
      return overLimit(connectionsPerSubscription, 'subscription', {
        limit: 'connectionsPerSubscription',
        size: connectionsPerSubscription,
      })
    }
    if (caps.enter(address) !== undefined) {
      metrics.refused.inc({ reason: 'address_limit' })
      return overLimit(connectionsPerAddress, 'address', { limit: connectionsPerAddress })
    }
    connections.set(owner, (connections.get(owner) ?? 0) + 1)
    handshakes.set(request, { admitted: { address, owner, tokenSha256: caller?.tokenSha256 }, isOpened: false })
    return undefined
  }

  function leave({ address, owner }: Admitted): void {
    caps.leave(address)
    const left = (connections.get(owner) ?? 0) - 1
    if (left > 0) connections.set(owner, left)
    else connections.delete(owner)
  }

  /** Takes the price of a handshake; the refusal where the budget is used up. */
  function pay(owner: WorkOwner): WsRefusal | undefined {
    const taken = deps.budget.take(owner, PRICE.call)
    if (taken.ok) return undefined
    metrics.refused.inc({ reason: 'work' })
    metrics.limits.inc({ limit: 'unitsPerSecond' })
    return overBudget(deps.budget, taken.retryAfterMs)
  }

  return {
    /** A refused handshake has an id, under which it is recorded. */
    admit(request) {
      const refusal = check(request)
      if (refusal === undefined) return undefined
      const requestId = requestIdOf(request, deps)
      const { status, body: message, headers } = refusal
      deps.refusals?.record({ requestId, interface: 'execution', status, message })
      return { ...refusal, headers: { ...headers, 'x-request-id': requestId } }
    },
    open(request) {
      const handshake = handshakes.get(request)
      assert(handshake !== undefined, 'the handshake was admitted')
      handshake.isOpened = true
      return handshake.admitted
    },
    settle(request) {
      const handshake = handshakes.get(request)
      if (handshake?.isOpened === false) leave(handshake.admitted)
      handshakes.delete(request)
    },
    leave,
  }
}

const NO_STREAM = { error: 'not-found', message: 'the stream has another path; paths lists them', paths: STREAM_PATHS }

function overLimit(size: number, owner: 'subscription' | 'address', data: object): WsRefusal {
  const body = JSON.stringify({ error: `limit reached: ${size} connections of one ${owner}`, ...data })
  return { status: 429, body, headers: { 'retry-after': '5' } }
}

function overBudget({ unitsPerSecond }: WorkBudget, waitMs: number): WsRefusal {
  const { message, data, retryAfterMs } = workLimitReached(unitsPerSecond, PRICE.call, waitMs)
  return { status: 429, body: JSON.stringify({ error: message, ...data }), headers: retryAfter(retryAfterMs) }
}
