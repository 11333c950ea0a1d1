import { encodeBase58 } from '../solana/base58.ts'
import { BlockFault, blockFromGeyser } from '../solana/block-from-geyser.ts'
import { blockFromJson, parseExactJson } from '../solana/block-from-json.ts'
import type { ChainBlock } from '../solana/chain-block.ts'
import { type SubscribeUpdateAccountInfo, SubscribeUpdateSchema } from '../solana/gen/geyser_pb.ts'
import { decodeMessage } from '../solana/protobuf.ts'
import type { Row } from './block-rows.ts'

/** A block as it came, before anybody looked into it. */
export type RawBlock = {
  readonly slot: number
  /** `stream`: a SubscribeUpdate with a block. `backfill`: the whole answer to getBlock. */
  readonly source: 'stream' | 'backfill'
  readonly bytes: Uint8Array
}

export type DecodedBlock = {
  readonly block: ChainBlock
  /** Rows for `accounts`: the last write of each account in this block. */
  readonly accounts: readonly Row[]
}

/** Throws BlockFault where the bytes are not the whole block. */
export function decodeRawBlock({ slot, source, bytes }: RawBlock): DecodedBlock {
  if (source === 'backfill') {
    const answer = parseJson(bytes) as { result?: unknown }
    return { block: blockFromJson(slot, answer.result), accounts: [] }
  }
  const update = decodeMessage(SubscribeUpdateSchema, bytes)?.updateOneof
  if (update?.case !== 'block') throw new BlockFault('the message holds no block')
  const { transactions, executedTransactionCount, accounts } = update.value
  // A block whose transactions are cut short must not count as complete.
  if (BigInt(transactions.length) !== executedTransactionCount)
    throw new BlockFault(`${transactions.length} of ${executedTransactionCount} transactions came`)
  return { block: blockFromGeyser(update.value), accounts: accountRows(slot, accounts) }
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return parseExactJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
  } catch (cause) {
    throw new BlockFault('the answer is no JSON', { cause })
  }
}

function accountRows(slot: number, accounts: readonly SubscribeUpdateAccountInfo[]): Row[] {
  const latest = new Map<string, SubscribeUpdateAccountInfo>()
  for (const account of accounts) {
    const key = encodeBase58(account.pubkey)
    if (account.writeVersion >= (latest.get(key)?.writeVersion ?? 0n)) latest.set(key, account)
  }
  return [...latest].map(([key, account]) => [
    key,
    encodeBase58(account.owner),
    slot,
    account.writeVersion,
    account.lamports,
    account.executable,
    account.rentEpoch,
    Buffer.from(account.data).toString('base64'),
    account.txnSignature === undefined || account.txnSignature.length === 0 ? '' : encodeBase58(account.txnSignature),
  ])
}
