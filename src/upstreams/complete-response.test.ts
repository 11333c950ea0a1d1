import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCompleteResponse } from './complete-response.ts'

type Listener = { onData(chunk: Buffer): void; onEnd(): void; onFail(): void }

/** A response whose first piece is there, and whose rest the test gives. */
function arriving(first: string) {
  let listener: Listener | undefined
  const source = {
    isAborted: false,
    rest: {
      start: (given: Listener) => void (listener = given),
      pause() {},
      resume() {},
      abort: () => void (source.isAborted = true),
    },
    body: Buffer.from(first),
    give: (text: string) => listener?.onData(Buffer.from(text)),
    end: () => listener?.onEnd(),
    fail: () => listener?.onFail(),
    hasStarted: () => listener !== undefined,
  }
  return source
}

test('resolves when the last piece has arrived, and to lost when the response breaks off', async () => {
  const whole = arriving('ab')
  const reading = readCompleteResponse(whole, { bytesMax: 6 })
  whole.give('cd')
  whole.give('ef')
  whole.end()
  assert.equal(String(await reading), 'abcdef')
  const broken = arriving('ab')
  const lost = readCompleteResponse(broken, { bytesMax: 6 })
  broken.fail()
  assert.equal(await lost, 'lost')
})

test('aborts at one byte over the limit, in the first piece or a later one', async () => {
  const later = arriving('abc')
  const reading = readCompleteResponse(later, { bytesMax: 5 })
  later.give('def')
  assert.equal(await reading, 'too-large')
  assert.equal(later.isAborted, true)
  const first = arriving('abcdef')
  assert.equal(await readCompleteResponse(first, { bytesMax: 5 }), 'too-large')
  assert.deepEqual([first.isAborted, first.hasStarted()], [true, false])
  assert.equal(await readCompleteResponse({ body: Buffer.from('abcdef') }, { bytesMax: 5 }), 'too-large')
})

test('charges every piece to the budget, and aborts when it is used up', async () => {
  const held: number[] = []
  const source = arriving('abc')
  const hold = (bytes: number) => held.push(bytes) < 3
  const reading = readCompleteResponse(source, { bytesMax: 100, hold })
  source.give('de')
  source.give('f')
  assert.equal(await reading, 'over-budget')
  assert.deepEqual([held, source.isAborted], [[3, 2, 1], true])
})
