import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openAccessFolder } from '../../../../test/support/store/access-folder.ts'
import type { AdminCall } from '../../../admin/api/handler.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import { loadSettings } from '../config/settings.ts'
import { openAdminHandlers } from './admin-handlers.ts'

function callOf(input: Partial<AdminCall>): AdminCall {
  return {
    params: {},
    query: new URLSearchParams(),
    body: undefined,
    actor: { uid: 1, user: 'op', sudoUser: null, tty: null },
    nowMs: systemClock.nowMs(),
    isDryRun: false,
    ifRevision: undefined,
    signal: new AbortController().signal,
    ...input,
  }
}

test('the handlers of a process show its handover card once, its control methods, and who is near the units of a month', async () => {
  await using folder = await openAccessFolder()
  await using part = await folder.start()
  const settings = await loadSettings({ process: { env: {} } }, { state: folder.folder })
  const top = {
    atMs: 1,
    status: {},
    calls: { rpc: 4, ws: 1 },
    units: 9,
    streams: { ws: 1, grpc: 2 },
    sender: null,
    indexer: null,
    execution: null,
    upstreams: [{ name: 'n1', state: 'healthy', slot: 9, lagSlots: 0, owner: null }],
    refusals: [],
  }
  let allowPrivate = false
  const handlers = openAdminHandlers(settings, {
    store: part.store,
    access: part.access,
    random: secureRandom,
    nodesOptions: () => ({ allowPrivate }),
    operator: () => ({
      endpoints: { rpc: 'http://rpc.example:8899', missing: [] },
      methods: {
        top: () => top,
        'connection-close': ({ name }) => ({ found: name === 'c1' }),
      },
    }),
  })
  const body = { name: 'small', customer: 'acme', limits: { units_per_month: 100 } }
  const created = (await handlers.subCreate(callOf({ body }))) as {
    status: number
    body: { token: string; card: string }
  }
  assert.equal(created.status, 201)
  assert.match(created.body.card, /rpc\.example:8899/)
  assert.ok(created.body.card.includes(created.body.token))
  const shown = JSON.stringify((await handlers.subShow(callOf({ params: { subscription: 'small' } }))).body)
  assert.ok(!shown.includes(created.body.token))

  assert.deepEqual((await handlers.connectionClose(callOf({ params: { connection: 'c1' } }))).body, {
    connection: 'c1',
    closed: true,
  })
  await assert.rejects(handlers.connectionClose(callOf({ params: { connection: 'c2' } })), { code: 'not-found' })
  await assert.rejects(handlers.nodeAdd(callOf({ body: { name: 'n', rpc: 'http://224.0.0.1' } })), {
    code: 'invalid-value',
  })
  const addPrivate = async (name: string) =>
    JSON.stringify((await handlers.nodeAdd(callOf({ body: { name, rpc: 'http://10.0.0.7' } }))).body)
  assert.match(await addPrivate('n1'), /upstreams\.allowPrivate = true/)
  // As a reload sets it.
  allowPrivate = true
  assert.doesNotMatch(await addPrivate('n2'), /allowPrivate/)

  const until = systemClock.nowMs() + 10_000
  let caller = part.enter(created.body.token)
  while (!('subscription' in caller) && systemClock.nowMs() < until) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    caller = part.enter(created.body.token)
  }
  assert.ok('subscription' in caller)
  const before = (await handlers.overview(callOf({}))).body as {
    near_month_limit: { count: number }
    subscriptions_by_plan: Record<string, number>
    live: object
  }
  assert.equal(before.near_month_limit.count, 0)
  const { plan } = (await handlers.subShow(callOf({ params: { subscription: 'small' } }))).body as { plan: string }
  assert.ok((before.subscriptions_by_plan[plan] ?? 0) >= 1)
  assert.partialDeepStrictEqual(before.live, { at_ms: 1, calls: 5, units: 9, refused: 0, connections: 3, landed: null })
  for (let at = 0; at < 90; at++) assert.ok(part.access.admit(caller, { interface: 'rpc', method: 'getSlot' }).ok)
  const later = (await handlers.overview(callOf({}))).body as {
    near_month_limit: { next: { name: string; units: number }[] }
  }
  assert.deepEqual(
    later.near_month_limit.next.map(({ name, units }) => [name, units]),
    [['small', 90]],
  )
})
