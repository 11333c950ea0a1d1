import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mustEnter, openAdmission } from '../../../test/support/access/admission.ts'
import type { Access } from '../../access/call-access.ts'
import { createFreeRefusals } from '../../access/free-refusals.ts'
import { createHeldBytes } from '../../platform/http/held-bytes.ts'
import { WsCalls } from './calls.ts'
import { HeldResponses } from './held-responses.ts'
import { PubSubRequestHandler } from './request-handler.ts'
import type { ClientSubscriptions } from './subscriptions.ts'
import type { SubscribeResponse } from './upstream-subscription.ts'

test('a call that no node has received is refunded in full, also where its plan changed since the last check of the connection', async () => {
  const { clock, fixture, enter, admission, usage, rows } = openAdmission()
  const { secret, subscription } = fixture.subscribe()
  fixture.publish()
  const caller = mustEnter(enter(secret))
  const heldBytes = createHeldBytes({ bytesMax: 1e6, ownerBytesMax: 1e6, waitMs: 1000 }, clock)
  const deps = { access: admission as Access, clock, meter: { request() {}, refused() {} } }
  let free = 0
  const request = { requestId: 'r', countFree: () => void (free += 1) }
  const calls = new WsCalls(
    { ...request, connection: {} },
    {
      ...deps,
      heldBytes,
      freeRefusals: createFreeRefusals(clock),
      forward: (_request, done) => done({ kind: 'no-upstream', isSent: false }),
    },
  )
  const responses: SubscribeResponse[] = [
    { kind: 'no-upstream', isSent: false },
    { kind: 'over-share', limitSize: 4000 },
  ]
  const subscriptions = {
    reserve: () => ({ ok: true, release() {}, [Symbol.dispose]() {} }),
    subscribe: async () => ({ id: 1, response: responses.shift(), start() {} }),
  } as unknown as ClientSubscriptions
  const requestHandler = new PubSubRequestHandler(deps)
  const client = {
    ...{ ...request, calls, subscriptions, caller },
    closeRefused: () => assert.fail(),
  }
  fixture.changeSubscription(subscription.id, {
    overrides: { methods: { getBalance: { cost: 20 }, slotSubscribe: { cost: 30 } } },
  })
  fixture.publish()
  using held = new HeldResponses(heldBytes, { owner: subscription.id, isBatch: false })
  for (const method of ['getBalance', 'slotSubscribe', 'slotSubscribe']) {
    const reply = await requestHandler.respond(client, { call: { method, paramsText: '[]', id: '1' } }, held)
    assert.match(String(reply?.text), /"error"/)
    assert.equal(admission.quota(caller).month.used, 0, method)
  }
  assert.equal(free, 3, 'each counts as a message that is not charged')
  assert.deepEqual(responses, [])
  await usage.flush()
  assert.deepEqual(rows, [])
})
