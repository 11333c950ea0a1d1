import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { createWorkBudget } from '../api/work-budget.ts'
import { createHandshakeAdmission, type HandshakeAdmissionDeps } from './handshake-admission.ts'

const VALID = 'slc_valid'
const COUNTER = { inc() {} }

/** Admits handshakes with the token VALID; an address and the subscription have 5 units of work each. */
function open({ connectionsPerSubscription = 100 } = {}) {
  const clock = createManualClock()
  const authenticate = ({ token }: { token?: string }) =>
    token === VALID
      ? { ok: true, tokenSha256: 'digest', subscription: { id: 'sub' } }
      : { ok: false, reason: token === undefined ? 'missing' : 'unknown' }
  const admission = createHandshakeAdmission({ connectionsPerAddress: 3, connectionsPerSubscription }, {
    access: { authenticate },
    clock,
    clientAddress: (request: { address: string }) => request.address,
    metrics: { refused: COUNTER, limits: COUNTER },
    budget: createWorkBudget({ unitsPerSecond: 1, burstUnits: 5 }, clock),
    random: createSeededRandom(1),
  } as unknown as HandshakeAdmissionDeps)
  const requestOf = (url: string, token?: string, address = '192.0.2.1') =>
    ({
      ...{ url, address, headers: {}, headersDistinct: {} },
      rawHeaders: token === undefined ? [] : ['x-token', token],
    }) as unknown as IncomingMessage
  return {
    admission,
    requestOf,
    admit: (url: string, token?: string) => admission.admit(requestOf(url, token))?.status,
  }
}

for (const [what, url, token, status] of [
  ['an unknown token', '/v1/ws', 'slc_guess', 401],
  ['no token', '/v1/ws', undefined, 401],
  ['an unknown path', '/v1/none', VALID, 404],
] as const)
  test(`a handshake that is refused for ${what} takes of the budget of its address, and not of a subscription`, () => {
    const { admit } = open()
    const statuses = Array.from({ length: 7 }, () => admit(url, token))
    assert.deepEqual(statuses, [...Array(5).fill(status), 429, 429])
    assert.equal(admit('/v1/ws', VALID), undefined)
  })

test('a subscription has so many connections, from all addresses together; a closed or failed one makes room', () => {
  const { admission, requestOf } = open({ connectionsPerSubscription: 2 })
  const enter = (address: string, isOpened = true) => {
    const request = requestOf('/v1/ws', VALID, address)
    const refusal = admission.admit(request)
    const admitted = refusal === undefined && isOpened ? admission.open(request) : undefined
    admission.settle(request)
    return { refusal, admitted }
  }
  const first = enter('192.0.2.1')
  assert.equal(enter('192.0.2.2', false).refusal, undefined, 'its handshake fails')
  assert.equal(enter('192.0.2.3').refusal, undefined)
  const { refusal } = enter('192.0.2.4')
  assert.equal(refusal?.status, 429)
  assert.deepEqual(JSON.parse(refusal?.body ?? ''), {
    error: 'limit reached: 2 connections of one subscription',
    limit: 'connectionsPerSubscription',
    size: 2,
  })
  assert.ok(first.admitted)
  admission.leave(first.admitted)
  assert.equal(enter('192.0.2.1').refusal, undefined)
})
