import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { loadMemoryRelease } from '../process/memory-release.ts'
import { until } from '../process/test-wait.ts'
import { FrameReader, type RequestProblem } from './frame-reader.ts'
import { frameMessage } from './framing.ts'
import { createInflater } from './inflater.ts'
import { RequestReader, type RequestReaderDeps } from './request-reader.ts'

function startReader(given: Partial<RequestReaderDeps> = {}) {
  const messages: string[] = []
  const problems: RequestProblem[] = []
  const source = {
    isPaused: false,
    pause: () => void (source.isPaused = true),
    resume: () => void (source.isPaused = false),
  }
  const seen = { ended: 0 }
  const reader = new RequestReader({
    encoding: 'gzip',
    source,
    inflate: createInflater().forConnection(),
    bytesMax: () => 1000,
    onMessage: (message) => void messages.push(Buffer.from(message).toString()),
    onEnd: () => void (seen.ended += 1),
    onProblem: (problem) => void problems.push(problem),
    ...given,
  })
  return { reader, messages, problems, source, seen }
}

test('a message waits for the inflation of the one before it, with the source paused; the end comes last', async () => {
  const { reader, messages, source, seen } = startReader()
  reader.push(Buffer.concat([frameMessage(Buffer.from('a'), 'gzip'), frameMessage(Buffer.from('b'))]))
  assert.deepEqual([messages, source.isPaused], [[], true])
  reader.end()
  assert.equal(seen.ended, 0)
  await until('all is delivered', () => seen.ended === 1)
  assert.deepEqual(messages, ['a', 'b'])
})

test('delivers nothing while paused, not even bytes that have arrived', async () => {
  const { reader, messages, source, seen } = startReader({ onMessage: () => {} })
  const held = startReader({
    onMessage(message) {
      held.messages.push(Buffer.from(message).toString())
      held.reader.pause()
    },
  })
  held.reader.push(Buffer.concat(['a', 'b', 'c'].map((text) => frameMessage(Buffer.from(text)))))
  held.reader.end()
  assert.deepEqual([held.messages, held.source.isPaused, held.seen.ended], [['a'], true, 0])
  held.reader.resume()
  held.reader.resume()
  assert.deepEqual(held.messages, ['a', 'b', 'c'])
  held.reader.resume()
  assert.equal(held.seen.ended, 1)
  reader.push(frameMessage(Buffer.from('a')))
  assert.deepEqual([messages, source.isPaused, seen.ended], [[], false, 0])
})

test('yields to other connections after TURN_MESSAGES messages or their bytes', async () => {
  const { reader, messages, source } = startReader({ bytesMax: () => 1_000_000 })
  const many = Buffer.concat(Array(1000).fill(frameMessage(Buffer.alloc(0))))
  reader.push(many)
  assert.deepEqual([messages.length <= 64, source.isPaused], [true, true])
  await until('all are delivered', () => messages.length === 1000)
  assert.equal(source.isPaused, false)
  const long = startReader({ bytesMax: () => 1_000_000 })
  long.reader.push(Buffer.concat(Array(4).fill(frameMessage(Buffer.alloc(500_000)))))
  assert.equal(long.messages.length, 1)
  await until('all long ones are delivered', () => long.messages.length === 4)
})

test('refuses a message by its prefix, its inflated size, its ratio, or malformed compression, and reads no further', async () => {
  const zstd = { encoding: 'zstd' } as const
  const framed = (packed: Buffer) => Buffer.concat([Buffer.from([1, 0, 0, 0, packed.length]), packed])
  // A frame with a window of 64 MiB, which a decoder would allocate, and one block of three bytes.
  const wideWindow = Buffer.from('28b52ffd0080190000616263', 'hex')
  const rows: [string, Buffer, RequestProblem['limit'], Partial<RequestReaderDeps>?][] = [
    ['the prefix', Buffer.from([0, 0, 0, 3, 233]), 'grpcRequestBytes'],
    ['the prefix of a compressed one', Buffer.from([1, 0, 0, 3, 233]), 'grpcRequestBytes'],
    ['inflated', frameMessage(Buffer.alloc(1001), 'gzip'), 'grpcRequestBytes'],
    ['ratio', frameMessage(Buffer.alloc(2_000_000), 'gzip'), 'inflateRatio', { bytesMax: () => 4_000_000 }],
    ['no gzip', Buffer.from([1, 0, 0, 0, 1, 7]), undefined],
    ['inflated zstd', frameMessage(Buffer.alloc(1001), 'zstd'), 'grpcRequestBytes', zstd],
    ['ratio of zstd', frameMessage(Buffer.alloc(2_000_000), 'zstd'), 'inflateRatio', { ...zstd, bytesMax: () => 4e6 }],
    ['no zstd', Buffer.from([1, 0, 0, 0, 1, 7]), undefined, zstd],
    ['truncated zstd', framed(zstdCompressSync(Buffer.from('abc')).subarray(0, -2)), undefined, zstd],
    ['a zstd window of 64 MiB', framed(wideWindow), undefined, { ...zstd, bytesMax: () => 4e6 }],
    ['an unknown flag', Buffer.from([2, 0, 0, 0, 0]), undefined],
    ['not announced', frameMessage(Buffer.from('a'), 'gzip'), undefined, { encoding: 'identity' }],
  ]
  for (const [name, bytes, limit, given] of rows) {
    const { reader, messages, problems } = startReader(given)
    reader.push(Buffer.concat([bytes, frameMessage(Buffer.from('after'))]))
    await until(`${name} is refused`, () => problems.length === 1)
    assert.deepEqual([problems[0]?.limit, messages], [limit, []], name)
    reader.push(frameMessage(Buffer.from('later')))
    assert.deepEqual([messages, problems.length], [[], 1], name)
  }
})

