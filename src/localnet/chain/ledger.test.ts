import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serialize } from 'node:v8'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { createSigningKey } from '../../solana/crypto/ed25519.ts'
import { buildLegacyMessage, signMessage, transferInstruction } from '../../solana/transaction/build.ts'
import type { Head } from './bank.ts'
import { packBlock, unpackBlock, unpackCore, unpackWrites } from './block-codec.ts'
import { Ledger } from './ledger.ts'
import type { AccountWrite, Block, TransactionRecord } from './model.ts'
import { recordEntries } from './poh.ts'

const payer = createSigningKey(new Uint8Array(32).fill(1))
const payerText = encodeBase58(payer.publicKey)
const hash = (n: number) =>
  encodeBase58(
    new Uint8Array(32)
      .fill(1)
      .with(0, n >> 8)
      .with(1, n & 0xff),
  )
const addressOf = (slot: number) =>
  new Uint8Array(32)
    .fill(2)
    .with(0, slot >> 8)
    .with(1, slot & 0xff)

function makeRecord(slot: number, index: number): TransactionRecord {
  const instructions = [transferInstruction({ from: payer.publicKey, to: addressOf(slot), lamports: BigInt(index) })]
  const message = buildLegacyMessage({ feePayer: payer.publicKey, recentBlockhash: addressOf(slot), instructions })
  const wire = signMessage(message, [payer])
  const signature = encodeBase58(wire.subarray(1, 65))
  const account = {
    lamports: 5n,
    owner: hash(1),
    data: Uint8Array.of(1, 2),
    executable: false,
    rentEpoch: 18446744073709551615n,
  }
  const write: AccountWrite = { address: payerText, account, slot, writeVersion: BigInt(slot), signature }
  return {
    signature,
    slot,
    index,
    wire,
    meta: {
      err: index % 2 === 0 ? null : { InstructionError: [0, { Custom: 1 }] },
      fee: 5000n,
      preBalances: [10n, 0n, 1n],
      postBalances: [5n, 0n, 1n],
      preTokenBalances: [
        { accountIndex: 1, mint: hash(3), owner: hash(4), programId: hash(5), amount: 2n ** 63n, decimals: 6 },
      ],
      postTokenBalances: [],
      innerInstructions: [
        {
          index: 0,
          instructions: [{ programIdIndex: 2, accounts: Uint8Array.of(0, 1), data: Uint8Array.of(9), stackHeight: 2 }],
        },
      ],
      logMessages: ['Program log: é'],
      loadedAddresses: { writable: [hash(6)], readonly: [] },
      computeUnitsConsumed: 150n,
      returnData: { programId: hash(7), data: Uint8Array.of(7) },
    },
    writes: [write],
  }
}

function makeBlock(slot: number, transactionCount = 1): { block: Block; head: Head } {
  const transactions = Array.from({ length: transactionCount }, (_, index) => makeRecord(slot, index))
  const entries = recordEntries({
    previousHash: addressOf(9),
    batches: transactions.map(({ wire }) => [[wire.slice(1, 65)]]),
    ticks: 4,
  })
  const block: Block = {
    slot,
    parentSlot: slot - 1,
    height: slot,
    blockhash: hash(slot),
    previousBlockhash: encodeBase58(addressOf(9)),
    time: 1_800_000_000,
    leader: hash(8),
    entries,
    transactions,
    systemWrites: [{ address: hash(8), account: null, slot, writeVersion: 7n }],
    rewards: [{ pubkey: hash(8), lamports: 2500n, postBalance: 9n, rewardType: 'Fee' }],
  }
  const head = {
    slot,
    height: slot,
    blockhash: hash(slot),
    bankHash: addressOf(1),
    time: block.time,
    epochStartTimestamp: 1,
    transactionCount: 3,
    writeVersion: 9n,
  }
  return { block, head }
}

