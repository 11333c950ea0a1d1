import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWholeResponse } from './whole-response.ts'

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

test('a response is whole when its last piece has arrived, and lost when it breaks off', async () => {
  const whole = arriving('ab')
  const reading = readWholeResponse(whole, { bytesMax: 6 })
  whole.give('cd')
  whole.give('ef')
  whole.end()
  assert.equal(String(await reading), 'abcdef')
  const broken = arriving('ab')
  const lost = readWholeResponse(broken, { bytesMax: 6 })
  broken.fail()
  assert.equal(await lost, 'lost')
})

test('one byte more than allowed ends it, in the first piece or in a later one', async () => {
  const later = arriving('abc')
  const reading = readWholeResponse(later, { bytesMax: 5 })
  later.give('def')
  assert.equal(await reading, 'too-large')
  assert.equal(later.isAborted, true)
  const first = arriving('abcdef')
  assert.equal(await readWholeResponse(first, { bytesMax: 5 }), 'too-large')
  assert.deepEqual([first.isAborted, first.hasStarted()], [true, false])
  assert.equal(await readWholeResponse({ body: Buffer.from('abcdef') }, { bytesMax: 5 }), 'too-large')
})

test('every piece is counted as held, and one without room ends it', async () => {
  const held: number[] = []
  const source = arriving('abc')
  const hold = (bytes: number) => held.push(bytes) < 3
  const reading = readWholeResponse(source, { bytesMax: 100, hold })
  source.give('de')
  source.give('f')
  assert.equal(await reading, 'no-room')
  assert.deepEqual([held, source.isAborted], [[3, 2, 1], true])
})
