import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { Agent, request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import * as web3 from '@solana/web3.js'
import { createSeededRandom, type Random, randomInt } from '../../src/core/random.ts'
import { RPC_METHODS } from '../../src/localnet/rpc/dispatch.ts'
import { repeatsOf, seedOf } from '../support/process/property.ts'
import { startTestServer, type TestServer } from '../support/solana/rpc-server.ts'

const BODIES = repeatsOf({ short: 2000, full: 100_000 })
const IN_FLIGHT = 8
/** Maximum heap growth at the end: responses in flight and uncollected garbage. */
const HEAP_GROWTH_BYTES_MAX = 96 * 1024 * 1024

const KEY = '4msgK65vdz5ADUAB3eTQGpF388NuQUAoknLxutUQJd5B'
const TOKEN = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const account = {
  encoding: 'jsonParsed',
  commitment: 'processed',
  dataSlice: { offset: 1, length: 9 },
  minContextSlot: 1,
}

/** Fragments that often break parsers. */
const NASTY = [
  'null',
  '-1',
  '18446744073709551615',
  '1e400',
  '1.5',
  '{}',
  '[]',
  '""',
  '"\\ud800"',
  'true',
  '[[[[]]]]',
  '{"__proto__":1}',
  ',',
  '"',
  '\\',
  '\u0000',
  '💥',
]

describe('mutated JSON bodies', () => {
  let server: TestServer
  const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT })
  let corpus: string[] = []

  before(async () => {
    server = await startTestServer({ slotsPerEpoch: 64, commitment: { confirmedSlots: 0, finalizedSlots: 1 } })
    await server.pass(3)
    corpus = await makeCorpus(server)
  })
  after(async () => {
    agent.destroy()
    await server[Symbol.asyncDispose]()
  })

  it(`${BODIES} of them all get a valid response`, async (t) => {
    const random = createSeededRandom(seedOf(t))
    const heapBefore = process.memoryUsage().heapUsed
    let sent = 0
    let refused = 0
    const worker = async () => {
      while (sent < BODIES) {
        sent++
        const body = mutate(corpus[randomInt(random, corpus.length)] as string, random)
        const response = await post(body)
        if (checkResponse(body, response.status, response.text)) refused++
      }
    }
    await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
    assert.ok(refused > BODIES / 4, 'too few mutations were refused')
    assert.equal(
      (await server.post('{"jsonrpc":"2.0","id":1,"method":"getHealth"}')).text,
      '{"jsonrpc":"2.0","result":"ok","id":1}\n',
    )
    assert.equal(server.chain.engineRestarts(), 0)
    const growth = process.memoryUsage().heapUsed - heapBefore
    t.diagnostic(`heap grew by ${Math.round(growth / 1024)} KiB`)
    assert.ok(growth < HEAP_GROWTH_BYTES_MAX, `the heap grew by ${growth} bytes`)
  })

  function post(body: Buffer): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': body.length }
      const sending = request(server.url, { method: 'POST', agent, headers }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }))
      })
      sending.on('error', reject)
      sending.end(body)
    })
  }
})

