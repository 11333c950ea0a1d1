import { Buffer } from 'node:buffer'
import { SubscribeRequestPingSchema } from '../../../solana/gen/geyser_pb.ts'
import { decodeMessage } from '../../../solana/geyser/protobuf.ts'
import { WIRE_BYTES, WireReader } from '../../../solana/geyser/wire-reader.ts'

/** The bytes of one filter within its request. */
export type FilterRange = { readonly from: number; readonly to: number }

/**
 * A SubscribeDeshredRequest, of whose filters only the names are read: one filter may name as many accounts as fit into the largest message, and to
 * decode them takes longer than a request may hold the event loop.
 */
export type DeshredRequest = {
  readonly message: Uint8Array
  readonly ping: number | undefined
  readonly transactions: ReadonlyMap<string, FilterRange>
  readonly slots: ReadonlyMap<string, FilterRange>
}

/** Fields of SubscribeDeshredRequest (geyser.proto). */
const TRANSACTIONS = 1
const PING = 2
const SLOTS = 3

/** Undefined where it is no such message. */
export function readDeshredRequest(message: Uint8Array): DeshredRequest | undefined {
  const transactions = new Map<string, FilterRange>()
  const slots = new Map<string, FilterRange>()
  let ping: number | undefined
  const reader = new WireReader(message)
  while (reader.next()) {
    const { field, from, to } = reader
    if (field !== TRANSACTIONS && field !== PING && field !== SLOTS) continue
    if (reader.wireType !== WIRE_BYTES) return undefined
    if (field === PING) {
      const read = decodeMessage(SubscribeRequestPingSchema, message.subarray(from, to))
      if (read === undefined) return undefined
      ping = read.id
    } else if (!readEntry(message, reader.inside(), field === SLOTS ? slots : transactions)) return undefined
  }
  return reader.isBroken ? undefined : { message, ping, transactions, slots }
}

const EMPTY: FilterRange = { from: 0, to: 0 }

/** One entry of a map: its name is field 1, the filter field 2. Either may be missing. Of two entries with one name the last counts. */
function readEntry(message: Uint8Array, entry: WireReader, into: Map<string, FilterRange>): boolean {
  let name = ''
  let range = EMPTY
  while (entry.next()) {
    const { field, from, to } = entry
    if (field !== 1 && field !== 2) continue
    if (entry.wireType !== WIRE_BYTES) return false
    if (field === 1) name = Buffer.from(message.buffer, message.byteOffset + from, to - from).toString('utf8')
    else range = { from, to }
  }
  into.set(name, range)
  return !entry.isBroken
}
