import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import type { ClientView } from '../../upstreams/pool/pool.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import { createCatchUp, type Missed } from './catch-up.ts'

type ForwardAsync = Upstream['forwardAsync']
type Response = Awaited<ReturnType<ForwardAsync>>

/** Forwarded calls wait until `respond` gives an account at a slot. */
function setUp(threads?: number) {
  const clock = createManualClock()
  const forwarded: {
    body: string
    viewSlot: number | undefined
    respond: (slot: number, value?: unknown) => void
    refuse: (code: number) => void
    lose: () => void
  }[] = []
  const forwardAsync = ((request: { body: Buffer | string; view?: ClientView }) =>
    new Promise<Response>((resolve) => {
      const end = (member: string) =>
        resolve({ kind: 'responded', body: Buffer.from(`{"jsonrpc":"2.0",${member},"id":1}`) } as Response)
      const respond = (slot: number, value: unknown = { lamports: 1 }) =>
        end(`"result":{"context":{"slot":${slot}},"value":${JSON.stringify(value)}}`)
      const refuse = (code: number) => end(`"error":{"code":${code},"message":"refused"}`)
      const lose = () => resolve({ kind: 'timeout', isSent: true })
      forwarded.push({ body: String(request.body), viewSlot: request.view?.slot, respond, refuse, lose })
    })) as ForwardAsync
  const missed: Missed[] = []
  const catchUp = createCatchUp(clock, threads)
  const start = (
    subscription: object,
    params = '["k"]',
    isNeeded = () => true,
    { minSlot = 0, deliveredSlot = 0, kind = 'account' as 'account' | 'signature' } = {},
  ) =>
    catchUp.start(subscription, {
      ...{ upstream: { forwardAsync }, kind, params, minSlot, isNeeded },
      // State below this slot is older than what the subscribers have.
      onMissed: (one) => one.slot >= deliveredSlot && missed.push(one) > 0,
    })
  return { clock, forwarded, missed, start }
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test('each of several gateway threads runs its share of the 32 reads, and at least one', () => {
  for (const [threads, reads] of [
    [2, 16],
    [5, 6],
    [64, 1],
  ] as const) {
    const { forwarded, start } = setUp(threads)
    for (let at = 0; at < 40; at++) start({})
    assert.equal(forwarded.length, reads)
  }
})

test('runs 32 reads at once and keeps at most one waiting for each subscription', async () => {
  const { forwarded, missed, start } = setUp()
  const subscriptions = Array.from({ length: 40 }, () => ({}))
  for (let losses = 0; losses < 5; losses++) for (const subscription of subscriptions) start(subscription)
  assert.equal(forwarded.length, 32)
  // The 32 running ones were started again too, so each of the 40 waits once more.
  for (let responded = 0; responded < 72; responded++) {
    await nextTurn()
    forwarded[responded]?.respond(responded)
  }
  await nextTurn()
  assert.deepEqual([forwarded.length, missed.length], [72, 72])
})

test('neither reads nor delivers what is no longer needed', async () => {
  const { forwarded, missed, start } = setUp()
  start({}, '["k"]', () => false)
  assert.equal(forwarded.length, 0)
  let isNeeded = true
  start({}, '["k"]', () => isNeeded)
  isNeeded = false
  forwarded[0]?.respond(1)
  await nextTurn()
  assert.equal(missed.length, 0)
})

test('does not read with params that nodes may read differently or that JSON.parse changes', () => {
  const { forwarded, start } = setUp()
  start({}, '["k",{"commitment":"processed","commitment":"finalized"}]')
  start({}, '["k",{"dataSlice":{"length":18446744073709551615,"offset":0}}]')
  start({}, '["k",{"dataSlice":{"length":1.0,"offset":0}}]')
  start({}, '{"k":1}')
  assert.equal(forwarded.length, 0)
  start({}, '["k",{"commitment":"confirmed"}]')
  assert.match(forwarded[0]?.body ?? '', /"params":\["k",\{"commitment":"confirmed"\}\]/)
})

test('a signature is missed when its status has reached the commitment, whichever levels the node skipped', async () => {
  const levels = ['processed', 'confirmed', 'finalized', undefined]
  async function isMissed(commitment: string | undefined, confirmationStatus: string | undefined): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const result = { context: { slot: 9 }, value: [{ slot: 9, err: null, confirmationStatus }] }
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', result, id: 1 }))
    createCatchUp(createManualClock()).start(
      {},
      {
        upstream: { forwardAsync: (async () => ({ kind: 'responded', body })) as unknown as ForwardAsync },
        kind: 'signature',
        params: JSON.stringify(commitment === undefined ? ['s'] : ['s', { commitment }]),
        minSlot: 0,
        isNeeded: () => true,
        onMissed({ isLast, slot }) {
          resolve(isLast && slot === 9)
          return true
        },
      },
    )
    for (let turns = 0; turns < 5; turns++) await nextTurn()
    resolve(false)
    return promise
  }
  const missed = await Promise.all(
    levels.map((commitment) => Promise.all(levels.map((status) => isMissed(commitment, status)))),
  )
  assert.deepEqual(missed, [
    [true, true, true, false],
    [false, true, true, false],
    [false, false, true, false],
    // Without a commitment a subscription is for finalized.
    [false, false, true, false],
  ])
  assert.equal(await isMissed('max', 'processed'), false, 'a level that is not known is not guessed')
})

