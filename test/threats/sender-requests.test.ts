import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { decodeText, decodeWire } from '../../src/sender/accept/decode.ts'
import { createRpc } from '../../src/sender/accept/rpc.ts'
import { tipTerms } from '../../src/sender/accept/tip-terms.ts'
import { checkTip } from '../../src/solana/transaction/tip.ts'
import type { ParsedTransaction } from '../../src/solana/transaction/transaction.ts'
import { TRANSACTION_LIMITS } from '../../src/solana/transaction/types.ts'
import { startTestSender, type TestSender, TIP_ACCOUNTS } from '../support/sender/start.ts'
import { encodeParsedTransaction } from '../support/solana/encode-transaction.ts'

const BODY_BYTES_MAX = 8192
/** The longest that one request may block the event loop. */
const CPU_MS_MAX = 50

describe('ids of JSON-RPC calls', () => {
  let sender: TestSender
  before(async () => {
    sender = await startTestSender({ limits: { readsPerAddressPerSecond: 1000 } })
  })
  after(() => sender[Symbol.asyncDispose]())

  const post = async (body: Buffer<ArrayBuffer>) => {
    const response = await fetch(sender.url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) }
  }

  test('returns an id byte for byte in results and errors, single and in a batch', async () => {
    for (const id of [
      '12345678901234567890',
      '99999999999999999999999999',
      '1.0',
      '1e2',
      '-0',
      '"\\u0041"',
      '"é 水 🜚"',
      '""',
      'null',
    ]) {
      for (const method of ['getVersion', 'sendTransaction', 'unknown']) {
        const call = `{"jsonrpc":"2.0","method":"${method}","params":["x"],"id":${id}}`
        for (const [body, end] of [
          [call, `,"id":${id}}`],
          [`[${call}]`, `,"id":${id}}]`],
        ] as const) {
          const { bytes } = await post(Buffer.from(body))
          assert.equal(
            bytes.toString('latin1').slice(-Buffer.byteLength(end)),
            Buffer.from(end).toString('latin1'),
            body,
          )
        }
      }
    }
  })

  test('a body that is not UTF-8 is a parse error and is not echoed', async () => {
    for (const bad of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80]]) {
      const parts = ['{"jsonrpc":"2.0","method":"getVersion","id":"', '"}'].map((text) => Buffer.from(text))
      const { status, bytes } = await post(Buffer.concat([parts[0] as Buffer, Buffer.from(bad), parts[1] as Buffer]))
      assert.equal(status, 200)
      assert.match(bytes.toString('latin1'), /"code":-32700.*"id":null\}$/, bad.join())
    }
  })
})

describe(`the most expensive requests use less than ${CPU_MS_MAX} ms of CPU`, () => {
  const { rule, terms } = tipTerms({ tipAccounts: TIP_ACCOUNTS, minTipLamports: 1_000_000 })
  const key = (n: number) => new Uint8Array(32).fill(n)
  /** The largest transaction: 64 keys, 64 transfers to accounts that are not tip accounts, 12 signatures. */
  const largest: ParsedTransaction = {
    version: 1,
    signatures: Array.from({ length: 12 }, (_, n) => new Uint8Array(64).fill(n + 1)),
    message: new Uint8Array(),
    header: { numRequiredSignatures: 12, numReadonlySigned: 0, numReadonlyUnsigned: 1 },
    staticKeys: [...Array.from({ length: 63 }, (_, n) => key(n + 1)), key(0)],
    recentBlockhash: key(77),
    instructions: Array.from({ length: 64 }, () => ({
      programIdIndex: 63,
      accounts: Uint8Array.of(0, 20),
      data: Uint8Array.of(2, 0, 0, 0, ...new Uint8Array(8).fill(1)),
    })),
    addressTableLookups: [],
    config: { priorityFeeLamports: 1n, computeUnitLimit: 1, loadedAccountsDataSizeLimit: 1, heapSize: null },
    wireLength: 0,
  }

  function cpuMsOf(run: () => unknown): number {
    const before = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }

  const rpc = createRpc({
    accept: (decode) => {
      decode()
      return { ok: true, signature: 'x', isNew: true }
    },
    terms,
    transactionLimits: TRANSACTION_LIMITS,
    version: 'test',
    isHealthy: () => true,
    takeRead: () => undefined,
    refusals: { report() {}, record() {} },
    onDuplicate() {},
  })
  const call = (text: string) => `{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["${text}"]}`
  const filled = (text: string) => call(text.repeat(BODY_BYTES_MAX).slice(0, BODY_BYTES_MAX - call('').length))
  const caller = { address: 'a', requestId: 'r' }

  for (const [what, run] of [
    ['the largest transaction', () => assert.ok(tipOf(encodeParsedTransaction(largest)) !== undefined)],
    ['the longest base58 text', () => decodeText('z'.repeat(1683), 'base58')],
    ['a base58 text of zeros', () => decodeText('1'.repeat(1683), 'base58')],
    ['a text longer than any transaction', () => decodeText('z'.repeat(BODY_BYTES_MAX), undefined)],
    ['a body of one text', () => rpc(filled('z'), caller)],
    ['a body of escapes', () => rpc(filled('\\\\'), caller)],
    ['a body of brackets', () => rpc('['.repeat(BODY_BYTES_MAX), caller)],
    ['a body of numbers', () => rpc(`[${'1,'.repeat(BODY_BYTES_MAX / 2 - 2)}1]`, caller)],
    ['a body of members', () => rpc(`{${'"":1,'.repeat(1600)}"":1}`, caller)],
    [
      'a body of params',
      () => rpc(`{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":[${'[],'.repeat(2600)}1]}`, caller),
    ],
    ['a batch of ten texts', () => rpc(`[${Array.from({ length: 10 }, () => call('z'.repeat(700))).join()}]`, caller)],
  ] as const) {
    test(what, (t) => {
      // The minimum of three runs, to exclude other work of the process.
      const ms = Math.min(...[1, 2, 3].map(() => cpuMsOf(run)))
      t.diagnostic(`${ms.toFixed(2)} ms`)
      assert.ok(ms < CPU_MS_MAX, `${ms} ms`)
    })
  }

  function tipOf(wire: Uint8Array) {
    const decoded = decodeWire(wire)
    assert.ok(decoded.ok, decoded.ok ? '' : decoded.message)
    return checkTip(decoded.transaction, rule)
  }
})
