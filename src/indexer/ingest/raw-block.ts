import { BlockFault, type ChainBlock } from '../../solana/chain-block.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { blockFromGeyser, type GeyserAccount } from '../../solana/geyser/block.ts'
import { blockFromJson, parseExactJson } from '../../solana/json/block.ts'
import { TIME_MAX } from './batch-rows.ts'

/** A block as it was received, not decoded. */
export type RawBlock = {
  readonly slot: number
  /** `stream`: a SubscribeUpdate with a block. `backfill`: the complete response to getBlock. */
  readonly source: 'stream' | 'backfill'
  readonly bytes: Uint8Array
  /** The node that sent a response to getBlock. */
  readonly node?: string | undefined
}

export type DecodedBlock = {
  readonly block: ChainBlock
  /** The last write of each account in this block, by its key. */
  readonly accounts: ReadonlyMap<string, GeyserAccount>
}

/** Throws BlockFault when the bytes are not a complete block. */
export function decodeRawBlock(raw: RawBlock): DecodedBlock {
  const decoded = raw.source === 'backfill' ? decodeResponse(raw) : decodeUpdate(raw)
  const { slot, parentSlot, blockTime = 0, blockHeight = 0 } = decoded.block
  // The row of the block is made when it is written, which must not fail because of one block.
  if (!Number.isSafeInteger(slot) || !Number.isSafeInteger(blockHeight))
    throw new BlockFault(`slot ${slot} or height ${blockHeight} is no count`)
  if (!(blockTime >= 0 && blockTime <= TIME_MAX)) throw new BlockFault(`block time ${blockTime} is out of range`)
  // The first block of a chain, in slot 0, has its own slot as that of its parent.
  if (parentSlot >= Math.max(slot, 1)) throw new BlockFault(`parentSlot ${parentSlot} is not before slot ${slot}`)
  return decoded
}

function decodeResponse({ slot, bytes }: RawBlock): DecodedBlock {
  const response = parseJson(bytes)
  const result = typeof response === 'object' && response !== null && 'result' in response ? response.result : undefined
  return { block: blockFromJson(slot, result), accounts: new Map() }
}

function decodeUpdate({ bytes }: RawBlock): DecodedBlock {
  const { block, executedTransactionCount, accounts } = blockFromGeyser(bytes)
  // A block with missing transactions must not count as complete.
  if (block.transactions.length !== executedTransactionCount)
    throw new BlockFault(`${block.transactions.length} of ${executedTransactionCount} transactions received`)
  return { block, accounts: latestOf(accounts) }
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return parseExactJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
  } catch (cause) {
    throw new BlockFault('the response is not JSON', { cause })
  }
}

function latestOf(accounts: readonly GeyserAccount[]): ReadonlyMap<string, GeyserAccount> {
  const latest = new Map<string, GeyserAccount>()
  for (const account of accounts) {
    const key = encodeBase58(account.pubkey)
    if (account.writeVersion >= (latest.get(key)?.writeVersion ?? 0n)) latest.set(key, account)
  }
  return latest
}
