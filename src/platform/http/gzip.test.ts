import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { until } from '../process/test-wait.ts'
import { gunzipBytes, gzipBytes, gzipRest } from './gzip.ts'
import type { ResponseRest } from './response-rest.ts'

test('round trip, up to the size limit and not a byte beyond', async () => {
  const bytes = Buffer.from('{"a":1}'.repeat(1000))
  assert.deepEqual(gunzipSync(await gzipBytes(bytes)), bytes)
  const packed = gzipSync(bytes)
  assert.deepEqual(await gunzipBytes(packed, { bodyBytesMax: bytes.length }), { ok: true, body: bytes })
  const tooLarge = { ok: false, reason: 'too-large', bytes: bytes.length - 1 }
  assert.deepEqual(await gunzipBytes(packed, { bodyBytesMax: bytes.length - 1 }), tooLarge)
  const twice = { ok: true, body: Buffer.concat([bytes, bytes]) }
  assert.deepEqual(await gunzipBytes(Buffer.concat([packed, packed]), { bodyBytesMax: 1e6 }), twice)
  const wrongCheck = Buffer.from(packed)
  wrongCheck[packed.length - 8] = (packed.at(-8) as number) ^ 1
  const wrongSize = Buffer.from(packed)
  wrongSize[packed.length - 4] = (packed.at(-4) as number) ^ 1
  for (const broken of [packed.subarray(0, -3), wrongCheck, wrongSize, Buffer.from('no gzip'), Buffer.alloc(0)])
    assert.deepEqual(await gunzipBytes(broken, { bodyBytesMax: 1000 * 1000 }), {
      ...{ ok: false, reason: 'malformed', bytes: 64 * 1024 },
    })
})

/** A source that counts calls and delivers while it is not paused. */
function source(chunks: number): ResponseRest & { given: number; aborted: number } {
  let listener: Parameters<ResponseRest['start']>[0] | undefined
  let isHeld = false
  const self = {
    given: 0,
    aborted: 0,
    start(to: Parameters<ResponseRest['start']>[0]) {
      listener = to
      flow()
    },
    pause() {
      isHeld = true
    },
    resume() {
      if (!isHeld) return
      isHeld = false
      flow()
    },
    abort() {
      self.aborted += 1
    },
  }
  function flow(): void {
    while (!isHeld && self.given < chunks) {
      self.given += 1
      listener?.onData(incompressible(self.given))
    }
    if (!isHeld && self.given === chunks) {
      self.given += 1
      listener?.onEnd()
    }
  }
  return self
}

/** Incompressible, so that the compressed bytes that wait are as many as the input. */
function incompressible(seed: number): Buffer {
  const bytes = Buffer.alloc(65_536)
  let state = seed
  for (let at = 0; at < bytes.length; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    bytes[at] = state >>> 24
  }
  return bytes
}

test('gzipRest compresses a stream and pauses its source while the reader is paused', async () => {
  const from = source(100)
  const rest = gzipRest(Buffer.from('first'), from)
  const out: Buffer[] = []
  let isOver = false
  rest.start({
    onData: (chunk) => void out.push(chunk),
    onEnd: () => {
      isOver = true
    },
    onFail: () => assert.fail('it cannot fail'),
  })
  rest.pause()
  let before = -1
  await until('the source is paused', () => {
    const isQuiet = before === from.given
    before = from.given
    return isQuiet
  })
  assert(from.given < 50, `${from.given} of 100 pieces were read while paused`)
  rest.resume()
  await until('the stream has ended', () => isOver)
  const expected = Buffer.concat([
    Buffer.from('first'),
    ...Array.from({ length: 100 }, (_, at) => incompressible(at + 1)),
  ])
  assert.deepEqual(gunzipSync(Buffer.concat(out)), expected)
})

test('abort aborts the source once', () => {
  const from = source(100)
  const rest = gzipRest(Buffer.from('first'), from)
  rest.start({ onData() {}, onEnd() {}, onFail: () => assert.fail('it was not the source') })
  rest.abort()
  rest.abort()
  assert.equal(from.aborted, 1)
})

test('a failed source fails the stream', async () => {
  let failed = 0
  const rest = gzipRest(Buffer.from('first'), { start: (to) => to.onFail(), pause() {}, resume() {}, abort() {} })
  rest.start({ onData() {}, onEnd: () => assert.fail('it has no end'), onFail: () => void (failed += 1) })
  await until('onFail is called', () => failed === 1)
})
