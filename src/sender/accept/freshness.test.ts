import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { createFreshness, type Freshness } from './freshness.ts'

const hash = (n: number) => new Uint8Array(32).fill(n)

test('checks polled blockhashes from memory and looks up others once; refuses nothing when the node does not respond', async () => {
  const clock = createManualClock()
  const asked: string[] = []
  let latest = { blockhash: encodeBase58(hash(1)), lastValidBlockHeight: 250 }
  let isValid: boolean | undefined = true
  const callNode = async (method: string) => {
    asked.push(method)
    if (method === 'getLatestBlockhash') return { value: latest }
    return isValid === undefined ? undefined : { value: isValid }
  }
  using freshness = createFreshness({ callNode, clock, slotMs: () => 400, bestSlot: () => 0, waitingMax: 64 })
  await clock.advanceAsync(1000)
  assert.deepEqual(asked, [], 'no call to the node without transactions')
  assert.deepEqual(
    await Promise.all([freshness.check(encodeBase58(hash(7))), freshness.check(encodeBase58(hash(7)))]),
    ['fresh', 'fresh'],
  )
  assert.deepEqual(asked, ['isBlockhashValid'])
  await clock.advanceAsync(400)
  latest = { blockhash: encodeBase58(hash(2)), lastValidBlockHeight: 399 }
  await clock.advanceAsync(400)
  asked.length = 0
  assert.equal(await freshness.check(encodeBase58(hash(1))), 'fresh', '149 blocks old')
  assert.deepEqual(asked, [])
  latest = { blockhash: encodeBase58(hash(3)), lastValidBlockHeight: 400 }
  await clock.advanceAsync(400)
  isValid = false
  assert.equal(await freshness.check(encodeBase58(hash(1))), 'expired', '150 blocks old, and the node agrees')
  assert.equal(await freshness.check(encodeBase58(hash(2))), 'fresh')
  isValid = undefined
  assert.equal(await freshness.check(encodeBase58(hash(9))), 'unknown')
})

test('renews a fresh blockhash in the background', async () => {
  const clock = createManualClock()
  let isValid = true
  let asked = 0
  const callNode = async (method: string) => {
    if (method === 'getLatestBlockhash') return undefined
    asked += 1
    return { value: isValid }
  }
  using freshness = createFreshness({ callNode, clock, slotMs: () => 400, bestSlot: () => 0, waitingMax: 64 })
  const blockhash = encodeBase58(hash(7))
  assert.equal(await freshness.check(blockhash), 'fresh')
  await clock.advanceAsync(2900)
  assert.deepEqual([freshness.check(blockhash), asked], ['fresh', 1])
  await clock.advanceAsync(200)
  isValid = false
  assert.deepEqual([freshness.check(blockhash), asked], ['fresh', 2], 'known at once, and renewed')
  await clock.advanceAsync(1)
  assert.equal(freshness.check(blockhash), 'expired')
})

test('a blockhash that only a node behind the others does not know is unknown, not expired', async () => {
  const clock = createManualClock()
  let slot = 997
  const callNode = async (method: string) =>
    method === 'isBlockhashValid' ? { context: { slot }, value: false } : undefined
  using freshness = createFreshness({ callNode, clock, slotMs: () => 400, bestSlot: () => 1000, waitingMax: 64 })
  assert.equal(await freshness.check('a'), 'unknown')
  slot = 998
  assert.equal(freshness.check('a'), 'unknown', 'for a second')
  await clock.advanceAsync(1000)
  assert.equal(await settled(freshness.check('a'), clock, 400), 'expired')
})

/** The state once the given time has passed; undefined when it is not known by then. */
async function settled(state: ReturnType<Freshness['check']>, clock: ManualClock, afterMs: number) {
  let found: Awaited<typeof state> | undefined
  void Promise.resolve(state).then((known) => {
    found = known
  })
  await clock.advanceAsync(afterMs)
  return found
}