test('unpacking a block gives the same block without its writes, which are packed separately', () => {
  const { block, head } = makeBlock(5, 3)
  const packed = packBlock(block, head, 4)
  const back = unpackCore(packed.core)
  assert.deepEqual(back.head, head)
  const { entries, ...rest } = back.block
  const { entries: expectedEntries, ...expected } = block
  assert.deepEqual(entries, expectedEntries)
  assert.deepEqual(rest, {
    ...expected,
    systemWrites: [],
    transactions: block.transactions.map((record) => ({ ...record, writes: [] })),
  })
  const writes = unpackWrites(packed.writes, 5)
  const all = [...block.transactions.flatMap((record) => record.writes), ...block.systemWrites]
  assert.deepEqual(
    writes,
    all.map(({ signature: _signature, ...write }) => write),
  )
})

test('the zeros at the end of account data take no bytes, and are there again after unpacking', () => {
  const { block, head } = makeBlock(5, 1)
  const data = new Uint8Array(3762)
  data.set([1, 2, 0, 3])
  const account = { lamports: 1n, owner: hash(8), data, executable: false, rentEpoch: 18446744073709551615n }
  const systemWrites = [{ address: hash(8), account, slot: 5, writeVersion: 7n }]
  const { writes } = packBlock({ ...block, transactions: [], systemWrites }, head, 4)
  assert.ok(writes.length < 200, `${writes.length}`)
  assert.deepEqual(unpackWrites(writes, 5), systemWrites)
})

test('writes are unpacked with the transaction that made them', () => {
  const { block, head } = makeBlock(5, 3)
  const packed = packBlock(block, head, 4)
  const sysvar = { address: hash(9), account: null, slot: 5, writeVersion: 8n }
  const back = unpackBlock({ slot: 5, ...packed }, (of) => (assert.deepEqual(of, head), [sysvar]))
  assert.deepEqual(back.head, head)
  assert.deepEqual(back.block.transactions, block.transactions)
  assert.deepEqual(back.block.systemWrites, [...block.systemWrites, sysvar])
})

test('writes of an earlier version, which have no transaction, are those of the block', () => {
  const { block, head } = makeBlock(5, 1)
  const packed = packBlock(block, head, 4)
  const writes = serialize([
    [hash(7), 9n, null],
    [hash(8), 7n, null],
  ])
  const back = unpackBlock({ slot: 5, core: packed.core, writes }, () => [])
  assert.deepEqual(back.block.transactions[0]?.writes, [])
  assert.deepEqual(
    back.block.systemWrites.map(({ address }) => address),
    [hash(8), hash(7)],
  )
})

test('writes of an earlier version, which have all their data and no size, can be read', () => {
  const packed = serialize([[hash(8), 7n, [1n, hash(8), new Uint8Array([1, 0]), false]]])
  assert.deepEqual(unpackWrites(packed, 5)[0]?.account?.data, new Uint8Array([1, 0]))
})

test('finds blocks by slot, signature and address, including old ones', () => {
  const ledger = new Ledger({ bytesMax: 1 << 30, blocksMax: 1 << 30 })
  const signatures: string[] = []
  for (let slot = 1; slot <= 400; slot++) {
    const { block, head } = makeBlock(slot)
    signatures.push(block.transactions[0]?.signature as string)
    ledger.add(block, packBlock(block, head, 4).core)
  }
  assert.equal(ledger.block(1)?.blockhash, hash(1))
  assert.equal(ledger.block(401), undefined)
  assert.equal(ledger.transaction(signatures[0] as string)?.slot, 1)
  // The newest blocks keep their writes for subscribers; older ones do not.
  assert.equal(ledger.block(400)?.transactions[0]?.writes.length, 1)
  assert.equal(ledger.block(1)?.transactions[0]?.writes.length, 0)
  assert.equal(ledger.block(ledger.firstSlotWithWrites)?.systemWrites.length, 1)
  assert.equal(ledger.block(ledger.firstSlotWithWrites - 1)?.systemWrites.length, 0)
  assert.deepEqual(
    [...ledger.signaturesOf(payerText)].map(({ signature }) => signature),
    signatures.toReversed(),
  )
  assert.deepEqual(
    [...ledger.signaturesOf(encodeBase58(addressOf(7)))].map(({ slot }) => slot),
    [7],
  )
  assert.deepEqual([...ledger.signaturesOf(hash(6))].length, 400)
})

