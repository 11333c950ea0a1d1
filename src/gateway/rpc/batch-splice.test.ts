import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createManualClock } from '../../core/clock.ts'
import { createHeldBytes, type HeldBytes } from '../../platform/http/held-bytes.ts'
import { type BatchPart, BatchSplice } from './batch-splice.ts'

const SEED = { seed: Number(process.env['SLUICE_SEED'] ?? 1) }
const WIDE = { bytesMax: 1e9, ownerBytesMax: 1e9, waitMs: 1000 }

/** The upstream's response in pieces, given one at a time and only while it is not held. */
function createSource(pieces: readonly Buffer[]) {
  let at = 0
  let listener: Parameters<BatchSplice['start']>[0] | undefined
  const source = {
    isPaused: false,
    isAborted: false,
    start(given: Parameters<BatchSplice['start']>[0]) {
      listener = given
    },
    pause: () => void (source.isPaused = true),
    resume: () => void (source.isPaused = false),
    abort: () => void (source.isAborted = true),
    /** False when it gave nothing. */
    give(): boolean {
      if (source.isPaused || source.isAborted || at > pieces.length) return false
      const piece = pieces[at++]
      if (piece === undefined) listener?.onEnd()
      else listener?.onData(piece)
      return true
    },
    fail: () => listener?.onFail(),
  }
  return source
}

function spliceOf(
  parts: readonly BatchPart[],
  text: string,
  { heldBytes = createHeldBytes(WIDE, createManualClock()), pieceBytes = 7 } = {},
) {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  for (let from = 0; from < bytes.length; from += pieceBytes) pieces.push(bytes.subarray(from, from + pieceBytes))
  const source = createSource(pieces.slice(1))
  const splice = new BatchSplice(
    parts,
    { body: pieces[0] ?? Buffer.alloc(0), rest: source },
    { heldBytes, owner: 'sub', errorFor: (id, limit) => `{"error":${JSON.stringify(limit ?? 'lost')},"id":${id}}` },
  )
  const seen = { text: '', how: '' }
  splice.start({
    onData: (chunk) => void (seen.text += chunk.toString()),
    onEnd: () => void (seen.how = 'end'),
    onFail: () => void (seen.how = 'fail'),
  })
  return { source, splice, seen, heldBytes }
}

const drain = (source: { give(): boolean }) => {
  while (source.give());
}

test("writes a batch in the order of its calls, byte for byte, for any order and chunking of the upstream's responses", () => {
  const item = fc.record({ result: fc.json(), idFirst: fc.boolean(), order: fc.nat(), own: fc.boolean() })
  fc.assert(
    fc.property(
      fc.array(item, { maxLength: 12 }),
      fc.integer({ min: 1, max: 90 }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }),
      (items, pieceBytes, pauses) => {
        const parts: BatchPart[] = items.map(({ own }, at) =>
          own ? { text: `{"own":${at}}` } : { sentId: String(at), id: `"client ${at}"` },
        )
        const write = (at: number, id: string) => {
          const { result, idFirst } = items[at] as (typeof items)[number]
          return idFirst
            ? ` {"jsonrpc":"2.0", "id" : ${id} ,"result":${result}}`.trimStart()
            : `{"jsonrpc":"2.0","result":${result},"id":${id}}`
        }
        const forwarded = items.flatMap(({ own, order }, at) => (own ? [] : [{ at, order }]))
        const arriving = forwarded.toSorted((a, b) => a.order - b.order).map(({ at }) => write(at, String(at)))
        const { source, splice, seen, heldBytes } = spliceOf(parts, ` [ ${arriving.join(' ,\n')} ] \n`, { pieceBytes })
        for (let turn = 0; seen.how === '' && turn < 10_000; turn++) {
          if (pauses[turn % pauses.length] === true) splice.pause()
          source.give()
          splice.resume()
        }
        const expected = parts.map((part, at) => ('text' in part ? part.text : write(at, part.id)))
        assert.deepEqual(seen, { text: `[${expected.join(',')}]`, how: 'end' })
        assert.equal(heldBytes.total, 0)
      },
    ),
    SEED,
  )
})

const CALLS: BatchPart[] = [{ sentId: '0', id: '"a"' }, { text: '{"own":1}' }, { sentId: '1', id: '"b"' }]
const big = 'x'.repeat(300)
const FIRST = `{"result":"${big}","id":0}`
const SECOND = `{"result":"${big}","id":1}`

