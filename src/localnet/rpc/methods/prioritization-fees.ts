import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { isSimpleVote } from '../../../solana/transaction/simple-vote.ts'
import { isWritableStatic, parseTransaction } from '../../../solana/transaction/transaction.ts'
import type { ParsedTransaction } from '../../../solana/transaction/types.ts'
import { COMPUTE_BUDGET_PROGRAM } from '../../chain/addresses.ts'
import type { Block, Chain, TransactionRecord } from '../../chain/model.ts'
import type { Json } from '../json.ts'

/** MAX_NUM_RECENT_BLOCKS of Agave. */
const BLOCKS_MAX = 150
const SET_UNIT_PRICE = 3
const MICRO_LAMPORTS_PER_LAMPORT = 1_000_000n

/** The lowest price, in micro-lamports per compute unit, of a transaction in the block, and of one that write-locks each account. Votes do not count. */
type BlockFees = { readonly lowest: bigint; readonly lowestByAccount: ReadonlyMap<string, bigint> }

export type PrioritizationFees = (chain: Chain, addresses: readonly string[]) => Json

/** Reads the prioritization fees of recent blocks. The fees of a block are cached as long as the block is in memory. */
export function createPrioritizationFees(): PrioritizationFees {
  const known = new WeakMap<Block, BlockFees>()

  function feesOf(block: Block): BlockFees {
    const found = known.get(block) ?? readBlockFees(block)
    known.set(block, found)
    return found
  }

  return (chain, addresses) => {
    const newest = chain.slot('processed')
    const samples: Json[] = []
    for (let slot = Math.max(newest - BLOCKS_MAX + 1, chain.firstAvailableSlot()); slot <= newest; slot++) {
      const block = chain.block(slot)
      if (!block) continue
      const { lowest, lowestByAccount } = feesOf(block)
      const prioritizationFee = addresses.reduce(
        (highest, address) => max(highest, lowestByAccount.get(address) ?? 0n),
        lowest,
      )
      samples.push({ slot, prioritizationFee })
    }
    return samples
  }
}

function readBlockFees(block: Block): BlockFees {
  let lowest: bigint | undefined
  const lowestByAccount = new Map<string, bigint>()
  for (const record of block.transactions) {
    const parsed = parseTransaction(record.wire)
    if (!parsed.ok || isSimpleVote(parsed.transaction)) continue
    const price = unitPriceOf(parsed.transaction)
    lowest = lowest === undefined ? price : min(lowest, price)
    for (const address of writableKeys(parsed.transaction, record)) {
      lowestByAccount.set(address, min(lowestByAccount.get(address) ?? price, price))
    }
  }
  return { lowest: lowest ?? 0n, lowestByAccount }
}

function writableKeys(transaction: ParsedTransaction, { meta }: TransactionRecord): string[] {
  const own = transaction.staticKeys.filter((_key, index) => isWritableStatic(transaction, index)).map(encodeBase58)
  return [...own, ...meta.loadedAddresses.writable]
}

function unitPriceOf(transaction: ParsedTransaction): bigint {
  const { config } = transaction
  if (config) {
    const units = BigInt(config.computeUnitLimit ?? 0)
    return units === 0n ? 0n : ((config.priorityFeeLamports ?? 0n) * MICRO_LAMPORTS_PER_LAMPORT) / units
  }
  for (const { programIdIndex, data } of transaction.instructions) {
    if (data[0] !== SET_UNIT_PRICE || data.length < 9) continue
    if (encodeBase58(transaction.staticKeys[programIdIndex] as Uint8Array) !== COMPUTE_BUDGET_PROGRAM) continue
    return new DataView(data.buffer, data.byteOffset).getBigUint64(1, true)
  }
  return 0n
}

const min = (a: bigint, b: bigint) => (a < b ? a : b)
const max = (a: bigint, b: bigint) => (a > b ? a : b)