test('a missing account is reported as nodes notify a deleted one, in the encoding of the subscription', async () => {
  const data = [
    [undefined, ''],
    ['base58', ['', 'base58']],
    ['base64', ['', 'base64']],
    ['base64+zstd', ['KLUv/QBYAQAA', 'base64+zstd']],
    ['jsonParsed', ['', 'base64']],
  ] as const
  for (const [encoding, empty] of data) {
    const { forwarded, missed, start } = setUp()
    start({}, JSON.stringify(['k', { encoding }]))
    forwarded[0]?.respond(9, null)
    await nextTurn()
    const [one] = missed
    assert.deepEqual([one?.isDeleted, one?.slot], [true, 9])
    assert.deepEqual(JSON.parse(one?.result ?? ''), {
      context: { slot: 9 },
      value: { lamports: 0, data: empty, owner: '1'.repeat(32), executable: false, rentEpoch: 0, space: 0 },
    })
  }
  const unknown = setUp()
  unknown.start({}, '["k",{"encoding":"later"}]')
  unknown.forwarded[0]?.respond(9, null)
  await nextTurn()
  assert.deepEqual(unknown.missed, [])
})

test('reads at a node that has reached the slot, and again while the state is older, up to five times', async () => {
  const { clock, forwarded, missed, start } = setUp()
  start({}, '["k",{"commitment":"confirmed"}]', () => true, { minSlot: 100 })
  assert.equal(forwarded[0]?.viewSlot, 100)
  forwarded[0]?.respond(98)
  await nextTurn()
  assert.equal(missed.length, 1, 'what is known is not held back')
  clock.advance(1000)
  forwarded[1]?.respond(99)
  await nextTurn()
  assert.equal(missed.length, 1, 'the same state again')
  clock.advance(2000)
  forwarded[2]?.respond(100, { lamports: 2 })
  await nextTurn()
  assert.deepEqual(
    missed.map(({ slot }) => slot),
    [98, 100],
  )
  clock.advance(60_000)
  assert.deepEqual([forwarded.length, clock.pendingTimers()], [3, 0])

  const stuck = setUp()
  stuck.start({}, '["k"]', () => true, { minSlot: 100 })
  for (let reads = 0; reads < 10; reads++) {
    stuck.forwarded[reads]?.respond(1)
    await nextTurn()
    stuck.clock.advance(60_000)
  }
  assert.deepEqual([stuck.forwarded.length, stuck.clock.pendingTimers()], [5, 0])
})

