import { decodeBase58, encodeBase58 } from '../../../src/solana/crypto/base58.ts'
import { memoInstruction, transferInstruction } from '../../../src/solana/transaction/build.ts'
import { MEMO_PROGRAM, sign, signatureOf, walletOf } from '../../support/sender/start.ts'
import { pause } from '../client.ts'
import type { ServedChain } from './served-chain.ts'

export type Load = {
  readonly served: ServedChain
  readonly isOver: () => boolean
  report(violation: string): void
  count(what: string, by?: number): void
}

export const TIP_LAMPORTS = 1_000_000
const CALL_MS_MAX = 20_000
const METHODS: readonly (readonly [method: string, params: readonly unknown[]])[] = [
  ['getSlot', []],
  ['getBalance', ['11111111111111111111111111111111']],
  ['getLatestBlockhash', [{ commitment: 'confirmed' }]],
  ['getBlockHeight', [{ commitment: 'finalized' }]],
  ['getEpochInfo', []],
]

/** One call after another; each has a result, and its cost is added up. */
export async function callRpc({ served, isOver, report, count }: Load): Promise<void> {
  for (let n = 0; !isOver(); n++) {
    const [method, params] = METHODS[n % METHODS.length] as (typeof METHODS)[number]
    const response = await fetch(`http://${served.at.rpc}/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-token': served.token },
      body: JSON.stringify({ jsonrpc: '2.0', id: n, method, params }),
      signal: AbortSignal.timeout(CALL_MS_MAX),
    }).catch((error: unknown) => report(`rpc: ${method}: ${String(error)}`))
    if (response !== undefined) {
      const text = await response.text()
      count('calls')
      count('units', Number(response.headers.get('x-ratelimit-cost') ?? 0))
      if (response.status !== 200 || !text.includes('"result"'))
        report(`rpc: ${method}: ${response.status} ${text.slice(0, 200)}`)
    }
    await pause(25)
  }
}

/** A query of a customer after the other: coverage ends with the newest row, and one block follows the other. */
export async function query({ served, isOver, report, count }: Load): Promise<void> {
  const sql = `SELECT to_slot, (SELECT max(slot) FROM blocks) FROM coverage WHERE table_name = 'blocks' FORMAT JSONCompactEachRow`
  while (!isOver()) {
    const response = await fetch(`http://${served.at.indexer}/`, {
      method: 'POST',
      headers: served.sqlHeaders,
      body: sql,
      signal: AbortSignal.timeout(CALL_MS_MAX),
    }).catch((error: unknown) => report(`sql: ${String(error)}`))
    if (response !== undefined) {
      const text = await response.text()
      count('queries')
      if (response.status !== 200) report(`sql: ${response.status} ${text.slice(0, 200)}`)
      else if (text !== '') {
        const [to, newest] = (JSON.parse(text) as [unknown, unknown]).map(Number) as [number, number]
        if (to !== newest) report(`sql: coverage ends at ${to}, the newest block is ${newest}`)
      }
    }
    await pause(250)
  }
}

/** Sends tipped transactions, each by a payer with lamports. Adds the signatures of those that were accepted. */
export async function sendTransactions(
  { served, isOver, report, count }: Load,
  tipAccount: string,
  sent: string[],
): Promise<void> {
  const payer = walletOf(0)
  const tip = transferInstruction({
    from: payer.publicKey,
    to: decodeBase58(tipAccount),
    lamports: BigInt(TIP_LAMPORTS),
  })
  for (let n = 0; !isOver(); n++) {
    const { value } = await served.chain<{ value: { blockhash: string } }>('getLatestBlockhash')
    const wire = sign(payer, value.blockhash, [tip, memoInstruction(MEMO_PROGRAM, `soak ${n}`)])
    const response = await fetch(`http://${served.at.sender}/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: n,
        method: 'sendTransaction',
        params: [Buffer.from(wire).toString('base64'), { encoding: 'base64', skipPreflight: true }],
      }),
      signal: AbortSignal.timeout(CALL_MS_MAX),
    }).catch((error: unknown) => report(`sender: ${String(error)}`))
    if (response !== undefined) {
      const { result, error } = (await response.json()) as { result?: string; error?: object }
      count('transactions')
      if (result === signatureOf(wire)) sent.push(result)
      else report(`sender: ${response.status} ${JSON.stringify(error)}`)
    }
    await pause(100)
  }
}

/** Gives the payer and the tip account their lamports; resolves when the chain has them. */
export async function fund({ chain }: ServedChain, tipAccount: string): Promise<void> {
  const addresses = [encodeBase58(walletOf(0).publicKey), tipAccount]
  for (const address of addresses) await chain('requestAirdrop', address, 100_000_000_000)
  for (const address of addresses)
    while ((await chain<{ value: number }>('getBalance', address, { commitment: 'confirmed' })).value === 0)
      await pause(100)
}
