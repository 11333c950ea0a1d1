import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { isSimpleVote } from '../../solana/transaction/simple-vote.ts'
import type { TransactionRecord } from '../chain/model.ts'
import { parseRecorded } from '../chain/transaction-facts.ts'
import type { Json } from '../rpc/json.ts'
import { parsable } from '../rpc/parsed/byte-reader.ts'
import { parseVoteInstruction } from '../rpc/parsed/vote-instructions.ts'

/** What the three generations of vote instructions have in common, in their parsed form. */
type Vote = {
  readonly slots?: readonly Json[]
  readonly lockouts?: readonly { readonly slot: Json }[]
  readonly hash: Json
  readonly timestamp: Json
}

/** The result of a voteNotification; undefined when the transaction is not a successful vote. */
export function voteNotification(record: TransactionRecord): Json | undefined {
  const transaction = parseRecorded(record)
  if (record.meta.err !== null || !isSimpleVote(transaction)) return undefined
  const [instruction] = transaction.instructions
  const accounts = Array.from(instruction?.accounts ?? [], (index) =>
    encodeBase58(transaction.staticKeys[index] as Uint8Array),
  )
  const parsed = parsable(() => parseVoteInstruction(accounts, instruction?.data ?? new Uint8Array(0)))
  const info = parsed?.info as { readonly [member: string]: unknown } | undefined
  const vote = (info?.['towerSync'] ?? info?.['voteStateUpdate'] ?? info?.['vote']) as Vote | undefined
  if (!vote) return undefined
  return {
    votePubkey: accounts[0] as string,
    slots: vote.slots ?? vote.lockouts?.map(({ slot }) => slot) ?? [],
    hash: vote.hash,
    timestamp: vote.timestamp,
    signature: record.signature,
  }
}
