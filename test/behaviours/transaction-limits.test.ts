import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { decodeBase58 } from '../../src/solana/crypto/base58.ts'
import { type SigningKey, signEd25519 } from '../../src/solana/crypto/ed25519.ts'
import type { ParsedInstruction, ParsedTransaction } from '../../src/solana/transaction/types.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'
import {
  MEMO_PROGRAM,
  MIN_TIP,
  type SenderGiven,
  startChainAndSender,
  TIP_KEYS,
  walletOf,
} from '../support/sender/start.ts'
import { encodeParsedTransaction } from '../support/solana/encode-transaction.ts'
import { createLookupTable } from '../support/solana/lookup-table.ts'

const SYSTEM_PROGRAM = new Uint8Array(32)
const PAYER = walletOf(0)

/** System Program transfer: instruction 2, then the lamports. */
const TIP: ParsedInstruction = {
  programIdIndex: 3,
  accounts: Uint8Array.of(0, 1),
  data: Uint8Array.of(2, 0, 0, 0, ...new Uint8Array(new BigUint64Array([MIN_TIP]).buffer)),
}

type Shape = {
  readonly version: 'legacy' | 0 | 1
  /** Data of a memo, in bytes. */
  readonly memoBytes?: number
  /** Keys besides the payer, the tip account, the memo program and the System Program. */
  readonly moreKeys?: number
  readonly loadedKeys?: number
  /** The lookup table that these are loaded from. */
  readonly table?: Uint8Array
}

/** A signed transaction with a tip. */
function tippedOf(shape: Shape, blockhash: string): Uint8Array {
  const { version, memoBytes = 10, moreKeys = 0, loadedKeys = 0, table = new Uint8Array(32).fill(9) } = shape
  const more = Array.from({ length: moreKeys }, (_, at) => new Uint8Array(32).fill(7).with(0, at).with(1, 99))
  const transaction: ParsedTransaction = {
    version,
    signatures: [new Uint8Array(64)],
    message: new Uint8Array(),
    header: { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: 2 + moreKeys },
    staticKeys: [PAYER.publicKey, (TIP_KEYS[0] as SigningKey).publicKey, MEMO_PROGRAM, SYSTEM_PROGRAM, ...more],
    recentBlockhash: decodeBase58(blockhash),
    instructions: [TIP, { programIdIndex: 2, accounts: new Uint8Array(), data: new Uint8Array(memoBytes).fill(0x61) }],
    addressTableLookups:
      loadedKeys === 0
        ? []
        : [
            {
              accountKey: table,
              writableIndexes: new Uint8Array(),
              readonlyIndexes: Uint8Array.from({ length: loadedKeys }, (_, at) => at),
            },
          ],
    config:
      version === 1
        ? { priorityFeeLamports: 5000n, computeUnitLimit: 10_000, loadedAccountsDataSizeLimit: 100_000, heapSize: null }
        : null,
    wireLength: 0,
  }
  const wire = encodeParsedTransaction(transaction)
  const [signatureAt, message] = version === 1 ? [wire.length - 64, wire.subarray(0, -64)] : [1, wire.subarray(65)]
  wire.set(signEd25519(message, PAYER), signatureAt)
  return wire
}

/** A transaction of exactly this many bytes. */
function ofBytes(version: 'legacy' | 1, bytes: number, blockhash: string): Uint8Array {
  const guess = bytes - tippedOf({ version, memoBytes: 200 }, blockhash).length + 200
  const wire = tippedOf({ version, memoBytes: guess }, blockhash)
  assert.equal(wire.length, bytes)
  return wire
}

/** A chain with a lookup table, and a sender. */
async function startWithTable(limits: SenderGiven['limits']) {
  const sluice = await startChainAndSender({ limits })
  const { rpc } = sluice.localnet
  const { key } = await createLookupTable(`http://${rpc.host}:${rpc.port}`)
  return { ...sluice, table: key.toBytes() }
}

const RELAXED = { perAddressPerSecond: 1000, perAddressBurst: 1000, perPayerPerSecond: 1000, perPayerBurst: 1000 }

