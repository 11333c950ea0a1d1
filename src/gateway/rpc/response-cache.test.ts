import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ResponseRest } from '../../platform/http/server/post.ts'
import type { Upstream } from '../../upstreams/service.ts'
import { immutableCall } from './immutable-call.ts'
import { createResponseCache, withResponseCache } from './response-cache.ts'
import { asked as askedOf, type UpstreamRequest, type UpstreamResponse } from './rpc.ts'

const SIZES = { bytesMax: 10_000, entriesMax: 3, answerBytesMax: 5000 }

function setUp(sizes = SIZES) {
  const counts = { hit: 0, miss: 0 }
  const cache = createResponseCache(sizes, {
    hit: { inc: () => void (counts.hit += 1) },
    miss: { inc: () => void (counts.miss += 1) },
  })
  const shared = {} as Upstream
  const own = { sub_own: {} as Upstream } as Record<string, Upstream>
  let asked = 0
  let respond: (request: UpstreamRequest) => UpstreamResponse = () => ({ kind: 'failed', isForwarded: true })
  const forward = withResponseCache(
    (request, done) => {
      asked += 1
      done(respond(request))
    },
    { of: (id) => own[id ?? ''] ?? shared },
    cache,
  )
  const call = askedOf(forward)
  return {
    counts,
    cache,
    own,
    asked: () => asked,
    respondWith: (next: typeof respond) => void (respond = next),
    async ask(method: string, params: string | undefined, id = '1', subscriptionId = 'sub_a'): Promise<string> {
      const single = { params, id }
      const given = await call({ body: Buffer.alloc(0), methods: [method], single, subscriptionId, connection: {} })
      return given.kind === 'responded' ? given.body.toString('latin1') : given.kind
    },
    call,
  }
}

const text = (result: string, id = '1') => `{"jsonrpc":"2.0","result":${result},"id":${id}}\n`
const responded = (body: string): UpstreamResponse => ({ kind: 'responded', body: Buffer.from(body, 'latin1') })
const BLOCK = '[5,{"commitment":"finalized"}]'

test('only what is said to be final is for ever', () => {
  const immutable: [string, string | undefined][] = [
    ['getGenesisHash', undefined],
    ['getGenesisHash', '[ ]'],
    ['getBlock', BLOCK],
    ['getTransaction', '["abc",{"encoding":"json","commitment":"finalized"}]'],
    ['getInflationReward', '[["a"],{"epoch":3,"commitment":"finalized"}]'],
  ]
  for (const [method, params] of immutable)
    assert.ok(immutableCall(method, params) !== undefined, `${method} ${params}`)
  const moving: [string, string | undefined][] = [
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
  ]
  for (const [method, params] of moving) assert.equal(immutableCall(method, params), undefined, `${method} ${params}`)
})

test('equal calls have one form, whatever the order of members; base58 keeps its case', () => {
  const key = immutableCall('getTransaction', '["Ab",{"commitment":"finalized","encoding":"json"}]')
  assert.deepEqual(immutableCall('getTransaction', '[ "Ab", {"encoding":"json", "commitment":"finalized"} ]'), key)
  assert.notDeepEqual(immutableCall('getTransaction', '["aB",{"commitment":"finalized","encoding":"json"}]'), key)
  assert.notDeepEqual(
    immutableCall('getBlock', '[18446744073709551615,{"commitment":"finalized"}]'),
    immutableCall('getBlock', '[18446744073709551614,{"commitment":"finalized"}]'),
  )
})

test('a known answer comes back byte for byte under the id of the asker', async () => {
  const { ask, asked, respondWith, counts } = setUp()
  const odd = '{"n":18446744073709551615 , "t":"\u00e9\\u0041"}'
  respondWith(() => responded(text(odd)))
  const first = await ask('getBlock', BLOCK)
  assert.equal(await ask('getBlock', '[5, {"commitment" : "finalized"}]', '"a\\"b"'), text(odd, '"a\\"b"'))
  assert.equal(
    await ask('getBlock', BLOCK, '18446744073709551615'),
    first.replace('"id":1', '"id":18446744073709551615'),
  )
  assert.deepEqual([asked(), counts], [1, { hit: 2, miss: 1 }])
})

test('the node gets the text that the response is kept under, whatever the caller wrote', async () => {
  const { ask, asked, respondWith } = setUp()
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
  assert.equal(asked(), 1)
  // Equal to JSON.parse, but not to every node: each is a call of its own.
  for (const slot of ['5.0', '5e0', '50e-1'])
    await ask('getBlock', `[${slot},{"commitment":"finalized","transactionDetails":"none"}]`)
  for (const params of [undefined, '[]']) await ask('getGenesisHash', params)
  assert.equal(new Set(bodies).size, 6)
})

test('an error, a null and what is no answer are not kept', async () => {
  const { ask, asked, respondWith, cache } = setUp()
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
  respondWith(() => ({ kind: 'timeout', isForwarded: true }))
  assert.equal(await ask('getBlock', BLOCK), 'timeout')
  assert.deepEqual([asked(), cache.size.entries], [bodies.length + 1, 0])
})

test('a pool of its own shares nothing, and forgets with its nodes', async () => {
  const { ask, asked, respondWith, own } = setUp()
  respondWith(({ subscriptionId }) => responded(text(`"${subscriptionId}"`)))
  assert.equal(await ask('getGenesisHash', undefined, '1', 'sub_own'), text('"sub_own"'))
  assert.equal(await ask('getGenesisHash', undefined, '1', 'sub_a'), text('"sub_a"'))
  assert.equal(await ask('getGenesisHash', undefined, '1', 'sub_b'), text('"sub_a"'))
  assert.equal(asked(), 2)
  own['sub_own'] = {} as Upstream
  await ask('getGenesisHash', undefined, '1', 'sub_own')
  assert.equal(asked(), 3)
})

test('entries and bytes are bounded; what was not asked for longest goes first', async () => {
  const { ask, asked, respondWith, cache } = setUp()
  respondWith(({ single }) => responded(text(single?.params?.slice(1, 2) ?? '')))
  const block = (slot: number) => ask('getBlock', `[${slot},{"commitment":"finalized"}]`)
  for (const slot of [1, 2, 3]) await block(slot)
  await block(1)
  await block(4)
  assert.equal(cache.size.entries, 3)
  const before = asked()
  await block(1)
  assert.equal(asked(), before)
  await block(2)
  assert.equal(asked(), before + 1)

  respondWith(() => responded(text(`"${'x'.repeat(4500)}"`)))
  for (const slot of [5, 6, 7]) await block(slot)
  assert.ok(cache.size.bytes <= SIZES.bytesMax)
  assert.deepEqual({ ...cache.size, bytes: 0 }, { entries: 2, bytes: 0 })
  respondWith(() => responded(text(`"${'x'.repeat(5001)}"`)))
  const kept = cache.size
  await block(8)
  assert.deepEqual(cache.size, kept)
})

test('a large answer flows and is kept once it is whole; one that breaks off is not', async () => {
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
    respondWith(() => ({ kind: 'responded', body: Buffer.from(whole.slice(0, 10)), rest: rest(isComplete) }))
    const single = { params: BLOCK, id: '1' }
    const response = await call({
      body: Buffer.alloc(0),
      methods: ['getBlock'],
      single,
      subscriptionId: 's',
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
