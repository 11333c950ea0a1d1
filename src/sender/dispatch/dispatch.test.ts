import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import type { AttemptResponse, Receipt } from '../receipts/receipt.ts'
import { createReceipts } from '../receipts/receipts.ts'
import { receiptOf } from '../receipts/test-receipt.ts'
import { createDispatch, type DispatchOptions, type Path } from './dispatch.ts'

const OPTIONS = { resendMs: 2000, endMs: 9000, resendsPerSecond: 1000 }

/** A path that records what it is given and responds as configured. */
function testPath(
  name: string,
): Path & { isOpen: boolean; hasSpare: boolean; response: AttemptResponse; readonly sent: string[] } {
  return {
    name,
    isOpen: true,
    hasSpare: true,
    response: 'taken',
    sent: [],
    send(job, report) {
      this.sent.push(job.body)
      report({ to: name, response: this.response, message: '' })
    },
  }
}

function openTest(options: DispatchOptions = OPTIONS, slotMs = 400) {
  const clock = createManualClock()
  const receipts = createReceipts(
    { receiptsMax: 10_000, knownSignaturesMax: 1000, keepMs: 600_000, waitersMax: 1, waitersPerAddressMax: 1 },
    { clock, onSettled() {} },
  )
  const paths = [testPath('first'), testPath('second'), testPath('third')] as const
  const dispatch = createDispatch(options, {
    paths,
    receipts,
    clock,
    slotMs: () => slotMs,
    onAttempt() {},
    onThrown() {},
  })
  const start = (signature: string, given: Partial<Receipt> = {}) => {
    const receipt = receiptOf(signature, { acceptedMonotonicMs: clock.monotonicMs(), ...given })
    receipts.add(receipt)
    dispatch.start(receipt)
    return receipt
  }
  return { clock, receipts, paths, dispatch, start, counts: () => paths.map(({ sent }) => sent.length) }
}

test('skips a path that is down, whatever its position, and uses it again when it is up', () => {
  const { clock, paths, dispatch, start, counts } = openTest()
  for (const [at, down] of paths.entries()) {
    down.isOpen = false
    start(`without ${at}`)
    down.isOpen = true
  }
  assert.deepEqual(
    paths.map(({ sent }) => sent),
    [
      ['without 1', 'without 2'],
      ['without 0', 'without 2'],
      ['without 0', 'without 1'],
    ],
  )
  clock.advance(OPTIONS.resendMs + 50)
  assert.deepEqual(counts(), [5, 5, 5])
  for (const path of paths) path.isOpen = false
  assert.equal(dispatch.isOpen, false)
})

test('re-sends until the transaction lands, again after a fork, and ends it after endMs', () => {
  const { clock, receipts, start, counts } = openTest()
  const receipt = start('one')
  assert.deepEqual([receipt.state, counts()], ['sent', [1, 1, 1]])
  clock.advance(OPTIONS.resendMs - 50)
  assert.deepEqual(counts(), [1, 1, 1])
  clock.advance(100)
  assert.deepEqual(
    [counts(), receipt.attempts.map(({ times }) => times)],
    [
      [2, 2, 2],
      [2, 2, 2],
    ],
  )
  receipts.land(receipt, { slot: 1, confirmation: 'processed', error: null })
  clock.advance(OPTIONS.resendMs * 1.5)
  assert.deepEqual([counts(), receipt.job === undefined], [[2, 2, 2], false], 'it landed, and is kept at hand')
  receipts.revert(receipt)
  clock.advance(OPTIONS.resendMs)
  assert.deepEqual([counts(), receipt.state], [[3, 3, 3], 'sent'])
  clock.advance(OPTIONS.endMs)
  const atEnd = counts()
  assert.deepEqual([receipt.state, receipt.job], ['ended', undefined])
  clock.advance(OPTIONS.endMs)
  assert.deepEqual(counts(), atEnd)
})

test('releases a transaction that is confirmed or expired and does not send it again', () => {
  const { clock, receipts, start, counts } = openTest()
  const [landed, expired] = [start('landed'), start('expired')]
  receipts.land(landed, { slot: 1, confirmation: 'confirmed', error: null })
  receipts.settle(expired, 'expired', 9)
  clock.advance(OPTIONS.endMs * 2)
  assert.deepEqual([counts(), landed.job, expired.job], [[2, 2, 2], undefined, undefined])
})

test('the state becomes sent only when a path takes the transaction', () => {
  const { paths, start } = openTest()
  for (const path of paths) path.response = 'refused'
  paths[1].response = 'busy'
  assert.equal(start('one').state, 'accepted')
  paths[2].response = 'taken'
  assert.equal(start('two').state, 'sent')
})

test('limits the rate of re-sends; a new transaction is sent at once', () => {
  const { clock, paths, start } = openTest({ ...OPTIONS, resendsPerSecond: 100 })
  for (let n = 0; n < 1000; n++) start(`old ${n}`)
  const [{ sent }] = paths
  sent.length = 0
  clock.advance(OPTIONS.resendMs + 1000)
  assert.ok(sent.length > 80 && sent.length <= 120, `${sent.length} sent again in a second`)
  assert.deepEqual(sent.slice(0, 3), ['old 0', 'old 1', 'old 2'], 'those that wait longest come first')
  sent.length = 0
  start('new')
  assert.deepEqual(sent, ['new'])
})

