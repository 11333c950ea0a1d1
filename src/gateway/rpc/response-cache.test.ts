import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createHeldBytes } from '../../platform/http/held-bytes.ts'
import type { ResponseRest } from '../../platform/http/response-rest.ts'
import type { NodeResponse, UpstreamResponse } from '../../upstreams/response.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import type { ForwardRequest } from './forward.ts'
import { immutableCall } from './immutable-call.ts'
import { cachePartOf, createResponseCache, withResponseCache } from './response-cache.ts'

const SIZES = { bytesMax: 10_000, entriesMax: 3, responseBytesMax: 5000 }

const HELD_BYTES_MAX = 3000

function setUp(sizes = SIZES) {
  const counts = { hit: 0, miss: 0 }
  const cache = createResponseCache(sizes, {
    hit: { inc: () => void (counts.hit += 1) },
    miss: { inc: () => void (counts.miss += 1) },
  })
  const heldBytes = createHeldBytes({ bytesMax: 1e9, ownerBytesMax: HELD_BYTES_MAX, waitMs: 1000 }, createManualClock())
  const shared = {} as Upstream
  const own = { sub_own: {} as Upstream } as Record<string, Upstream>
  let forwarded = 0
  let respond: (request: ForwardRequest) => UpstreamResponse = () => ({ kind: 'no-upstream', isSent: false })
  const forward = withResponseCache(
    (request, done) => {
      forwarded += 1
      done(respond(request))
    },
    { of: (user) => own[user.subscriptionId] ?? shared },
    { cache, heldBytes },
  )
  const call = (request: ForwardRequest) => new Promise<UpstreamResponse>((resolve) => forward(request, resolve))
  return {
    counts,
    cache,
    heldBytes,
    own,
    forwarded: () => forwarded,
    respondWith: (next: typeof respond) => void (respond = next),
    async ask(method: string, params: string | undefined, id = '1', subscriptionId = 'sub_a'): Promise<string> {
      const single = { params, id }
      const response = await call({
        body: Buffer.alloc(0),
        methods: [method],
        single,
        nodeUser: { subscriptionId, mayUseShared: true },
        connection: {},
      })
      return response.kind === 'responded' ? response.body.toString('latin1') : response.kind
    },
    call,
  }
}

const text = (result: string, id = '1') => `{"jsonrpc":"2.0","result":${result},"id":${id}}\n`
const responded = (body: string, rest?: ResponseRest): NodeResponse => ({
  kind: 'responded',
  status: 200,
  body: Buffer.from(body, 'latin1'),
  rest,
  nodeName: 'a',
})
const BLOCK = '[5,{"commitment":"finalized"}]'

test('immutableCall accepts calls with an explicit finalized commitment only', () => {
  const immutable: [string, string | undefined][] = [
    ['getGenesisHash', undefined],
    ['getGenesisHash', '[ ]'],
    ['getBlock', BLOCK],
    ['getTransaction', '["abc",{"encoding":"json","commitment":"finalized"}]'],
    ['getInflationReward', '[["a"],{"epoch":3,"commitment":"finalized"}]'],
    ['getTransaction', '["abc",{"commitment":"finalized","withContext":false}]'],
  ]
  for (const [method, params] of immutable)
    assert.ok(immutableCall(method, params) !== undefined, `${method} ${params}`)
  const mutable: [string, string | undefined][] = [
    ['getGenesisHash', '[1]'],
    ['getBlock', '[5]'],
    ['getBlock', '[5,{"commitment":"confirmed"}]'],
    ['getBlock', '[5,{"encoding":"json"}]'],
    ['getBlock', '[5,{"commitment":"finalized"},1]'],
    ['getBlock', '{"slot":5}'],
    ['getTransaction', '["abc","json"]'],
    ['getInflationReward', '[["a"],{"commitment":"finalized"}]'],
    ['getAccountInfo', '["a",{"commitment":"finalized"}]'],
    ['getSlot', '[{"commitment":"finalized"}]'],
    ['getBlock', `["${'x'.repeat(5000)}",{"commitment":"finalized"}]`],
    ['constructor', BLOCK],
    ['getBlock', '[5,{"commitment":"confirmed","commitment":"finalized"}]'],
    ['getBlock', '[5,{"commitment":"finalized","encoding":"json","\\u0065ncoding":"base64"}]'],
    ['getBlock', '[5,{"__proto__":{"commitment":"finalized"}}]'],
    ['getTransaction', '["abc",{"commitment":"finalized","withContext":true}]'],
    ['getTransaction', '["abc",{"commitment":"finalized","withContext":null}]'],
  ]
  for (const [method, params] of mutable) assert.equal(immutableCall(method, params), undefined, `${method} ${params}`)
})

