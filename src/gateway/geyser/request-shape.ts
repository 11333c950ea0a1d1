import type { GrpcKind } from '../../contract/limits.ts'
import { SubscribeDeshredRequestSchema, SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import type { scanMessage } from '../../solana/geyser/protobuf-scan.ts'

/** The fields of one kind of filter that hold accounts. */
export type FilterKind = {
  readonly kind: GrpcKind
  /** Lists of included accounts, and of excluded ones. */
  readonly included: readonly number[]
  readonly excluded: readonly number[]
  /** A set of included accounts as a cuckoo filter. */
  readonly cuckoo?: number
  /** The signature of the one transaction that the filter selects. */
  readonly signature?: number
}

export type MessageSchema = Parameters<typeof scanMessage>[0]

export type RequestShape = {
  readonly schema: MessageSchema
  /** By the field of the request. */
  readonly filters: Readonly<Record<number, FilterKind>>
  readonly ping: number
  readonly fromSlot?: number
  /**
   * Fields of a request that is still a ping alone; with any other field it sets the filters too. Undefined where a node takes no filter from a request
   * with a ping, as Yellowstone's plugin does.
   */
  readonly besidePing?: readonly number[]
}

const NO_ACCOUNTS = { included: [], excluded: [] }
const TRANSACTIONS = { included: [3, 6], excluded: [4], cuckoo: 7, signature: 5 }

/** Field numbers of geyser.proto: `account` and `owner`; `account_include`, `account_required`, `account_exclude`, `signature`. */
export const SUBSCRIBE: RequestShape = {
  schema: SubscribeRequestSchema,
  filters: {
    1: { kind: 'accounts', included: [2, 3], excluded: [], cuckoo: 6 },
    2: { kind: 'slots', ...NO_ACCOUNTS },
    3: { kind: 'transactions', ...TRANSACTIONS },
    4: { kind: 'blocks', included: [1], excluded: [], cuckoo: 5 },
    5: { kind: 'blocks_meta', ...NO_ACCOUNTS },
    8: { kind: 'entry', ...NO_ACCOUNTS },
    10: { kind: 'transactions_status', ...TRANSACTIONS },
    12: { kind: 'block_footer', ...NO_ACCOUNTS },
  },
  ping: 9,
  fromSlot: 11,
}
export const DESHRED: RequestShape = {
  schema: SubscribeDeshredRequestSchema,
  filters: {
    1: { kind: 'deshred_transactions', included: [2, 4], excluded: [3] },
    3: { kind: 'slots', ...NO_ACCOUNTS },
  },
  ping: 2,
  besidePing: [],
}
