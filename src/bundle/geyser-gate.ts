import type { Limits } from '../contract/limits.ts'
import { LIMIT_WORDS } from '../contract/limits.ts'
import { SubscribeDeshredRequestSchema, SubscribeRequestSchema } from '../solana/gen/geyser_pb.ts'
import { decodeMessage } from '../solana/protobuf.ts'
import { WIRE_BYTES, WIRE_VARINT, WireReader } from './wire-reader.ts'

export type GateVerdict =
  /** How many accounts the request names; a ping alone changes no filter. */
  { readonly ok: true; readonly accounts: number; readonly isPing: boolean } | GateRefusal

export type GateRefusal = {
  readonly ok: false
  readonly rule: 'readable' | 'grpcAccountsPerStream'
  /** Kind and name of the filter at which the request breaks the rule. */
  readonly filter: { readonly kind: string; readonly name: string } | undefined
  readonly message: string
}

/** One SubscribeRequest, as its bytes, against the limits of a plan. */
export type Gate = (request: Uint8Array, limits: Pick<Limits, 'grpcAccountsPerStream'>) => GateVerdict

/** Where accounts stand in one kind of filter: lists of them, and the set that is given as a cuckoo filter. */
type FilterKind = { readonly kind: string; readonly lists: readonly number[]; readonly cuckoo?: number }

type RequestShape = {
  readonly name: string
  /** By the field of the request. */
  readonly filters: Readonly<Record<number, FilterKind>>
  readonly ping: number
  /** Fields that may stand beside a ping without changing what is sent. */
  readonly besidePing: readonly number[]
  readonly isReadable: (bytes: Uint8Array) => boolean
}

/** Field numbers of geyser.proto: `account` and `owner`; `account_include`, `account_exclude`, `account_required`. */
const SUBSCRIBE: RequestShape = {
  name: 'SubscribeRequest',
  filters: {
    1: { kind: 'accounts', lists: [2, 3], cuckoo: 6 },
    3: { kind: 'transactions', lists: [3, 4, 6], cuckoo: 7 },
    10: { kind: 'transactions_status', lists: [3, 4, 6], cuckoo: 7 },
    4: { kind: 'blocks', lists: [1], cuckoo: 5 },
  },
  ping: 9,
  besidePing: [6],
  isReadable: (bytes) => decodeMessage(SubscribeRequestSchema, bytes) !== undefined,
}
const DESHRED: RequestShape = {
  name: 'SubscribeDeshredRequest',
  filters: { 1: { kind: 'deshred_transactions', lists: [2, 3, 4] } },
  ping: 2,
  besidePing: [],
  isReadable: (bytes) => decodeMessage(SubscribeDeshredRequestSchema, bytes) !== undefined,
}

const GATES: Readonly<Record<string, Gate>> = {
  Subscribe: (request, limits) => check(SUBSCRIBE, request, limits),
  SubscribeDeshred: (request, limits) => check(DESHRED, request, limits),
}

/** The gate of a method of geyser.Geyser whose requests the plan limits. */
export function gateOf(method: string): Gate | undefined {
  return Object.hasOwn(GATES, method) ? GATES[method] : undefined
}

/** Shown of a filter's name, which the customer chose. */
const NAME_SHOWN_MAX = 64

/**
 * Accounts are counted as they stand on the wire, over all filters: a filter that comes twice, or in two halves, or under a name that is special
 * to a language, counts in full whatever the node makes of it.
 */
function check(
  shape: RequestShape,
  request: Uint8Array,
  { grpcAccountsPerStream: max }: Parameters<Gate>[1],
): GateVerdict {
  const reader = new WireReader(request)
  let accounts = 0
  let hasPing = false
  let isMore = false
  while (reader.next()) {
    if (reader.field === shape.ping) hasPing = true
    else if (!shape.besidePing.includes(reader.field)) isMore = true
    const filter = shape.filters[reader.field]
    if (filter === undefined || reader.wireType !== WIRE_BYTES) continue
    const entry = countEntry(filter, reader.inside(), request)
    if (entry === undefined) return unreadable(shape)
    accounts += entry.accounts
    if (max !== null && accounts > max) return tooMany(filter.kind, entry.name, accounts, max)
  }
  if (reader.isBroken || !shape.isReadable(request)) return unreadable(shape)
  return { ok: true, accounts, isPing: hasPing && !isMore }
}

function unreadable({ name }: RequestShape): GateRefusal {
  return { ok: false, rule: 'readable', filter: undefined, message: `request refused: it is not a ${name}` }
}

function tooMany(kind: string, name: string, accounts: number, max: number): GateRefusal {
  const shown = name.length > NAME_SHOWN_MAX ? `${name.slice(0, NAME_SHOWN_MAX)}…` : name
  return {
    ok: false,
    rule: 'grpcAccountsPerStream',
    filter: { kind, name },
    message: `filter refused: ${kind} "${shown}" brings the request to ${accounts} accounts; grpcAccountsPerStream allows ${max} ${LIMIT_WORDS.grpcAccountsPerStream}`,
  }
}

/** One entry of a map of filters: its name is field 1, the filter field 2. */
function countEntry(
  filter: FilterKind,
  entry: WireReader,
  bytes: Uint8Array,
): { readonly name: string; readonly accounts: number } | undefined {
  let name = ''
  let accounts = 0
  while (entry.next()) {
    if (entry.wireType !== WIRE_BYTES) continue
    if (entry.field === 1) name = Buffer.from(bytes.subarray(entry.from, entry.to)).toString('utf8')
    if (entry.field !== 2) continue
    const inFilter = countFilter(filter, entry.inside())
    if (inFilter === undefined) return undefined
    accounts += inFilter
  }
  return entry.isBroken ? undefined : { name, accounts }
}

function countFilter({ lists, cuckoo }: FilterKind, filter: WireReader): number | undefined {
  let accounts = 0
  while (filter.next()) {
    if (filter.wireType !== WIRE_BYTES) continue
    if (lists.includes(filter.field)) accounts += 1
    else if (filter.field === cuckoo) {
      const held = cuckooCapacity(filter.inside())
      if (held === undefined) return undefined
      accounts += held
    }
  }
  return filter.isBroken ? undefined : accounts
}

/** A cuckoo filter does not say how many accounts are in it, so it counts as many as it can hold. */
function cuckooCapacity(cuckoo: WireReader): number | undefined {
  let dataBytes = 0
  let buckets = 0
  let perBucket = 0
  while (cuckoo.next()) {
    if (cuckoo.field === 1 && cuckoo.wireType === WIRE_BYTES) dataBytes = Math.max(dataBytes, cuckoo.to - cuckoo.from)
    if (cuckoo.wireType !== WIRE_VARINT) continue
    if (cuckoo.field === 2) buckets = Math.max(buckets, cuckoo.value)
    if (cuckoo.field === 3) perBucket = Math.max(perBucket, cuckoo.value)
  }
  if (cuckoo.isBroken) return undefined
  // Fingerprints have 16 bits at most, so the data alone already holds this many.
  return Math.max(buckets * perBucket, Math.floor(dataBytes / 2))
}
