import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { CommitmentLevel, SubscribeDeshredRequestSchema, SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../solana/geyser/protobuf.ts'
import { WIRE_BYTES, WireReader } from '../../solana/geyser/wire-reader.ts'

/** Transactions as shreds give them, before they are executed, and as a node has executed them. */
export const STREAM_KINDS = ['decoded', 'geyser'] as const
export type StreamKind = (typeof STREAM_KINDS)[number]

export type StreamFilter = {
  /** Only transactions with one of these accounts; all where it is empty. */
  readonly accounts: readonly string[]
  readonly hasVotes: boolean
}

export const STREAM_PATHS: Readonly<Record<StreamKind, string>> = {
  decoded: '/geyser.Geyser/SubscribeDeshred',
  geyser: '/geyser.Geyser/Subscribe',
}

/** Fields of the update (SubscribeUpdateDeshred, SubscribeUpdate of proto/geyser.proto). */
const FIELDS: Readonly<Record<StreamKind, { readonly transaction: number; readonly ping: number }>> = {
  decoded: { transaction: 2, ping: 3 },
  geyser: { transaction: 4, ping: 6 },
}

const ACCOUNT_CHARACTERS_MAX = 44

/** Whether a filter can have this account: 32 bytes in base58. */
export function isAccount(text: string): boolean {
  try {
    return text.length <= ACCOUNT_CHARACTERS_MAX && decodeBase58(text).length === 32
  } catch {
    return false
  }
}

/** The request that opens the stream. */
export function requestOf(kind: StreamKind, { accounts, hasVotes }: StreamFilter): Uint8Array {
  const filter = { accountInclude: [...accounts], ...(hasVotes ? {} : { vote: false }) }
  return kind === 'decoded'
    ? encodeMessage(SubscribeDeshredRequestSchema, { deshredTransactions: { bench: filter } })
    : encodeMessage(SubscribeRequestSchema, {
        transactions: { bench: filter },
        commitment: CommitmentLevel.PROCESSED,
      })
}

/** The reply to a ping, without which some load balancers close the stream. */
export function pingOf(kind: StreamKind): Uint8Array {
  const ping = { ping: { id: 1 } }
  return kind === 'decoded'
    ? encodeMessage(SubscribeDeshredRequestSchema, ping)
    : encodeMessage(SubscribeRequestSchema, ping)
}

/** The signature of a transaction as a text, `ping`, or undefined for any other message. */
export function readUpdate(kind: StreamKind, message: Uint8Array): { signature: string } | 'ping' | undefined {
  const fields = FIELDS[kind]
  const reader = new WireReader(message)
  while (reader.next()) {
    if (reader.field === fields.ping) return 'ping'
    if (reader.field !== fields.transaction || reader.wireType !== WIRE_BYTES) continue
    // Both have the transaction's information as field 1, and the signature as field 1 of that.
    const info = findBytes(message, reader.from, reader.to)
    const signature = info && findBytes(message, info.from, info.to)
    if (signature === undefined) return undefined
    return { signature: Buffer.from(message.subarray(signature.from, signature.to)).toString('latin1') }
  }
  return undefined
}

/** Where field 1 of the message in [from, to) is. */
function findBytes(bytes: Uint8Array, from: number, to: number): { from: number; to: number } | undefined {
  const reader = new WireReader(bytes, from, to)
  while (reader.next())
    if (reader.field === 1 && reader.wireType === WIRE_BYTES) return { from: reader.from, to: reader.to }
  return undefined
}
