import type { GeyserAccount } from '../../solana/geyser/block.ts'
import type { WriteBatch } from '../store/store.ts'
import { BatchRows } from './batch-rows.ts'
import { addAccountRows } from './block-rows.ts'

/** For tests: blocks that only write accounts, as batches and as the states that remain of them. */

/** Balances by key, of one block. */
export type AccountBlock = { readonly slot: number; readonly balances: Readonly<Record<string, number>> }

/** Slot and balance by key. */
export type AccountStates = Readonly<Record<string, readonly [slot: number, balance: number]>>

let batches = 0

export function accountBatchOf(blocks: readonly AccountBlock[], given: Partial<WriteBatch> = {}): WriteBatch {
  const { finalizedSlot = 0 } = given
  const [rows, overwritten] = [new BatchRows(), new BatchRows()]
  const written = blocks.map(({ slot, balances }) => ({
    slot,
    accounts: new Map(Object.entries(balances).map(([key, lamports]) => [key, accountOf(lamports)])),
  }))
  addAccountRows({ rows, overwritten }, written, finalizedSlot)
  const [from = 0, to = 0] = [blocks[0]?.slot, blocks.at(-1)?.slot]
  return {
    name: `batch ${++batches}`,
    range: { from, to },
    rows: [rows],
    overwritten,
    finalizedSlot,
    tipSlot: to,
    ...given,
  }
}

function accountOf(lamports: number): GeyserAccount {
  const none = new Uint8Array(32)
  const rest = { executable: false, rentEpoch: 0n, data: new Uint8Array([1]), txnSignature: undefined }
  return { pubkey: none, owner: none, writeVersion: BigInt(lamports), lamports: BigInt(lamports), ...rest }
}

/** The states after these blocks, by key. */
export function accountStatesAfter(blocks: readonly AccountBlock[]): AccountStates {
  const states = new Map<string, readonly [number, number]>()
  for (const { slot, balances } of blocks)
    for (const [key, balance] of Object.entries(balances)) states.set(key, [slot, balance])
  return Object.fromEntries([...states].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** One step of a history: a batch, or a rewind that nothing replaces yet. `chain` has the blocks that remain after it. */
export type AccountStep = { readonly chain: readonly AccountBlock[] } & (
  | { readonly kind: 'write'; readonly batch: WriteBatch }
  | { readonly kind: 'rewind'; readonly fromSlot: number }
)

/** Blocks, forks and dead slots in random order. A rewind goes back to the finalized slot at most. Up to `skippedMax` slots have no block between two that have one. */
export function* accountHistory(
  random: (below: number) => number,
  { steps, skippedMax = 0 }: { readonly steps: number; readonly skippedMax?: number },
): Generator<AccountStep> {
  let chain: AccountBlock[] = []
  let [next, finalizedSlot] = [1, 0]
  for (let step = 0; step < steps; step++) {
    const lowest = finalizedSlot + 1
    const cut = next > lowest && random(3) === 0 ? lowest + random(next - lowest) : undefined
    if (cut !== undefined) {
      chain = chain.filter(({ slot }) => slot < cut)
      next = cut
    }
    if (cut !== undefined && random(2) === 0) {
      yield { kind: 'rewind', fromSlot: cut, chain }
      continue
    }
    const added = Array.from({ length: 1 + random(4) }, (): AccountBlock => {
      const keys = Array.from({ length: random(4) }, () => `k${random(5)}`)
      const slot = next + (skippedMax === 0 ? 0 : random(skippedMax + 1))
      next = slot + 1
      return { slot, balances: Object.fromEntries(keys.map((key) => [key, random(1000)])) }
    })
    chain = [...chain, ...added]
    finalizedSlot = Math.max(finalizedSlot, next - 1 - random(8 * (skippedMax + 1)))
    yield { kind: 'write', batch: accountBatchOf(added, { rewindFrom: cut, finalizedSlot }), chain }
  }
}
