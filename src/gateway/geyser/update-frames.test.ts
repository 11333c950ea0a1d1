import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { frameMessage } from '../../platform/grpc/framing.ts'
import { SubscribeUpdateSchema } from '../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../solana/geyser/protobuf.ts'
import { UpdateFrames } from './update-frames.ts'

type Update = NonNullable<Parameters<typeof encodeMessage<typeof SubscribeUpdateSchema>>[1]['updateOneof']>
const update = (updateOneof: Update) =>
  frameMessage(encodeMessage(SubscribeUpdateSchema, { filters: ['one', 'two'], updateOneof }))

/** What comes out of one piece, as bytes of their own; the piece is used for something else afterwards. */
function push(frames: UpdateFrames, given: Uint8Array): Buffer {
  const piece = Buffer.from(given)
  const { held, fresh } = frames.push(piece)
  const out = Buffer.concat([held, fresh].filter((bytes) => bytes !== undefined))
  piece.fill(0xee)
  return out
}

test('releases complete messages at once, and nothing of a small incomplete one', () => {
  const frames = new UpdateFrames()
  const [a, b] = [frameMessage(Buffer.from('first')), frameMessage(Buffer.from('second'))]
  assert.deepEqual(push(frames, Buffer.concat([a, b.subarray(0, 3)])), a)
  assert.equal(push(frames, b.subarray(3, 9)).length, 0)
  assert.deepEqual(push(frames, b.subarray(9)), b)
  assert.equal(frames.messages, 2)
})

test('streams a large message', () => {
  const frames = new UpdateFrames()
  const large = frameMessage(Buffer.alloc(300_000, 7))
  const next = frameMessage(Buffer.from('next'))
  assert.equal(push(frames, large.subarray(0, 3)).length, 0)
  assert.equal(push(frames, large.subarray(3, 100_000)).length, 100_000)
  assert.ok(frames.isWithinMessage)
  assert.equal(push(frames, large.subarray(100_000, 200_000)).length, 100_000)
  assert.equal(
    push(frames, Buffer.concat([large.subarray(200_000), next.subarray(0, 6)])).length,
    large.length - 200_000,
  )
  assert.ok(!frames.isWithinMessage)
  assert.deepEqual(push(frames, next.subarray(6)), next)
  assert.equal(frames.messages, 2)
})

test('finds the slot of every kind of update, and keeps it over a ping', () => {
  const kinds: Update[] = [
    { case: 'account', value: { account: { pubkey: Buffer.alloc(32) }, slot: 401n } },
    { case: 'slot', value: { slot: 402n } },
    { case: 'transaction', value: { transaction: { signature: Buffer.alloc(64) }, slot: 403n } },
    { case: 'transactionStatus', value: { slot: 404n, signature: Buffer.alloc(64) } },
    { case: 'block', value: { slot: 405n, blockhash: 'h' } },
    { case: 'blockMeta', value: { slot: 406n } },
    { case: 'entry', value: { slot: 407n, index: 1n } },
  ]
  const frames = new UpdateFrames()
  assert.equal(frames.lastSlot, undefined)
  kinds.forEach((kind, at) => {
    frames.push(update(kind))
    assert.equal(frames.lastSlot, 401 + at, String(kind.case))
  })
  for (const other of [
    update({ case: 'ping', value: {} }),
    frameMessage(Buffer.from('no update')),
    frameMessage(Buffer.from('x'), 'gzip'),
  ]) {
    frames.push(other)
    assert.equal(frames.lastSlot, 407)
  }
})

test('releases the bytes unchanged for any chunking, and never a partial small message', (t) => {
  checkProperty(
    t,
    fc.property(
      fc.array(fc.oneof(fc.nat({ max: 300 }), fc.integer({ min: 60_000, max: 70_000 })), { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 30 }),
      (sizes, cuts) => {
        const messages = sizes.map((size, at) => frameMessage(Buffer.alloc(size, at)))
        const all = Buffer.concat(messages)
        const frames = new UpdateFrames()
        const out: Buffer[] = []
        for (let at = 0, turn = 0; at < all.length; turn++) {
          const size = cuts[turn % cuts.length] as number
          out.push(push(frames, all.subarray(at, at + size)))
          at += size
        }
        assert.deepEqual(Buffer.concat(out), all)
        assert.equal(frames.messages, messages.length)
      },
    ),
    200,
    2000,
  )
})

test('reads the slot at the beginning of a streamed block, and shows what it could not read', () => {
  const block = update({ case: 'block', value: { slot: 812n, blockhash: 'b'.repeat(100_000) } })
  for (const cut of [3, 40, 70_000]) {
    const frames = new UpdateFrames()
    push(frames, block.subarray(0, cut))
    // Without its length the message is held.
    if (cut === 3) push(frames, block.subarray(cut, 80_000))
    assert.deepEqual([frames.pieceSlot, frames.hasUnread, frames.messages], [812, false, 1], `cut at ${cut}`)
  }
  const account = update({ case: 'account', value: { account: { data: new Uint8Array(100_000) }, slot: 5n } })
  const frames = new UpdateFrames()
  push(frames, account.subarray(0, 80_000))
  assert.deepEqual([frames.pieceSlot, frames.hasUnread], [undefined, true])
  push(frames, account.subarray(80_000))
  assert.deepEqual([frames.pieceSlot, frames.hasUnread], [undefined, false])
  const compressed = Buffer.from(update({ case: 'slot', value: { slot: 9n } }))
  compressed[0] = 1
  push(frames, Buffer.concat([compressed, compressed]))
  assert.deepEqual([frames.pieceSlot, frames.hasUnread], [undefined, true])
})

test('a slot that no chain reaches is not read', () => {
  const frames = new UpdateFrames()
  push(frames, update({ case: 'slot', value: { slot: 402n } }))
  push(frames, update({ case: 'slot', value: { slot: 2n ** 64n - 1n } }))
  assert.deepEqual([frames.lastSlot, frames.pieceSlot], [402, undefined])
})