test('a blockhash that a node has never known is looked up again after a slot, before it is refused', async () => {
  const clock = createManualClock()
  const valid = new Set<string>()
  const asked: string[] = []
  const callNode = async (method: string, [blockhash]: readonly unknown[]) => {
    if (method !== 'isBlockhashValid') return undefined
    asked.push(String(blockhash))
    return { context: { slot: 1000 }, value: valid.has(String(blockhash)) }
  }
  using freshness = createFreshness({ callNode, clock, slotMs: () => 400, bestSlot: () => 1000, waitingMax: 64 })
  const [early, same] = [freshness.check('new'), freshness.check('new')]
  const old = freshness.check('old')
  assert.deepEqual(await Promise.all([early, old].map((state) => settled(state, clock, 199))), [undefined, undefined])
  valid.add('new')
  await clock.advanceAsync(400)
  assert.deepEqual(await Promise.all([early, same, old]), ['fresh', 'fresh', 'expired'])
  assert.deepEqual(asked, ['new', 'old', 'new', 'old'])
  valid.delete('new')
  await clock.advanceAsync(10_000)
  assert.deepEqual(
    [await settled(freshness.check('new'), clock, 0), await settled(freshness.check('old'), clock, 0)],
    ['expired', 'expired'],
    'one that was known, and one that was unknown a slot ago, are refused at once',
  )
})

test('a second lookup that finds nothing out leaves the result of the first', async () => {
  for (const second of [undefined, { context: { slot: 997 }, value: false }]) {
    const clock = createManualClock()
    const responses: unknown[] = [{ context: { slot: 1000 }, value: false }, second]
    const callNode = async (method: string) => (method === 'isBlockhashValid' ? responses.shift() : undefined)
    using freshness = createFreshness({ callNode, clock, slotMs: () => 400, bestSlot: () => 1000, waitingMax: 64 })
    assert.equal(await settled(freshness.check('invented'), clock, 400), 'expired')
    assert.equal(responses.length, 0)
  }
})

test('a blockhash that becomes the newest while its second lookup is due is fresh, whatever that finds', async () => {
  const clock = createManualClock()
  let latest = 'older'
  const callNode = async (method: string) => {
    if (method !== 'getLatestBlockhash') return { context: { slot: 1000 }, value: false }
    return { context: { slot: 1000 }, value: { blockhash: latest, lastValidBlockHeight: 500 } }
  }
  using freshness = createFreshness({ callNode, clock, slotMs: () => 400, bestSlot: () => 1000, waitingMax: 64 })
  const checked = freshness.check('newest')
  await clock.advanceAsync(0)
  latest = 'newest'
  assert.equal(await settled(checked, clock, 400), 'fresh')
})

test('a lookup at a node that does not know a blockhash yet does not hide that another one has found it meanwhile', async () => {
  const clock = createManualClock()
  const asked: ((value: unknown) => void)[] = []
  const callNode = async (method: string) =>
    method === 'isBlockhashValid' ? new Promise<unknown>((resolve) => asked.push(resolve)) : undefined
  using freshness = createFreshness({ callNode, clock, slotMs: () => 400, bestSlot: () => 1000, waitingMax: 64 })
  const first = freshness.check('new')
  asked[0]?.({ context: { slot: 1000 }, value: false })
  await clock.advanceAsync(400)
  const second = freshness.check('new')
  assert.equal(asked.length, 3, 'the second lookup of the first check, and one of the second check')
  asked[1]?.({ context: { slot: 1000 }, value: true })
  assert.equal(await first, 'fresh')
  asked[2]?.({ context: { slot: 1000 }, value: false })
  assert.equal(await second, 'fresh')
  assert.equal(freshness.check('new'), 'fresh')
})

test('limits how many transactions wait for a second lookup; others are refused after the first, and so are those with a nonce', async () => {
  for (const blockhashOf of [(n: number) => `invented ${n}`, () => 'invented']) {
    const clock = createManualClock()
    const callNode = async () => ({ context: { slot: 1000 }, value: false })
    const bestSlot = () => 1000
    using freshness = createFreshness({ callNode, clock, slotMs: () => 400, bestSlot, waitingMax: 64 })
    const states: unknown[] = []
    const check = async (n: number, isNonce: boolean) => states.push(await freshness.check(blockhashOf(n), isNonce))
    for (let n = 0; n < 60; n++) void check(n, false)
    for (let n = 0; n < 10; n++) void check(n, true)
    await clock.advanceAsync(0)
    assert.equal(states.length, 10, 'those with a nonce')
    for (let n = 60; n < 600; n++) {
      void check(n, false)
      await clock.advanceAsync(0)
    }
    assert.deepEqual(new Set(states), new Set(['expired']))
    assert.equal(states.length, 610 - 64)
    await clock.advanceAsync(400)
    assert.equal(states.length, 610)
  }
})

