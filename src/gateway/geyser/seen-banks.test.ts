import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMessageReader } from '../../platform/grpc/framing.ts'
import { SlotStatus, SubscribeUpdateSchema } from '../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../solana/geyser/protobuf.ts'
import { SeenBanks } from './seen-banks.ts'

type Update = NonNullable<Parameters<typeof encodeMessage<typeof SubscribeUpdateSchema>>[1]['updateOneof']>

function note(banks: SeenBanks, updateOneof: Update): void {
  const bytes = encodeMessage(SubscribeUpdateSchema, { filters: ['one'], updateOneof })
  banks.note(bytes, 0, bytes.length)
}

const slotUpdate = (slot: number, bankId: number, status: SlotStatus): Update => ({
  case: 'slot',
  value: { slot: BigInt(slot), bankId: BigInt(bankId), status },
})

/** The banks that are declared dead, as slot and id. */
function ended(banks: SeenBanks, filters: readonly string[] = ['s'], fromSlot = 0): [number, number][] {
  const found: [number, number][] = []
  const reader = createMessageReader({ messageBytesMax: 1000 }, (message) => {
    const update = decodeMessage(SubscribeUpdateSchema, message)
    assert.deepEqual([update?.filters, update?.updateOneof.case], [filters, 'slot'])
    if (update?.updateOneof.case !== 'slot') return
    assert.equal(update.updateOneof.value.status, SlotStatus.SLOT_DEAD)
    found.push([Number(update.updateOneof.value.slot), Number(update.updateOneof.value.bankId)])
  })
  const { frames, banks: count } = banks.endAll(filters, fromSlot)
  reader.push(Buffer.from(frames))
  assert.equal(found.length, count)
  return found
}

test('finds the bank of every kind of update', () => {
  const banks = new SeenBanks()
  const kinds: Update[] = [
    { case: 'account', value: { slot: 1n, bankId: 1n, account: { data: Buffer.alloc(200) } } },
    { case: 'slot', value: { slot: 2n, bankId: 2n } },
    { case: 'transaction', value: { slot: 3n, bankId: 3n, transaction: { index: 3n } } },
    { case: 'block', value: { slot: 4n, bankId: 4n, blockhash: 'x' } },
    { case: 'blockMeta', value: { slot: 5n, bankId: 5n } },
    { case: 'entry', value: { slot: 6n, bankId: 6n } },
    { case: 'transactionStatus', value: { slot: 7n, bankId: 7n } },
    { case: 'blockFooter', value: { slot: 8n, bankId: 8n } },
    { case: 'ping', value: {} },
    { case: 'slot', value: { slot: 9n } },
  ]
  for (const kind of kinds) note(banks, kind)
  assert.deepEqual(
    ended(banks),
    [1, 2, 3, 4, 5, 6, 7, 8].map((at) => [at, at]),
  )
  assert.deepEqual(ended(banks), [], 'each once')
})

test('a final slot settles itself and those before it, a dead bank only itself', () => {
  const banks = new SeenBanks()
  const seen = [10, 11, 11, 12, 12]
  seen.forEach((slot, at) => note(banks, slotUpdate(slot, at + 1, SlotStatus.SLOT_PROCESSED)))
  note(banks, slotUpdate(11, 3, SlotStatus.SLOT_FINALIZED))
  note(banks, slotUpdate(12, 5, SlotStatus.SLOT_DEAD))
  assert.deepEqual(ended(banks), [[12, 4]])
})

test('nothing is sent for slots that are not repeated, nor without a slots filter', () => {
  const banks = new SeenBanks()
  for (const slot of [10, 11]) note(banks, slotUpdate(slot, slot, SlotStatus.SLOT_CONFIRMED))
  assert.deepEqual(ended(banks, ['a', 'b'], 11), [[11, 11]])
  note(banks, slotUpdate(12, 12, SlotStatus.SLOT_CONFIRMED))
  assert.deepEqual(ended(banks, []), [])
  assert.deepEqual(ended(banks), [])
})

test('memory is bounded: the newest slots are kept, and some banks of each', () => {
  const banks = new SeenBanks()
  for (let slot = 1; slot <= 100; slot++) note(banks, slotUpdate(slot, slot, SlotStatus.SLOT_PROCESSED))
  for (let id = 1000; id < 1100; id++) note(banks, slotUpdate(100, id, SlotStatus.SLOT_PROCESSED))
  const found = ended(banks)
  assert.deepEqual([found[0], found.filter(([slot]) => slot === 100).length, found.length], [[37, 37], 16, 63 + 16])
})

test('a node that names no banks is recognised, and again when it begins to', () => {
  const banks = new SeenBanks()
  assert.equal(banks.mayBeNamed, true)
  for (let slot = 1; slot <= 64; slot++) note(banks, { case: 'slot', value: { slot: BigInt(slot) } })
  assert.equal(banks.mayBeNamed, false)
  note(banks, slotUpdate(65, 1, SlotStatus.SLOT_PROCESSED))
  assert.equal(banks.mayBeNamed, true)
  assert.deepEqual(ended(banks), [[65, 1]])
})

test('a slot that no chain reaches is not kept: it could not be declared dead', () => {
  const banks = new SeenBanks()
  note(banks, { case: 'slot', value: { slot: 2n ** 64n - 1n, bankId: 1n } })
  note(banks, { case: 'slot', value: { slot: 2n ** 53n, bankId: 1n } })
  note(banks, slotUpdate(Number.MAX_SAFE_INTEGER, 2, SlotStatus.SLOT_PROCESSED))
  assert.deepEqual(ended(banks), [[Number.MAX_SAFE_INTEGER, 2]])
})