test('immutableCall gives equal calls one form, whatever the order of members, and keeps the case of base58', () => {
  const key = immutableCall('getTransaction', '["Ab",{"commitment":"finalized","encoding":"json"}]')
  assert.deepEqual(immutableCall('getTransaction', '[ "Ab", {"encoding":"json", "commitment":"finalized"} ]'), key)
  assert.notDeepEqual(immutableCall('getTransaction', '["aB",{"commitment":"finalized","encoding":"json"}]'), key)
  assert.notDeepEqual(
    immutableCall('getBlock', '[18446744073709551615,{"commitment":"finalized"}]'),
    immutableCall('getBlock', '[18446744073709551614,{"commitment":"finalized"}]'),
  )
})

test('a cached response is returned byte for byte with the id of the caller', async () => {
  const { ask, forwarded, respondWith, counts } = setUp()
  const result = '{"n":18446744073709551615 , "t":"\u00e9\\u0041"}'
  respondWith(() => responded(text(result)))
  const first = await ask('getBlock', BLOCK)
  assert.equal(await ask('getBlock', '[5, {"commitment" : "finalized"}]', '"a\\"b"'), text(result, '"a\\"b"'))
  assert.equal(
    await ask('getBlock', BLOCK, '18446744073709551615'),
    first.replace('"id":1', '"id":18446744073709551615'),
  )
  assert.deepEqual([forwarded(), counts], [1, { hit: 2, miss: 1 }])
})

test('forwards the canonical text that is the key of the cached response', async () => {
  const { ask, forwarded, respondWith } = setUp()
  const bodies: string[] = []
  respondWith((request) => {
    bodies.push(String(request.body))
    assert.equal(request.bodyBytes, undefined)
    return responded(text('1'))
  })
  await ask('getBlock', '[ 5, {"transactionDetails":"none", "commitment":"\\u0066inalized"}]', '"x"')
  assert.deepEqual(bodies, [
    '{"jsonrpc":"2.0","id":"x","method":"getBlock","params":[5,{"commitment":"finalized","transactionDetails":"none"}]}',
  ])
  await ask('getBlock', '[5,{"commitment":"finalized","transactionDetails":"none"}]')
  assert.equal(forwarded(), 1)
  // Equal to JSON.parse, but not to every node: each is a separate entry.
  for (const slot of ['5.0', '5e0', '50e-1'])
    await ask('getBlock', `[${slot},{"commitment":"finalized","transactionDetails":"none"}]`)
  for (const params of [undefined, '[]']) await ask('getGenesisHash', params)
  assert.equal(new Set(bodies).size, 6)
})

test('does not cache an error, a null result, or what is no response', async () => {
  const { ask, forwarded, respondWith, cache } = setUp()
  const bodies = [
    text('null'),
    '{"jsonrpc":"2.0","error":{"code":-32004,"message":"x"},"id":1}',
    '{"jsonrpc":"2.0","result":1,"error":{"code":1},"id":1}',
    '{"jsonrpc":"2.0","id":1}',
    '<html>"result":1</html>',
  ]
  for (const body of bodies) {
    respondWith(() => responded(body))
    assert.equal(await ask('getBlock', BLOCK), body)
  }
  respondWith(() => ({ kind: 'timeout', isSent: true }))
  assert.equal(await ask('getBlock', BLOCK), 'timeout')
  assert.deepEqual([forwarded(), cache.size.entries], [bodies.length + 1, 0])
})

test('does not cache a response with a context: its value may be null, and its slot changes', async () => {
  const { ask, forwarded, respondWith, cache } = setUp()
  const params = '["abc",{"commitment":"finalized","withContext":true}]'
  for (const result of ['{"context":{"slot":10},"value":null}', '{"context":{"slot":42},"value":{"slot":9}}']) {
    respondWith(() => responded(text(result)))
    assert.equal(await ask('getTransaction', params), text(result))
  }
  assert.deepEqual([forwarded(), cache.size.entries], [2, 0])
})

test('dedicated nodes share no entries, and a replaced pool starts empty', async () => {
  const { ask, forwarded, respondWith, own } = setUp()
  respondWith(({ nodeUser }) => responded(text(`"${nodeUser.subscriptionId}"`)))
  assert.equal(await ask('getGenesisHash', undefined, '1', 'sub_own'), text('"sub_own"'))
  assert.equal(await ask('getGenesisHash', undefined, '1', 'sub_a'), text('"sub_a"'))
  assert.equal(await ask('getGenesisHash', undefined, '1', 'sub_b'), text('"sub_a"'))
  assert.equal(forwarded(), 2)
  own['sub_own'] = {} as Upstream
  await ask('getGenesisHash', undefined, '1', 'sub_own')
  assert.equal(forwarded(), 3)
})