describe('transactions of all formats at the sender', () => {
  let sluice: Awaited<ReturnType<typeof startWithTable>>
  before(async () => {
    sluice = await startWithTable(RELAXED)
  })
  after(() => sluice[Symbol.asyncDispose]())

  it('accepts the largest transaction of each format and 128 account locks', async () => {
    const hash = sluice.blockhash()
    for (const [what, wire] of [
      ['legacy of 1232 bytes', ofBytes('legacy', 1232, hash)],
      ['v1 of 4096 bytes', ofBytes(1, 4096, hash)],
      ['v0 with 128 locks', tippedOf({ version: 0, loadedKeys: 124, table: sluice.table }, hash)],
      ['v1 with 120 keys', tippedOf({ version: 1, moreKeys: 116 }, hash)],
    ] as const) {
      const { result, error } = await sluice.sender.send(wire)
      assert.equal(typeof result, 'string', `${what}: ${error?.message} ${JSON.stringify(error?.data)}`)
    }
  })

  it('refuses what exceeds a limit with the name and the size of the limit', async () => {
    const hash = sluice.blockhash()
    for (const [wire, limit, size] of [
      [tippedOf({ version: 0, loadedKeys: 125 }, hash), 'accountLocksMax', 128],
      [ofBytes('legacy', 1233, hash), 'transactionBytesMax', 1232],
      [ofBytes(1, 4097, hash), 'transactionV1BytesMax', 4096],
      [new Uint8Array(4200), 'transactionV1BytesMax', 4096],
    ] as const) {
      const { error } = await sluice.sender.send(wire)
      assert.deepEqual([error?.code, error?.data['limit'], error?.data['size']], [-32602, limit, size])
      assert.ok(error?.message.includes(limit) === true, String(error?.message))
    }
    const base58 = await sluice.sender.call('sendTransaction', '2'.repeat(1684), { encoding: 'base58' })
    assert.deepEqual([base58.error?.data['limit'], base58.error?.data['size']], ['base58CharsMax', 1683])
    const raw = await fetch(`${sluice.sender.url}/api/v1/transactions`, {
      method: 'POST',
      headers: { 'content-type': 'application/octet-stream' },
      body: Buffer.from(tippedOf({ version: 0, loadedKeys: 125 }, hash)),
    })
    assert.equal(raw.status, 400)
    assert.match(await raw.text(), /accountLocksMax/)
  })
})

describe('the limits of the sender are configuration', () => {
  const limits = {
    ...RELAXED,
    accountLocksMax: 64,
    transactionBytesMax: 2000,
    transactionV1BytesMax: 16_384,
  }
  let sluice: Awaited<ReturnType<typeof startWithTable>>
  before(async () => {
    sluice = await startWithTable(limits)
  })
  after(() => sluice[Symbol.asyncDispose]())

  it('lower and higher ones apply', async () => {
    const hash = sluice.blockhash()
    const { error } = await sluice.sender.send(tippedOf({ version: 0, loadedKeys: 61 }, hash))
    assert.deepEqual([error?.data['limit'], error?.data['size']], ['accountLocksMax', 64])
    for (const wire of [
      tippedOf({ version: 0, loadedKeys: 60, table: sluice.table }, hash),
      ofBytes('legacy', 2000, hash),
      // More than the 8 KiB that a request body may have by default.
      ofBytes(1, 16_384, hash),
    ]) {
      const response = await sluice.sender.send(wire)
      assert.equal(typeof response.result, 'string', JSON.stringify(response.error))
    }
    const over = await sluice.sender.send(ofBytes('legacy', 2001, hash))
    assert.deepEqual([over.error?.data['limit'], over.error?.data['size']], ['transactionBytesMax', 2000])
  })
})

describe('transactions of all formats through the gateway', () => {
  let node: FakeNode
  let gateway: Gateway
  before(async () => {
    node = await startFakeNode()
    node.respond = () => ({ result: '"ok"' })
    gateway = await startGateway([{ name: 'fake', rpc: node.rpc }])
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  it('forwards sendTransaction, simulateTransaction and sendBundle unchanged, whatever the node may refuse', async () => {
    const { token } = await gateway.subscribe({ overrides: { unitsPerSecond: null, sendsPerSecond: null } })
    const hash = '11111111111111111111111111111111'
    const wires = [
      ofBytes('legacy', 1232, hash),
      ofBytes(1, 4096, hash),
      tippedOf({ version: 0, loadedKeys: 124 }, hash),
      tippedOf({ version: 0, loadedKeys: 200 }, hash),
      ofBytes(1, 6000, hash),
    ].map((wire) => Buffer.from(wire).toString('base64'))
    const bodies = [
      ...wires.flatMap((wire) =>
        ['sendTransaction', 'simulateTransaction'].map((method) =>
          JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: [wire, { encoding: 'base64' }] }),
        ),
      ),
      JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'sendBundle', params: [wires, { encoding: 'base64' }] }),
    ]
    for (const body of bodies) {
      const before = node.calls.length
      const response = await fetch(gateway.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-token': token },
        body,
      })
      assert.equal(response.status, 200)
      await response.text()
      assert.deepEqual(
        node.calls.slice(before).map((call) => call.body),
        [body],
      )
    }
  })
})
