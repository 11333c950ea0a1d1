import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Call } from '../../access/admission.ts'
import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { createFreeRefusals, FREE_REFUSALS } from '../../access/free-refusals.ts'
import { BUILT_IN_PLANS } from '../../access/plan.ts'
import type { Charged } from '../../access/quota/charge.ts'
import { createManualClock } from '../../core/clock.ts'
import { createHeldBytes } from '../../platform/http/held-bytes.ts'
import type { HttpResponse } from '../../platform/http/server/post.ts'
import type { AuthTarpit } from '../../platform/net/auth-tarpit.ts'
import type { UpstreamFailure } from '../../upstreams/response.ts'
import type { ListenerMeter } from '../metrics.ts'
import { createRpc } from './rpc.ts'

const CALLER = {
  subscription: { id: 'sub' },
  limits: BUILT_IN_PLANS.professional,
  nodeUser: { subscriptionId: 'sub', mayUseShared: true },
} as unknown as Caller
const QUOTA = { limit: 100, remaining: 50, resetMs: 1000 }
const CALL = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"getMultipleAccounts","params":[["a"]]}`

/** Responses to bodies where every forwarded request ends in this failure. */
function open(failure: UpstreamFailure) {
  const clock = createManualClock()
  const charges = new Set<object>()
  const sent: string[] = []
  const expected: (string | undefined)[] = []
  let units = Number.POSITIVE_INFINITY
  let isRevoked = false
  const access = {
    admit() {
      if (isRevoked) return { ok: false, reason: 'revoked' }
      if (units < 5)
        return {
          ok: false,
          reason: 'over-limit',
          limitName: 'unitsPerSecond',
          limitSize: 1,
          cost: 5,
          ...QUOTA,
          retryAfterMs: 1000,
        }
      units -= 5
      const charge = { ok: true, cost: 5, ...QUOTA }
      charges.add(charge)
      return charge
    },
    // Each charge is refunded as itself: the terms may have changed since the caller was authenticated.
    refund: (_caller: Caller, _call: Call, charge: Charged) => void charges.delete(charge),
    quota: () => QUOTA,
  } as unknown as Access
  const rpc = createRpc({
    access,
    forward(request, done) {
      sent.push(String(request.body))
      expected.push(request.expects)
      done(failure)
    },
    clock,
    meter: { request() {}, refused() {} } as unknown as ListenerMeter,
    tarpit: {} as AuthTarpit,
    heldBytes: createHeldBytes({ bytesMax: 1e9, ownerBytesMax: 1e9, waitMs: 1000 }, clock),
    freeRefusals: createFreeRefusals(clock),
  })
  return {
    charges: () => charges.size,
    setUnits: (left: number) => void (units = left),
    revoke: () => void (isRevoked = true),
    clock,
    sent,
    expected,
    respond(body: string): HttpResponse {
      let response: HttpResponse | undefined
      const sink = {
        respond: (sent: HttpResponse) => void (response = sent),
        fail: (error: unknown) => assert.fail(String(error)),
      }
      rpc.forward(CALLER, Buffer.from(body), { requestId: 'r', connection: {} }, sink)
      assert.ok(response)
      return response
    },
  }
}

const errorOf = (text: string | Buffer) => JSON.parse(String(text)) as { id: number; error: { code: number } }

test('a request that is too large for its node is refused as too large and not charged, alone and in a batch', () => {
  const on = open({ kind: 'too-large', isSent: false, message: 'the node responded with HTTP 413' })
  const single = on.respond(CALL(7))
  assert.equal(single.status, 413)
  const { id, error } = errorOf(single.body)
  assert.deepEqual([id, error.code, on.charges()], [7, -32413, 0])
  const batch = on.respond(`[${CALL(1)},${CALL(2)}]`)
  assert.equal(batch.status, 413)
  assert.deepEqual(
    (JSON.parse(String(batch.body)) as { id: number; error: { code: number } }[]).map((item) => [
      item.id,
      item.error.code,
    ]),
    [
      [1, -32413],
      [2, -32413],
    ],
  )
  assert.equal(on.charges(), 0)
})

test('a request that its node refused without processing it is not charged', () => {
  const on = open({ kind: 'declined', isSent: false, message: 'the node responded with HTTP 400' })
  const single = on.respond(CALL(7))
  assert.equal(single.status, 503)
  assert.deepEqual([errorOf(single.body).id, on.charges()], [7, 0])
})

for (const kind of ['too-large', 'declined'] as const) {
  test(`requests that a node refuses as ${kind} are free up to a rate by their bytes, and charged beyond it`, () => {
    const on = open({ kind, isSent: false, message: '' })
    const large = `{"jsonrpc":"2.0","id":1,"method":"getBalance","params":["${'a'.repeat(60_000)}"]}`
    const costOf = (body: string) => on.respond(body).headers['x-ratelimit-cost']
    const costs = Array.from({ length: FREE_REFUSALS.burst }, () => costOf(large))
    const free = costs.filter((cost) => cost === '0').length
    assert.ok(free > 15 && free <= 25, String(free))
    assert.equal(on.charges(), FREE_REFUSALS.burst - free)
    for (let at = 0; at < 10; at++) on.respond(CALL(at))
    const before = on.charges()
    const batch = on.respond(`[${CALL(1)},${CALL(2)}]`)
    assert.deepEqual([batch.headers['x-ratelimit-cost'], on.charges()], ['10', before + 2])
    assert.equal(batch.status, kind === 'too-large' ? 413 : 503)
    on.clock.advance(1000)
    assert.equal(costOf(`[${CALL(1)},${CALL(2)}]`), '0')
  })
}

test('calls that reach no node are refunded at any rate', () => {
  const on = open({ kind: 'no-upstream', isSent: false })
  for (let at = 0; at < 3 * FREE_REFUSALS.burst; at++) on.respond(CALL(at))
  assert.equal(on.charges(), 0)
})

test('a refusal has the budget of its caller, and what stays charged', () => {
  const headersOf = ({ headers }: HttpResponse) =>
    ['limit', 'remaining', 'reset', 'cost'].map((name) => headers[`x-ratelimit-${name}`])
  const charged = ['100', '50', '1', '5']
  const free = ['100', '50', '1', '0']
  const timeout = open({ kind: 'timeout', isSent: true })
  assert.equal(timeout.respond(CALL(1)).status, 504)
  assert.deepEqual(headersOf(timeout.respond(CALL(1))), charged)
  assert.deepEqual(headersOf(timeout.respond(`[${CALL(1)},${CALL(2)}]`)).at(-1), '10')
  const unsent = open({ kind: 'no-upstream', isSent: false })
  assert.deepEqual(headersOf(unsent.respond(CALL(1))), free)
  assert.deepEqual(headersOf(unsent.respond(`[${CALL(1)},${CALL(2)}]`)), free)
  const long = `[${Array.from({ length: 1001 }, (_, id) => CALL(id)).join(',')}]`
  const refused = unsent.respond(long)
  assert.deepEqual([refused.status, ...headersOf(refused)], [413, ...free])
})

test('the form of the response that a node owes is known: one, an array, or none to notifications', () => {
  const on = open({ kind: 'no-upstream', isSent: false })
  const notification = '{"jsonrpc":"2.0","method":"getVersion"}'
  for (const body of [CALL(1), notification, `[${CALL(1)},${notification}]`, `[${notification}]`]) on.respond(body)
  assert.deepEqual(on.expected, [undefined, 'nothing', 'batch', 'nothing'])
})

test("null parameters are none, as Solana's Rust clients send them", () => {
  const on = open({ kind: 'no-upstream', isSent: false })
  for (const method of ['getVersion', 'getGenesisHash', 'getHealth'])
    assert.equal(on.respond(`{"jsonrpc":"2.0","id":0,"method":"${method}","params":null}`).status, 503)
  const [sent] = on.sent
  assert.equal(sent, '{"jsonrpc":"2.0","id":0,"method":"getVersion"}')
  assert.equal(on.respond('{"jsonrpc":"2.0","id":0,"method":"getVersion","params":7}').status, 200)
  assert.match(String(on.respond('{"jsonrpc":"2.0","id":0,"method":"getVersion","params":7}').body), /-32600/)
})

test('bodies that fail their checks are free up to a rate, and charged beyond it', () => {
  const on = open({ kind: 'no-upstream', isSent: false })
  const bodies = ['{', '7', '[]', '{"jsonrpc":"2.0","id":1}']
  for (let at = 0; at < FREE_REFUSALS.burst / 2; at++) on.respond(bodies[at % bodies.length] as string)
  assert.equal(on.charges(), 0)
  // Larger than the rest of the burst.
  const large = on.respond(`{${' '.repeat(FREE_REFUSALS.burst * 16 * 1024)}`)
  assert.deepEqual([on.charges(), large.headers['x-ratelimit-cost']], [1, '5'])
  assert.match(String(large.body), /-32700/)
  for (let at = 0; at < FREE_REFUSALS.burst; at++) on.respond('{')
  assert.ok(on.charges() > FREE_REFUSALS.burst / 2 - 2, String(on.charges()))
  on.clock.advance(1000)
  const before = on.charges()
  assert.equal(on.respond('{').headers['x-ratelimit-cost'], '0')
  assert.equal(on.charges(), before)
})

test('each item of a batch that fails its checks counts as a body that does', () => {
  const on = open({ kind: 'no-upstream', isSent: false })
  const batch = `[${Array.from({ length: FREE_REFUSALS.burst / 2 }, () => '7').join(',')}]`
  assert.equal(on.respond(batch).headers['x-ratelimit-cost'], '0')
  on.respond(batch)
  const refused = on.respond(batch)
  assert.ok(on.charges() >= FREE_REFUSALS.burst / 2 - 1, String(on.charges()))
  assert.deepEqual([refused.status, refused.headers['x-ratelimit-cost']], [200, String(5 * (FREE_REFUSALS.burst / 2))])
  // What was not forwarded is refunded; the work of the checks is not.
  const before = on.charges()
  assert.equal(on.respond(`[7,${CALL(1)}]`).headers['x-ratelimit-cost'], '5')
  assert.equal(on.charges(), before + 1)
})

test('a batch whose items fail their checks is refused where the plan has no units for them', () => {
  const on = open({ kind: 'no-upstream', isSent: false })
  on.respond(`{${' '.repeat((FREE_REFUSALS.burst - 1) * 16 * 1024 - 1)}`)
  on.setUnits(0)
  const refused = on.respond('[{"id":7},{"id":8}]')
  assert.equal(refused.status, 429)
  const items = JSON.parse(String(refused.body)) as { id: number; error: { code: number } }[]
  assert.deepEqual(
    items.map(({ id, error }) => [id, error.code]),
    [
      [7, -32429],
      [8, -32429],
    ],
  )
})

test('a token that is revoked before the body has come is refused as one that was revoked before the head', () => {
  const on = open({ kind: 'no-upstream', isSent: false })
  on.revoke()
  for (const body of [CALL(1), `[${CALL(1)},${CALL(2)}]`]) {
    const { status, headers } = on.respond(body)
    assert.deepEqual([status, headers], [401, { 'content-type': 'application/json', 'www-authenticate': 'Bearer' }])
  }
})

test('a batch of which no call was forwarded has the status and the headers of that refusal', () => {
  const headOf = ({ status, headers }: HttpResponse) => [status, headers['retry-after'], headers['x-ratelimit-cost']]
  const batch = `[${CALL(1)},${CALL(2)}]`
  const overShare = open({ kind: 'over-share', isSent: false })
  assert.deepEqual(headOf(overShare.respond(batch)), headOf(overShare.respond(CALL(1))))
  assert.deepEqual(headOf(overShare.respond(batch)), [429, '2', '0'])
  const items = JSON.parse(String(overShare.respond(batch).body)) as { error: { data: { cost: number } } }[]
  assert.deepEqual(
    items.map(({ error }) => error.data.cost),
    [5, 5],
    'each refusal by a limit names the cost of its call',
  )
  assert.deepEqual(headOf(open({ kind: 'no-upstream', isSent: false }).respond(batch)), [503, '2', '0'])
  assert.deepEqual(headOf(open({ kind: 'timeout', isSent: true }).respond(batch)), [200, undefined, '10'])
  // The limit of the plan comes before what happened to the other calls.
  const limited = open({ kind: 'no-upstream', isSent: false })
  limited.setUnits(5)
  assert.deepEqual(headOf(limited.respond(batch)), [429, '1', '0'])
})

test('a batch of notifications of which none was forwarded has no body, and the status and the headers of that refusal', () => {
  const notification = '{"jsonrpc":"2.0","method":"getMultipleAccounts"}'
  const batch = `[${notification},${notification}]`
  const on = open({ kind: 'no-upstream', isSent: false })
  const headOf = ({ status, headers, body }: HttpResponse) => [status, headers['retry-after'], body]
  assert.deepEqual(headOf(on.respond(batch)), [503, '2', ''])
  on.setUnits(0)
  assert.deepEqual(headOf(on.respond(batch)), [429, '1', ''])
  assert.deepEqual(headOf(open({ kind: 'timeout', isSent: true }).respond(batch)), [204, undefined, ''])
})
