import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EthBlock } from './eth-block.ts'
import { encodePayload } from './event/payload-layout.ts'
import { PAYLOADS } from './event/payloads.ts'
import { EVENT, type EventName } from './event/type.ts'
import { ACCOUNT_KEY_WORDS, isModified, isTransient, KeyHasher, STORAGE_KEY_WORDS } from './fold/access-key.ts'
import { AccessRun } from './fold/access-run.ts'
import { type Hex, toHex } from './hex.ts'
import { EventBatch } from './ring/event-batch.ts'
import { DESCRIPTOR, DESCRIPTOR_BYTES } from './ring/layout.ts'
import { createSmallRing, openReader } from './ring/test-ring.ts'

const ADDRESS: Hex = `0x${Array.from({ length: 20 }, (_, at) => (at + 1).toString(16).padStart(2, '0')).join('')}`
const WORD: Hex = `0x${Array.from({ length: 32 }, (_, at) => (at + 0x81).toString(16).padStart(2, '0')).join('')}`

/** Readers that take single fields from bytes, without decoding, agree with the layout tables. */
describe('offsets of single fields', () => {
  test('the batch reads every descriptor field that the writer wrote, at the offset of the table', () => {
    const { writer, source } = createSmallRing()
    const payload = new Uint8Array(17).fill(9)
    writer.record({
      type: EVENT.TXN_LOG,
      payload,
      timeNs: 0x1_0203_0405_0607n,
      blockSeqno: 7,
      txnIndex: 41,
      accountIndex: 5,
    })
    const reader = openReader(source)
    assert.equal(reader.poll(0).kind, 'events')
    const { batch } = reader
    const view = new DataView(batch.descriptorBytes.buffer, 0, DESCRIPTOR_BYTES)
    assert.equal(batch.seqno(0), Number(view.getBigUint64(DESCRIPTOR.seqno, true)))
    assert.equal(batch.type(0), view.getUint16(DESCRIPTOR.type, true))
    assert.equal(batch.payloadSize(0), view.getUint32(DESCRIPTOR.payloadSize, true))
    assert.equal(batch.timeNs(0), view.getBigUint64(DESCRIPTOR.timeNs, true))
    assert.equal(batch.payloadOffset(0), Number(view.getBigUint64(DESCRIPTOR.payloadOffset, true)))
    assert.equal(batch.blockSeqno(0), Number(view.getBigUint64(DESCRIPTOR.blockSeqno, true)))
    assert.equal(batch.txnIndex(0), Number(view.getBigUint64(DESCRIPTOR.txnId, true)) - 1)
    assert.equal(batch.accountIndex(0), Number(view.getBigUint64(DESCRIPTOR.accountIndex, true)))
    assert.deepEqual([batch.type(0), batch.payloadSize(0), batch.blockSeqno(0), batch.txnIndex(0)], [18, 17, 7, 41])
  })

  test('the keys of ACCOUNT_ACCESS are its address', () => {
    const run = new AccessRun(ACCOUNT_KEY_WORDS)
    run.add(0, 0)
    new KeyHasher(ACCOUNT_KEY_WORDS, 1).hashAccounts(words('ACCOUNT_ACCESS', { address: ADDRESS }), run)
    assert.equal(toHex(new Uint8Array(run.keys.buffer), 0, 20), ADDRESS)
  })

  for (const [modified, transient] of [
    [false, false],
    [true, false],
    [false, true],
  ] as const)
    test(`the keys of STORAGE_ACCESS are address and key; modified ${modified}, transient ${transient}`, () => {
      const run = new AccessRun(STORAGE_KEY_WORDS)
      run.add(0, 0)
      const payload = words('STORAGE_ACCESS', { address: ADDRESS, key: WORD, modified, transient })
      new KeyHasher(STORAGE_KEY_WORDS, 1).hashSlots(payload, run)
      const bytes = new Uint8Array(run.keys.buffer)
      assert.deepEqual([toHex(bytes, 0, 20), toHex(bytes, 20, 52)], [ADDRESS, WORD])
      assert.deepEqual([isModified(run.flags[0] as number), isTransient(run.flags[0] as number)], [modified, transient])
    })

  test('address and topics of a log are those of its decoded payload', () => {
    const payloads = [
      encodePayload(PAYLOADS.BLOCK_START, { txn_count: 1n }),
      encodePayload(PAYLOADS.TXN_HEADER_START, {}),
      encodePayload(PAYLOADS.TXN_EVM_OUTPUT, { log_count: 1 }),
      encodePayload(PAYLOADS.TXN_LOG, { address: ADDRESS, topics: [WORD, WORD], data: '0x0102' }),
      encodePayload(PAYLOADS.BLOCK_END, {}),
    ]
    const { writer, source } = createSmallRing()
    const types = [EVENT.BLOCK_START, EVENT.TXN_HEADER_START, EVENT.TXN_EVM_OUTPUT, EVENT.TXN_LOG, EVENT.BLOCK_END]
    for (const [at, type] of types.entries())
      writer.record({
        type,
        payload: payloads[at] as Uint8Array,
        timeNs: 1n,
        blockSeqno: 1,
        txnIndex: at === 0 || at === 4 ? -1 : 0,
        accountIndex: 0,
      })
    const reader = openReader(source)
    reader.poll(0)
    const reading = EthBlock.read(EventBatch.over(copyOf(reader.batch)))
    let step = reading.next()
    while (step.done !== true) step = reading.next()
    const block = step.value
    assert(block !== undefined)
    const [log = -1] = block.logsOf(0)
    const { address, topics } = block.log(log)
    assert.deepEqual(block.logKeys(log), { address, topics })
    assert.deepEqual([address, topics], [ADDRESS, [WORD, WORD]])
  })
})

function words(name: EventName, payload: Record<string, unknown>): Uint32Array {
  const bytes = new Uint8Array(256)
  bytes.set(encodePayload(PAYLOADS[name], payload as never))
  return new Uint32Array(bytes.buffer)
}

function copyOf(batch: EventBatch) {
  return {
    descriptors: batch.descriptorBytes.slice(0, batch.count * DESCRIPTOR_BYTES),
    payloads: batch.payloadBytes.slice(),
    payloadAt: batch.payloadAt.slice(0, batch.count),
  }
}