test('over the re-send rate, settled transactions are still removed and old ones ended in time', () => {
  const { clock, receipts, start } = openTest({ ...OPTIONS, resendsPerSecond: 1 })
  const waiting = Array.from({ length: 100 }, (_, n) => start(`${n}`))
  const last = waiting.at(-1) as Receipt
  receipts.settle(last, 'expired', 7)
  clock.advance(OPTIONS.resendMs + 100)
  assert.equal(last.job, undefined)
  clock.advance(OPTIONS.endMs)
  assert.deepEqual(new Set(waiting.map(({ state }) => state)), new Set(['ended', 'expired']))
})

test('a path without capacity to spare gets new transactions and no re-sends', () => {
  const { clock, paths, start, counts } = openTest()
  paths[0].hasSpare = false
  start('old')
  clock.advance(OPTIONS.resendMs + 50)
  assert.deepEqual(counts(), [1, 2, 2])
  start('new')
  assert.deepEqual(counts(), [2, 3, 3])
})

test('by default a transaction is sent again after five slots, whatever their length', () => {
  for (const [slotMs, resendMs] of [
    [400, 2000],
    [200, 1000],
  ] as const) {
    const { clock, dispatch, start, counts } = openTest({ ...OPTIONS, resendMs: undefined }, slotMs)
    start('one')
    clock.advance(resendMs - 50)
    assert.deepEqual(counts(), [1, 1, 1])
    clock.advance(100)
    assert.deepEqual(counts(), [2, 2, 2])
    dispatch[Symbol.dispose]()
  }
})

test('the other paths are used after the packets to the leaders left, or at once where no leader is reachable', async () => {
  const clock = createManualClock()
  using receipts = createReceipts(
    { receiptsMax: 10, knownSignaturesMax: 1000, keepMs: 600_000, waitersMax: 1, waitersPerAddressMax: 1 },
    { clock, onSettled() {} },
  )
  const steps: string[] = []
  const pathOf = (name: string, after: () => void = () => {}) => ({
    name,
    isOpen: true,
    hasSpare: true,
    send() {
      steps.push(name)
      after()
    },
  })
  const leaders = pathOf('leaders', () => queueMicrotask(() => steps.push('packets')))
  const paths = [pathOf('node'), leaders, pathOf('relay')]
  using dispatch = createDispatch(OPTIONS, {
    paths,
    leaders,
    receipts,
    clock,
    slotMs: () => 400,
    onAttempt() {},
    onThrown() {},
  })
  const start = (signature: string) => {
    const receipt = receiptOf(signature)
    receipts.add(receipt)
    dispatch.start(receipt)
  }
  start('one')
  assert.deepEqual(steps.splice(0), ['leaders'])
  await Promise.resolve()
  assert.deepEqual(steps.splice(0), ['packets', 'node', 'relay'])
  leaders.isOpen = false
  start('two')
  assert.deepEqual(steps, ['node', 'relay'])
})

for (const hasLeaders of [true, false]) {
  test(`a path that throws has failed and does not harm the others, ${hasLeaders ? 'after' : 'without'} the leaders`, async () => {
    const clock = createManualClock()
    using receipts = createReceipts(
      { receiptsMax: 10, knownSignaturesMax: 1000, keepMs: 600_000, waitersMax: 1, waitersPerAddressMax: 1 },
      { clock, onSettled() {} },
    )
    const [leaders, relay] = [testPath('leaders'), testPath('relay')]
    let isBroken = true
    const broken: Path = {
      ...testPath('broken'),
      send(_job, report) {
        if (isBroken) throw new Error('as planned')
        report({ to: 'broken', response: 'taken', message: '' })
      },
    }
    const thrown: string[] = []
    using dispatch = createDispatch(OPTIONS, {
      paths: [broken, leaders, relay],
      leaders: hasLeaders ? leaders : undefined,
      receipts,
      clock,
      slotMs: () => 400,
      onAttempt() {},
      onThrown: (path, error) => thrown.push(`${path}: ${String(error)}`),
    })
    const start = async (signature: string) => {
      const receipt = receiptOf(signature, { acceptedMonotonicMs: clock.monotonicMs() })
      receipts.add(receipt)
      dispatch.start(receipt)
      await Promise.resolve()
      return receipt.attempts
        .map(({ path, response, message }) => [path, response, message].join(' ').trim())
        .toSorted()
    }
    const others = ['leaders taken', 'relay taken']
    assert.deepEqual(await start('one'), ['broken failed failed before sending', ...others])
    assert.deepEqual(await start('two'), ['broken failed failed before sending', ...others])
    clock.advance(OPTIONS.resendMs + 50)
    await Promise.resolve()
    assert.equal(relay.sent.length, 4, 'both are sent again')
    assert.deepEqual(thrown, ['broken: Error: as planned'], 'reported once until it works again')
    isBroken = false
    assert.deepEqual(await start('three'), ['broken taken', ...others])
    isBroken = true
    await start('four')
    assert.equal(thrown.length, 2)
  })
}