/** One valid body for each method, some batches, and transactions of every kind. */
async function makeCorpus(server: TestServer): Promise<string[]> {
  const payer = web3.Keypair.fromSeed(new Uint8Array(32).fill(3))
  const signature = await server.call<string>('requestAirdrop', payer.publicKey.toBase58(), 10_000_000_000)
  await server.pass(2)
  const transaction = new web3.Transaction({
    feePayer: payer.publicKey,
    recentBlockhash: server.chain.latestBlockhash('processed').blockhash,
  })
  transaction.add(web3.SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: payer.publicKey, lamports: 1 }))
  transaction.sign(payer)
  const wire = transaction.serialize().toString('base64')
  const params: Record<string, unknown[]> = {
    getAccountInfo: [KEY, account],
    getMultipleAccounts: [[KEY, TOKEN], account],
    getProgramAccounts: [
      TOKEN,
      { ...account, filters: [{ dataSize: 165 }, { memcmp: { offset: 0, bytes: KEY } }], withContext: true },
    ],
    getBalance: [KEY, { commitment: 'confirmed' }],
    getTokenAccountBalance: [KEY],
    getTokenSupply: ['So11111111111111111111111111111111111111112'],
    getTokenLargestAccounts: ['So11111111111111111111111111111111111111112'],
    getTokenAccountsByOwner: [KEY, { programId: TOKEN }, account],
    getTokenAccountsByDelegate: [KEY, { programId: TOKEN }, account],
    getMinimumBalanceForRentExemption: [165],
    getLargestAccounts: [{ filter: 'circulating' }],
    getSupply: [{ excludeNonCirculatingAccountsList: true }],
    isBlockhashValid: [KEY],
    getFeeForMessage: [transaction.serializeMessage().toString('base64')],
    getRecentPrioritizationFees: [[KEY]],
    sendTransaction: [wire, { encoding: 'base64', skipPreflight: true, maxRetries: 1 }],
    simulateTransaction: [
      wire,
      { encoding: 'base64', accounts: { addresses: [KEY], encoding: 'base64' }, innerInstructions: true },
    ],
    requestAirdrop: [KEY, 1_000_000],
    getSignatureStatuses: [[signature], { searchTransactionHistory: true }],
    getSignaturesForAddress: [payer.publicKey.toBase58(), { limit: 10, until: signature }],
    getTransaction: [signature, { encoding: 'jsonParsed', maxSupportedTransactionVersion: 0 }],
    getBlock: [2, { encoding: 'json', transactionDetails: 'full', rewards: true, maxSupportedTransactionVersion: 0 }],
    getBlocks: [0, 3],
    getBlocksWithLimit: [0, 3, { commitment: 'confirmed' }],
    getBlockTime: [1],
    getBlockCommitment: [1],
    getBlockProduction: [{ range: { firstSlot: 0, lastSlot: 1 } }],
    getSlotLeaders: [0, 4],
    getLeaderSchedule: [0, { identity: KEY }],
    getInflationReward: [[KEY], { epoch: 0 }],
    getVoteAccounts: [{ keepUnstakedDelinquents: true, delinquentSlotDistance: 5 }],
    getRecentPerformanceSamples: [3],
  }
  const bodies = Object.keys(RPC_METHODS).map((method, id) =>
    JSON.stringify({ jsonrpc: '2.0', id, method, params: params[method] ?? [] }),
  )
  return [...bodies, `[${bodies.slice(0, 5).join()}]`, '[]', '{"jsonrpc":"2.0","method":"getHealth"}']
}

function mutate(text: string, random: Random): Buffer {
  let bytes: Buffer = Buffer.from(text)
  for (let round = randomInt(random, 4); round >= 0; round--) {
    const at = randomInt(random, bytes.length + 1)
    const other = randomInt(random, bytes.length + 1)
    const nasty = Buffer.from(NASTY[randomInt(random, NASTY.length)] as string)
    switch (randomInt(random, 8)) {
      case 0:
        bytes = Buffer.concat([bytes.subarray(0, at), nasty, bytes.subarray(at)])
        break
      case 1:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + randomInt(random, 8))])
        break
      case 2:
        if (bytes.length > 0) bytes[at % bytes.length] = randomInt(random, 256)
        break
      case 3:
        bytes = Buffer.concat([
          bytes.subarray(0, at),
          bytes.subarray(Math.min(at, other), Math.max(at, other)),
          bytes.subarray(at),
        ])
        break
      case 4:
        bytes = bytes.subarray(0, at)
        break
      case 5:
        bytes = Buffer.concat([Buffer.alloc(randomInt(random, 200), '['), bytes])
        break
      default:
        bytes = replaceValue(bytes, nasty, random)
    }
  }
  return bytes.subarray(0, 40_000)
}

/** Replaces one of the values with the fragment, so that the body often stays valid JSON. */
function replaceValue(bytes: Buffer, piece: Buffer, random: Random): Buffer {
  const values = [...bytes.toString('latin1').matchAll(/"(?:[^"\\]|\\.)*"(?!:)|-?\d+|true|false|null/g)]
  const value = values[randomInt(random, values.length || 1)]
  if (!value) return bytes
  return Buffer.concat([bytes.subarray(0, value.index), piece, bytes.subarray(value.index + value[0].length)])
}

/** Whether a call was refused. Throws where a response is not one of Agave's. */
function checkResponse(body: Buffer, status: number, text: string): boolean {
  const shown = `${body.toString().slice(0, 500)} -> ${status} ${text.slice(0, 300)}`
  assert.equal(status, 200, shown)
  if (text === '') return false
  const parsed = JSON.parse(text) as object
  const responses = (Array.isArray(parsed) ? parsed : [parsed]) as {
    jsonrpc?: string
    id?: unknown
    error?: { code: number; message: string }
  }[]
  assert.ok(responses.length > 0, shown)
  for (const response of responses) {
    assert.equal(response.jsonrpc, '2.0', shown)
    assert.ok('id' in response && 'result' in response !== 'error' in response, shown)
    if (!response.error) continue
    assert.equal(typeof response.error.message, 'string', shown)
    assert.ok(Number.isInteger(response.error.code) && response.error.code !== -32603, shown)
  }
  return responses.some(({ error }) => error)
}