test('each of several gateway threads has its part of the cache', () => {
  assert.deepEqual(cachePartOf(SIZES, 1), SIZES)
  assert.deepEqual(cachePartOf(SIZES, 3), { bytesMax: 3333, entriesMax: 1, responseBytesMax: 3333 })
  assert.equal(cachePartOf(SIZES, 4).entriesMax, 1)
})

test('bounds entries and bytes, and evicts the least recently used first', async () => {
  const { ask, forwarded, respondWith, cache } = setUp()
  respondWith(({ single }) => responded(text(single?.params?.slice(1, 2) ?? '')))
  const block = (slot: number) => ask('getBlock', `[${slot},{"commitment":"finalized"}]`)
  for (const slot of [1, 2, 3]) await block(slot)
  await block(1)
  await block(4)
  assert.equal(cache.size.entries, 3)
  const before = forwarded()
  await block(1)
  assert.equal(forwarded(), before)
  await block(2)
  assert.equal(forwarded(), before + 1)

  respondWith(() => responded(text(`"${'x'.repeat(4500)}"`)))
  for (const slot of [5, 6, 7]) await block(slot)
  assert.ok(cache.size.bytes <= SIZES.bytesMax)
  assert.deepEqual({ ...cache.size, bytes: 0 }, { entries: 2, bytes: 0 })
  respondWith(() => responded(text(`"${'x'.repeat(5001)}"`)))
  const before8 = cache.size
  await block(8)
  assert.deepEqual(cache.size, before8)
})

test('caches a large response when its stream is complete, and not when it breaks off', async () => {
  const { respondWith, call, cache, ask } = setUp()
  const whole = text(`"${'y'.repeat(1000)}"`)
  const rest = (isComplete: boolean): ResponseRest => ({
    start(listener) {
      listener.onData(Buffer.from(whole.slice(10, 500)))
      listener.onData(Buffer.from(whole.slice(500)))
      if (isComplete) listener.onEnd()
      else listener.onFail()
    },
    pause() {},
    resume() {},
    abort() {},
  })
  for (const isComplete of [false, true]) {
    respondWith(() => responded(whole.slice(0, 10), rest(isComplete)))
    const single = { params: BLOCK, id: '1' }
    const response = await call({
      body: Buffer.alloc(0),
      methods: ['getBlock'],
      single,
      nodeUser: { subscriptionId: 's', mayUseShared: true },
      connection: {},
    })
    assert.ok(response.kind === 'responded')
    const parts = [response.body]
    response.rest?.start({ onData: (chunk) => parts.push(chunk), onEnd() {}, onFail() {} })
    assert.equal(Buffer.concat(parts).toString(), whole)
    assert.equal(cache.size.entries, isComplete ? 1 : 0)
  }
  assert.equal(await ask('getBlock', BLOCK), whole)
})

test('the copy of a response counts as held until its end, and is dropped where the subscription may hold no more', async () => {
  const { respondWith, call, cache, heldBytes } = setUp()
  const head = text(`"${'y'.repeat(1000)}`).slice(0, 1000)
  let source: Parameters<ResponseRest['start']>[0] | undefined
  const rest = { start: (listener: typeof source) => void (source = listener), pause() {}, resume() {}, abort() {} }
  respondWith(() => responded(head, rest))
  const open = async () => {
    const response = await call({
      ...{ body: '', methods: ['getBlock'], single: { params: BLOCK, id: '1' }, connection: {} },
      nodeUser: { subscriptionId: 'sub_a', mayUseShared: true },
    })
    assert.ok(response.kind === 'responded')
    const sent: Buffer[] = []
    response.rest?.start({ onData: (chunk) => void sent.push(chunk), onEnd() {}, onFail() {} })
    source?.onData(Buffer.alloc(1000, 'y'))
    return { rest: response.rest, sent }
  }
  await open()
  assert.equal(heldBytes.total, 2000)
  source?.onEnd()
  assert.equal(heldBytes.total, 0)
  const left = await open()
  left.rest?.abort()
  assert.equal(heldBytes.total, 0)
  await open()
  source?.onFail()
  assert.equal(heldBytes.total, 0)
  const large = await open()
  for (const chunk of [Buffer.alloc(1001, 'y'), Buffer.from('","id":1}')]) source?.onData(chunk)
  assert.deepEqual([heldBytes.total, large.sent.length], [0, 3], 'the response goes on')
  source?.onEnd()
  assert.equal(cache.size.entries, 0)
})