test('writes an error for a call without a response, and for those after a malformed one', () => {
  const broken = {
    [`[${FIRST}]`]: 1,
    [`[${FIRST},`]: 1,
    [`[${FIRST},{"result":[}}`]: 1,
    [`[${FIRST},17]`]: 1,
    '{"error":{"code":-32600},"id":null}': 0,
    '[{"result":1,"id":null}]': 0,
    '': 0,
  }
  for (const [text, good] of Object.entries(broken)) {
    const { source, seen, heldBytes } = spliceOf(CALLS, text)
    drain(source)
    const first = good === 1 ? FIRST.replace('"id":0', '"id":"a"') : '{"error":"lost","id":"a"}'
    assert.deepEqual(seen, { text: `[${first},{"own":1},{"error":"lost","id":"b"}]`, how: 'end' }, text)
    assert.equal(heldBytes.total, 0, text)
  }
})

test('fails the response when an item breaks off after part of it was sent', () => {
  const { source, seen, heldBytes } = spliceOf(CALLS, `[{"id":0,"result":"${big}"}`)
  source.give()
  source.give()
  source.fail()
  assert.equal(seen.how, 'fail')
  assert.equal(heldBytes.total, 0)
})

test('pauses the upstream while the client does not read, and charges held bytes until they are sent', () => {
  const { source, splice, seen, heldBytes } = spliceOf(CALLS, `[${FIRST},${SECOND}]`, { pieceBytes: 50 })
  splice.pause()
  drain(source)
  assert.equal(source.isPaused, true)
  assert(heldBytes.total > big.length && heldBytes.total < 2 * big.length, String(heldBytes.total))
  assert(!seen.text.includes(big))
  splice.resume()
  assert.equal(source.isPaused, false)
  drain(source)
  assert.equal(seen.how, 'end')
  assert.equal(heldBytes.total, 0)
})

test('releases the held bytes when the client disconnects', () => {
  const { source, splice, heldBytes } = spliceOf(CALLS, `[${FIRST},${SECOND}]`, { pieceBytes: 50 })
  splice.pause()
  drain(source)
  splice.abort()
  assert.deepEqual([heldBytes.total, source.isAborted], [0, true])
})

test('pauses the upstream while the budget is used up, and resumes when others release bytes', async () => {
  const clock = createManualClock()
  const heldBytes = createHeldBytes({ bytesMax: 400, ownerBytesMax: 400, waitMs: 1000 }, clock)
  assert(heldBytes.acquire('other', 300))
  const { source, seen } = spliceOf(CALLS, `[${FIRST},${SECOND}]`, { heldBytes, pieceBytes: 50 })
  drain(source)
  assert.deepEqual([source.isPaused, seen.text], [true, ''])
  heldBytes.release('other', 300)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(source.isPaused, false)
  drain(source)
  assert.equal(seen.text, `[${FIRST.replace(':0}', ':"a"}')},{"own":1},${SECOND.replace(':1}', ':"b"}')}]`)
  assert.equal(heldBytes.total, 0)
})

test('drops only the arriving item when the budget stays used up, and names the limit', () => {
  const clock = createManualClock()
  const heldBytes: HeldBytes = createHeldBytes({ bytesMax: 400, ownerBytesMax: 380, waitMs: 1000 }, clock)
  assert(heldBytes.acquire('other', 300))
  const { source, seen } = spliceOf(CALLS, `[${FIRST},{"result":2,"id":1}]`, { heldBytes, pieceBytes: 50 })
  drain(source)
  clock.advance(1001)
  drain(source)
  assert.deepEqual(seen, { text: '[{"error":"heldBytes","id":"a"},{"own":1},{"result":2,"id":"b"}]', how: 'end' })
  assert.equal(heldBytes.total, 300)
})

test('drops an item above the limit of its owner at once', () => {
  const heldBytes = createHeldBytes({ ...WIDE, ownerBytesMax: 200 }, createManualClock())
  const { source, seen } = spliceOf(CALLS, `[${FIRST},{"result":2,"id":1}]`, { heldBytes, pieceBytes: 50 })
  drain(source)
  assert.match(seen.text, /^\[\{"error":"heldBytesPerSubscription","id":"a"\},/)
  assert.equal(heldBytes.total, 0)
})