test('limits concurrent lookups of blockhashes; beyond the limit they are unknown', async () => {
  const clock = createManualClock()
  const { promise, resolve } = Promise.withResolvers<unknown>()
  let asked = 0
  const callNode = () => {
    asked += 1
    return promise
  }
  using freshness = createFreshness({ callNode, clock, slotMs: () => 400, bestSlot: () => 0, waitingMax: 64 })
  const checks = Array.from({ length: 300 }, (_, n) => freshness.check(`invented ${n}`))
  assert.deepEqual([asked, checks.at(-1)], [256, 'unknown'])
  resolve({ value: false })
  assert.equal(await settled(checks[0] ?? 'fresh', clock, 400), 'expired')
})

test('its times are slots of the chain: at 200 ms a blockhash is polled, renewed and forgotten twice as fast', async () => {
  const clock = createManualClock()
  let slotMs = 400
  let isValid = true
  const asked = { getLatestBlockhash: 0, isBlockhashValid: 0 }
  const callNode = async (method: string) => {
    asked[method as keyof typeof asked] += 1
    return method === 'isBlockhashValid' ? { value: isValid } : undefined
  }
  using freshness = createFreshness({ callNode, clock, slotMs: () => slotMs, bestSlot: () => 0, waitingMax: 64 })
  const old = encodeBase58(hash(7))
  for (const [length, renewMs, freshMs, polls] of [
    [400, 3000, 10_000, 5],
    [200, 1500, 5000, 10],
  ] as const) {
    slotMs = length
    isValid = true
    // The timer that was set at the length before.
    await clock.advanceAsync(1000)
    assert.equal(await freshness.check(`${old}${length}`), 'fresh')
    asked.getLatestBlockhash = 0
    await clock.advanceAsync(1000)
    assert.equal(asked.getLatestBlockhash, polls)
    asked.isBlockhashValid = 0
    await clock.advanceAsync(renewMs - 1001)
    assert.deepEqual([freshness.check(`${old}${length}`), asked.isBlockhashValid], ['fresh', 0])
    await clock.advanceAsync(2)
    assert.deepEqual([freshness.check(`${old}${length}`), asked.isBlockhashValid], ['fresh', 1], 'renewed')
    const other = `${old}${length}other`
    assert.equal(await freshness.check(other), 'fresh')
    await clock.advanceAsync(freshMs)
    isValid = false
    assert.equal(await freshness.check(other), 'expired', 'asked again')
    asked.isBlockhashValid = 0
    await clock.advanceAsync(length - 1)
    assert.deepEqual([freshness.check(other), asked.isBlockhashValid], ['expired', 0])
    await clock.advanceAsync(1)
    await freshness.check(other)
    assert.equal(asked.isBlockhashValid, 1, 'one slot')
  }
})

test('the height of the newest blockhash counts for 12.5 slots', async () => {
  for (const slotMs of [400, 200]) {
    const clock = createManualClock()
    let latest: unknown = { value: { blockhash: encodeBase58(hash(1)), lastValidBlockHeight: 250 } }
    let asked = 0
    const callNode = async (method: string) => {
      if (method === 'getLatestBlockhash') return latest
      asked += 1
      return { value: true }
    }
    using freshness = createFreshness({ callNode, clock, slotMs: () => slotMs, bestSlot: () => 0, waitingMax: 64 })
    await freshness.check('another')
    await clock.advanceAsync(slotMs)
    latest = undefined
    asked = 0
    await clock.advanceAsync(12 * slotMs)
    assert.deepEqual([freshness.check(encodeBase58(hash(1))), asked], ['fresh', 0])
    await clock.advanceAsync(slotMs)
    assert.deepEqual([await freshness.check(encodeBase58(hash(1))), asked], ['fresh', 1], 'a node is asked')
  }
})