test('finalized state is as old as it may be; a signature is read until its status is of the slot', async () => {
  const finalized = setUp()
  finalized.start({}, '["k"]', () => true, { minSlot: 100 })
  finalized.forwarded[0]?.respond(68)
  await nextTurn()
  assert.equal(finalized.clock.pendingTimers(), 0)

  const signature = setUp()
  signature.start({}, '["s"]', () => true, { minSlot: 100, kind: 'signature' })
  signature.forwarded[0]?.respond(99, [null])
  await nextTurn()
  signature.clock.advance(1000)
  signature.forwarded[1]?.respond(100, [{ slot: 90, err: null, confirmationStatus: 'finalized' }])
  await nextTurn()
  assert.deepEqual(
    [signature.missed.length, signature.missed[0]?.isLast, signature.clock.pendingTimers()],
    [1, true, 0],
  )
})

test('a signature is read from the history of the node, and from its status cache where it has no history', async () => {
  const { clock, forwarded, missed, start } = setUp()
  start({}, '["s"]', () => true, { minSlot: 1000, kind: 'signature' })
  assert.match(forwarded[0]?.body ?? '', /"params":\[\["s"\],\{"searchTransactionHistory":true\}\]/)
  forwarded[0]?.refuse(-32011)
  await nextTurn()
  assert.match(forwarded[1]?.body ?? '', /"params":\[\["s"\]\]/)
  assert.equal(forwarded[1]?.viewSlot, 1000)
  forwarded[1]?.respond(1000, [{ slot: 90, err: null, confirmationStatus: 'finalized' }])
  await nextTurn()
  assert.deepEqual([missed.length, missed[0]?.isLast], [1, true])
  clock.advance(60_000)
  assert.equal(forwarded.length, 2)

  const neither = setUp()
  neither.start({}, '["s"]', () => true, { kind: 'signature' })
  for (const read of [0, 1]) {
    neither.forwarded[read]?.refuse(-32011)
    await nextTurn()
  }
  neither.clock.advance(60_000)
  assert.deepEqual([neither.forwarded.length, neither.missed.length], [2, 0])

  const lost = setUp()
  lost.start({}, '["s"]', () => true, { kind: 'signature' })
  lost.forwarded[0]?.lose()
  await nextTurn()
  assert.equal(lost.forwarded.length, 1, 'without a response there is nothing to ask again')
})

test('a waiting repetition ends with its subscription and with the next loss', async () => {
  const { clock, forwarded, start } = setUp()
  const subscription = {}
  let isNeeded = true
  start(subscription, '["k"]', () => isNeeded, { minSlot: 100 })
  forwarded[0]?.respond(1)
  await nextTurn()
  isNeeded = false
  clock.advance(60_000)
  assert.equal(forwarded.length, 1)
  isNeeded = true
  start(subscription, '["k"]', () => isNeeded, { minSlot: 100 })
  forwarded[1]?.respond(1)
  await nextTurn()
  isNeeded = false
  let isSecondNeeded = true
  start(subscription, '["k"]', () => isSecondNeeded, { minSlot: 100 })
  assert.equal(clock.pendingTimers(), 0)
  forwarded[2]?.respond(100)
  await nextTurn()
  clock.advance(60_000)
  isSecondNeeded = false
  assert.equal(forwarded.length, 3)
})

test('state that was too old to deliver is delivered when it is read at a newer slot', async () => {
  const { clock, forwarded, missed, start } = setUp()
  start({}, '["k",{"commitment":"confirmed"}]', () => true, { minSlot: 100, deliveredSlot: 100 })
  forwarded[0]?.respond(98)
  await nextTurn()
  clock.advance(1000)
  forwarded[1]?.respond(101)
  await nextTurn()
  assert.deepEqual(
    missed.map(({ slot }) => slot),
    [101],
  )
})