test('refuses a request that ends within a message', () => {
  const { reader, problems, seen } = startReader()
  reader.push(Buffer.from([0, 0, 0, 0, 9, 1]))
  reader.end()
  assert.deepEqual([problems.length, seen.ended], [1, 0])
})

test('a closed reader delivers nothing of what is still being inflated', async () => {
  const inflated = Promise.withResolvers<{ ok: true; body: Buffer }>()
  const { reader, messages, problems } = startReader({ inflate: () => inflated.promise })
  reader.push(frameMessage(Buffer.from('a'), 'gzip'))
  reader.close()
  inflated.resolve({ ok: true, body: Buffer.from('a') })
  await inflated.promise
  await new Promise(setImmediate)
  assert.deepEqual([messages, problems], [[], []])
})

test('for any split of the bytes the messages are unchanged', (t) => {
  const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 50 })
  const sent = fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 8 })
  checkProperty(
    t,
    fc.property(sent, cuts, (messages, sizes) => {
      const bytes = Buffer.concat(messages.map((message) => frameMessage(message)))
      const frames = new FrameReader()
      const got: Uint8Array[] = []
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = sizes[turn % sizes.length] as number
        frames.push(bytes.subarray(at, at + size))
        at += size
        for (;;) {
          const frame = frames.next(100)
          if (frame === undefined) break
          assert.ok('body' in frame)
          got.push(frame.body)
        }
      }
      assert.deepEqual(
        got.map((body) => Buffer.from(body)),
        messages.map((message) => Buffer.from(message)),
      )
      assert.equal(frames.isAtBoundary, true)
    }),
    300,
    20_000,
  )
})

test('a message in chunks of one byte takes the memory of the message, not of the chunks', async () => {
  const { collect } = await loadMemoryRelease()
  const frames = new FrameReader()
  const bytes = frameMessage(Buffer.alloc(200_000))
  collect()
  const before = process.memoryUsage()
  // Each chunk is a view of a buffer of 8 KiB, as from a socket.
  for (const byte of bytes.subarray(0, 20_000)) frames.push(Buffer.alloc(8192, byte).subarray(0, 1))
  collect()
  const after = process.memoryUsage()
  const kept = after.arrayBuffers - before.arrayBuffers
  assert.ok(kept < 64 * 2 ** 20, `${kept} bytes are kept of the pieces`)
  frames.push(bytes.subarray(20_000))
  const frame = frames.next(200_000)
  assert.ok(frame !== undefined && 'body' in frame && frame.body.length === 200_000)
})

test('inflates one message at a time per connection and two in total, in order, and skips unwanted ones', async () => {
  const begun: string[] = []
  const policies = new Map<string, PromiseWithResolvers<void>>()
  const gunzip = async (packed: Uint8Array) => {
    const name = Buffer.from(packed).toString()
    begun.push(name)
    const policy = Promise.withResolvers<void>()
    policies.set(name, policy)
    await policy.promise
    return { ok: true as const, body: Buffer.from(packed) }
  }
  const inflater = createInflater({ gzip: gunzip, zstd: gunzip })
  const [a, b, c] = [inflater.forConnection(), inflater.forConnection(), inflater.forConnection()]
  const wanted = { encoding: 'gzip', bytesMax: 10, isWanted: () => true } as const
  const all = [a, a, b, c].map((inflate, at) => inflate(Buffer.from(`${at}`), wanted))
  const left = c(Buffer.from('left'), { ...wanted, isWanted: () => false })
  await new Promise(setImmediate)
  assert.deepEqual(begun, ['0', '2'])
  policies.get('0')?.resolve()
  await new Promise(setImmediate)
  assert.deepEqual(begun, ['0', '2', '3'])
  policies.get('2')?.resolve()
  await new Promise(setImmediate)
  assert.deepEqual(begun, ['0', '2', '3', '1'])
  for (const policy of policies.values()) policy.resolve()
  await Promise.all(all)
  assert.equal(await left, 'unwanted')
  assert.equal(begun.length, 4)
})

test('a compressed message within size and ratio is inflated', async () => {
  const { reader, messages } = startReader()
  const text = 'x'.repeat(1000)
  const packed = gzipSync(text)
  reader.push(Buffer.concat([Buffer.from([1, 0, 0, 0, packed.length]), packed]))
  await until('it is delivered', () => messages.length === 1)
  assert.deepEqual(messages, [text])
})
