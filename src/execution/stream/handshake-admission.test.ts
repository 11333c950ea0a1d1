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
function open() {
  const clock = createManualClock()
  const authenticate = ({ token }: { token?: string }) =>
    token === VALID
      ? { ok: true, tokenSha256: 'digest', subscription: { id: 'sub' } }
      : { ok: false, reason: token === undefined ? 'missing' : 'unknown' }
  const admission = createHandshakeAdmission({ connectionsPerAddress: 100 }, {
    access: { authenticate },
    clock,
    clientAddress: () => '192.0.2.1',
    metrics: { refused: COUNTER, limits: COUNTER },
    budget: createWorkBudget({ unitsPerSecond: 1, burstUnits: 5 }, clock),
    random: createSeededRandom(1),
  } as unknown as HandshakeAdmissionDeps)
  return (url: string, token?: string): number | undefined => {
    const rawHeaders = token === undefined ? [] : ['x-token', token]
    return admission.admit({ url, rawHeaders, headers: {}, headersDistinct: {} } as unknown as IncomingMessage)?.status
  }
}

for (const [what, url, token, status] of [
  ['an unknown token', '/v1/ws', 'slc_guess', 401],
  ['no token', '/v1/ws', undefined, 401],
  ['an unknown path', '/v1/none', VALID, 404],
] as const)
  test(`a handshake that is refused for ${what} takes of the budget of its address, and not of a subscription`, () => {
    const admit = open()
    const statuses = Array.from({ length: 7 }, () => admit(url, token))
    assert.deepEqual(statuses, [...Array(5).fill(status), 429, 429])
    assert.equal(admit('/v1/ws', VALID), undefined)
  })