test('blocks with many transactions keep their writes until they are finalized, and a while longer', () => {
  for (const finalizedSlots of [0, 31, 150]) {
    const ledger = new Ledger({ bytesMax: 1 << 30, blocksMax: 1 << 30, finalizedSlots })
    const kept = Math.max(finalizedSlots, 31) + 9
    for (let slot = 1; slot <= kept + 5; slot++) {
      const { block, head } = makeBlock(slot)
      const many = Array.from({ length: Math.ceil(20_001 / kept) }, () => block.transactions[0] as TransactionRecord)
      ledger.add({ ...block, transactions: many }, packBlock(block, head, 4).core)
    }
    assert.equal(ledger.firstSlotWithWrites, 6)
  }
})

test('evicts the oldest blocks and their index entries above bytesMax or blocksMax', () => {
  const bytesMax = 400_000
  const ledger = new Ledger({ bytesMax, blocksMax: 300 })
  for (let slot = 1; slot <= 320; slot++) {
    const { block, head } = makeBlock(slot, 0)
    ledger.add(block, packBlock(block, head, 4).core)
  }
  assert.equal(ledger.firstSlot, 21)
  assert.deepEqual(
    [20, 21, 320, 321].map((slot) => ledger.hasBlock(slot)),
    [false, true, true, false],
  )
  for (let slot = 321; slot <= 600; slot++) {
    const { block, head } = makeBlock(slot)
    ledger.add(block, packBlock(block, head, 4).core)
    assert(ledger.bytes <= bytesMax)
  }
  assert(ledger.firstSlot > 321, `first slot ${ledger.firstSlot}`)
  assert.equal(ledger.block(ledger.firstSlot - 1), undefined)
  assert.deepEqual([...ledger.signaturesOf(encodeBase58(addressOf(321)))], [])
  const slots = [...ledger.signaturesOf(payerText)].map(({ slot }) => slot)
  assert.deepEqual([slots[0], slots.at(-1), slots.length], [600, ledger.firstSlot, 601 - ledger.firstSlot])
})

test('the signatures of an address before a transaction are found without reading the newer blocks', () => {
  const ledger = new Ledger({ bytesMax: 1 << 30, blocksMax: 1 << 30 })
  for (let slot = 1; slot <= 400; slot++) {
    const { block, head } = makeBlock(slot)
    ledger.add(block, packBlock(block, head, 4).core)
  }
  const read: number[] = []
  const block = ledger.block.bind(ledger)
  ledger.block = (slot) => {
    read.push(slot)
    return block(slot)
  }
  const [newest] = ledger.signaturesOf(payerText, { slot: 10, index: 1 })
  assert.deepEqual([newest?.slot, newest?.index], [10, 0])
  assert.deepEqual(read, [10])
  const slots = [...ledger.signaturesOf(payerText, { slot: 10, index: 0 })].map(({ slot }) => slot)
  assert.deepEqual(slots, [9, 8, 7, 6, 5, 4, 3, 2, 1])
  assert.deepEqual([...ledger.signaturesOf(payerText, { slot: 1, index: 0 })], [])
})

test('a walk over the signatures of an address goes on while blocks are added and evicted', () => {
  const ledger = new Ledger({ bytesMax: 1 << 30, blocksMax: 1000 })
  const add = (from: number, to: number) => {
    for (let slot = from; slot <= to; slot++) {
      const { block, head } = makeBlock(slot)
      ledger.add(block, packBlock(block, head, 4).core)
    }
  }
  add(1, 1900)
  const walk = ledger.signaturesOf(payerText)
  const slots: number[] = []
  for (let at = 0; at < 100; at++) slots.push(walk.next().value?.slot ?? 0)
  // The list of the address, of which more than half is evicted now, is compacted.
  add(1901, 2040)
  slots.push(...[...walk].map(({ slot }) => slot))
  assert.deepEqual(
    slots,
    Array.from({ length: 1900 - ledger.firstSlot + 1 }, (_, at) => 1900 - at),
  )
})
