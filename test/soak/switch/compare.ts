import { until } from '../../../src/platform/process/test-wait.ts'
import type { ReceiptBody } from '../../support/sender/start.ts'
import { pause } from '../client.ts'
import { TIP_LAMPORTS } from './load.ts'
import type { ServedChain } from './served-chain.ts'
import type { Seen } from './watch.ts'

type Block = { readonly blockhash: string; readonly signatures: readonly string[] }
export type Blocks = ReadonlyMap<number, Block>

type Report = (violation: string) => void

const WAIT_MS = 60_000

/** The final blocks of these slots, from the chain itself. */
export async function finalBlocks({ chain }: ServedChain, from: number, to: number): Promise<Blocks> {
  await until(
    `slot ${to} is final`,
    async () => (await chain<number>('getSlot', { commitment: 'finalized' })) >= to,
    WAIT_MS,
  )
  const slots = await chain<number[]>('getBlocks', from, to, { commitment: 'finalized' })
  const config = {
    transactionDetails: 'signatures',
    rewards: false,
    commitment: 'finalized',
    maxSupportedTransactionVersion: 1,
  }
  const blocks = new Map<number, Block>()
  for (const slot of slots) blocks.set(slot, await chain<Block>('getBlock', slot, config))
  return blocks
}

/**
 * Every transaction of every block was seen exactly once, in its slot, and nothing else. From `surplusFrom` on a slot may have more: a leader of the new
 * consensus that changes its parent in the middle of a slot begins its block anew, and what it sent before is known from shreds only.
 */
export function compareSeen(
  name: string,
  seen: Seen,
  blocks: Blocks,
  report: Report,
  surplusFrom = Number.POSITIVE_INFINITY,
): void {
  const slots = [...blocks.keys()]
  const [from, to] = [slots[0] as number, slots.at(-1) as number]
  for (const [slot, { signatures }] of blocks) {
    const own = seen.get(slot) ?? []
    const known = new Set(own)
    if (known.size < own.length && slot < surplusFrom)
      report(`${name}: slot ${slot}: ${own.length - known.size} transactions came twice`)
    const lost = signatures.filter((signature) => !known.delete(signature))
    if (lost.length > 0)
      report(`${name}: slot ${slot}: ${lost.length} of ${signatures.length} transactions are missing`)
    if (known.size > 0 && slot < surplusFrom)
      report(`${name}: slot ${slot}: ${known.size} transactions are not in the block`)
  }
  for (const slot of seen.keys())
    if (slot >= from && slot <= to && !blocks.has(slot)) report(`${name}: slot ${slot} has no block`)
}

/** The tables have the rows of these blocks and no other. */
export async function compareTables(served: ServedChain, blocks: Blocks, report: Report): Promise<void> {
  const slots = [...blocks.keys()]
  const [from, to] = [slots[0] as number, slots.at(-1) as number]
  const rows = async (sql: string): Promise<unknown[][]> => {
    const response = await fetch(`http://${served.at.indexer}/`, {
      method: 'POST',
      headers: served.sqlHeaders,
      body: `${sql} FORMAT JSONCompactEachRow`,
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${sql}: ${text}`)
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as unknown[])
  }
  await until(
    'the tables are complete',
    async () => {
      const [row] = await rows("SELECT from_slot, finalized_slot FROM coverage WHERE table_name = 'blocks'")
      return row !== undefined && Number(row[0]) <= from && Number(row[1]) >= to
    },
    WAIT_MS,
  )
  const within = `WHERE slot >= ${from} AND slot <= ${to}`
  const stored = new Map(
    (await rows(`SELECT slot, blockhash FROM blocks ${within}`)).map(([slot, hash]) => [Number(slot), String(hash)]),
  )
  for (const [slot, { blockhash }] of blocks)
    if (stored.get(slot) !== blockhash) report(`blocks: slot ${slot} is ${stored.get(slot)}, not ${blockhash}`)
  if (stored.size !== blocks.size) report(`blocks: ${stored.size} rows for ${blocks.size} blocks`)
  const seen: Seen = new Map()
  for (const [slot, signature] of await rows(`SELECT slot, signature FROM transactions ${within}`)) {
    const list = seen.get(Number(slot)) ?? []
    list.push(String(signature))
    seen.set(Number(slot), list)
  }
  compareSeen('transactions', seen, blocks, report)
}

type Status = { readonly slot: number; readonly err: unknown } | null

/** Each receipt is what the chain has; the ledger has the tips of those that landed. Resolves with the number that landed. */
export async function compareReceipts(served: ServedChain, sent: readonly string[], report: Report): Promise<number> {
  let landed = 0
  for (const signature of sent) {
    const { value } = await served.chain<{ value: Status[] }>('getSignatureStatuses', [signature], {
      searchTransactionHistory: true,
    })
    const onChain = value[0] ?? null
    const receipt = await readReceipt(served, signature)
    if (onChain === null) {
      if (receipt.state === 'landed') report(`receipt of ${signature}: landed, but the chain does not have it`)
      else report(`receipt of ${signature}: ${receipt.state}, a transaction was lost`)
      continue
    }
    landed += 1
    if (receipt.state !== 'landed' || receipt.landed?.slot !== onChain.slot || receipt.landed.error !== onChain.err)
      report(`receipt of ${signature}: ${receipt.state} in ${receipt.landed?.slot}, on the chain in ${onChain.slot}`)
  }
  const expected = landed * TIP_LAMPORTS
  let booked = -1
  await until(
    'the tips are booked',
    async () => {
      const [row] = JSON.parse(await served.run('tip', 'revenue', '--by', 'total', '--json')) as {
        tip_lamports: number
      }[]
      booked = row?.tip_lamports ?? 0
      return booked >= expected
    },
    WAIT_MS,
  ).catch(() => {})
  if (booked !== expected) report(`tips: ${booked} lamports are booked, ${expected} were paid`)
  return landed
}

/** Receipts have a limit of reads per second. */
async function readReceipt({ at }: ServedChain, signature: string): Promise<ReceiptBody> {
  for (;;) {
    const response = await fetch(`http://${at.sender}/v1/transactions/${signature}?wait=20`)
    if (response.status !== 429) return (await response.json()) as ReceiptBody
    await response.body?.cancel()
    await pause(100)
  }
}

/** Units in the ledger equal those that the responses reported. */
export async function compareUsage({ run }: ServedChain, reported: number, report: Report): Promise<void> {
  let booked = 0
  await until('usage is booked', async () => {
    const rows = JSON.parse(await run('usage', '--sub', 'acme-prod', '-o', 'json')) as {
      interface: string
      units: number
    }[]
    booked = rows.filter((row) => row.interface === 'rpc').reduce((sum, { units }) => sum + units, 0)
    return booked >= reported
  }).catch(() => {})
  if (booked !== reported) report(`usage: ${booked} units are booked, ${reported} were reported`)
}
