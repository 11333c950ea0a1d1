import { type GrpcKind, LIMIT_WORDS, type Limits } from '../contract/limits.ts'
import { SubscribeDeshredRequestSchema, SubscribeRequestSchema } from '../solana/gen/geyser_pb.ts'
import { decodeMessage } from '../solana/protobuf.ts'
import { WIRE_BYTES, WIRE_VARINT, WireReader } from '../solana/wire-reader.ts'

export type GateVerdict = GatePass | GateRefusal

export type GatePass = {
  readonly ok: true
  /** How many accounts the request names. */
  readonly accounts: number
  /** How many filters of each kind it has. */
  readonly filters: Readonly<Partial<Record<GrpcKind, number>>>
  /** A ping alone changes no filter. */
  readonly isPing: boolean
  /** Where the request wants the stream to begin. */
  readonly fromSlot: number | undefined
}

export type GateRefusal = {
  readonly ok: false
  readonly rule: 'readable' | 'grpcAccountsPerStream' | 'grpcKinds' | 'grpcBlockedOwners'
  /** Kind and name of the filter at which the request breaks the rule. */
  readonly filter: { readonly kind: string; readonly name: string } | undefined
  readonly message: string
}

export type GateLimits = Pick<Limits, 'grpcAccountsPerStream' | 'grpcKinds' | 'grpcBlockedOwners'>

/** One SubscribeRequest, as its bytes, against the limits of a plan. */
export type Gate = (request: Uint8Array, limits: GateLimits) => GateVerdict

/** Where accounts stand in one kind of filter. */
type FilterKind = {
  readonly kind: GrpcKind
  /** Lists of accounts whose updates are wanted, and those whose updates are not. */
  readonly wanted: readonly number[]
  readonly unwanted: readonly number[]
  /** A set of wanted accounts as a cuckoo filter. */
  readonly cuckoo?: number
  /** Another field that narrows the filter to something named. */
  readonly narrows?: number
}

type RequestShape = {
  readonly name: string
  /** By the field of the request. */
  readonly filters: Readonly<Record<number, FilterKind>>
  readonly ping: number
  readonly fromSlot?: number
  /** Fields that may stand beside a ping without changing what is sent. */
  readonly besidePing: readonly number[]
  readonly isReadable: (bytes: Uint8Array) => boolean
}

const PLAIN = { wanted: [], unwanted: [] }
const TRANSACTIONS = { wanted: [3, 6], unwanted: [4], cuckoo: 7, narrows: 5 }

/** Field numbers of geyser.proto: `account` and `owner`; `account_include`, `account_required`, `account_exclude`, `signature`. */
const SUBSCRIBE: RequestShape = {
  name: 'SubscribeRequest',
  filters: {
    1: { kind: 'accounts', wanted: [2, 3], unwanted: [], cuckoo: 6 },
    2: { kind: 'slots', ...PLAIN },
    3: { kind: 'transactions', ...TRANSACTIONS },
    4: { kind: 'blocks', wanted: [1], unwanted: [], cuckoo: 5 },
    5: { kind: 'blocks_meta', ...PLAIN },
    8: { kind: 'entry', ...PLAIN },
    10: { kind: 'transactions_status', ...TRANSACTIONS },
  },
  ping: 9,
  fromSlot: 11,
  besidePing: [6],
  isReadable: (bytes) => decodeMessage(SubscribeRequestSchema, bytes) !== undefined,
}
const DESHRED: RequestShape = {
  name: 'SubscribeDeshredRequest',
  filters: {
    1: { kind: 'deshred_transactions', wanted: [2, 4], unwanted: [3] },
    3: { kind: 'slots', ...PLAIN },
  },
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
 * Everything is judged as it stands on the wire, over all filters: a filter that comes twice, or in two halves, or under a name that is special
 * to a language, counts in full whatever the node makes of it.
 */
function check(shape: RequestShape, request: Uint8Array, limits: GateLimits): GateVerdict {
  const { grpcAccountsPerStream: max, grpcKinds, grpcBlockedOwners } = limits
  const reader = new WireReader(request)
  const filters: Partial<Record<GrpcKind, number>> = {}
  let accounts = 0
  let hasPing = false
  let isMore = false
  let fromSlot: number | undefined
  while (reader.next()) {
    if (reader.field === shape.ping) hasPing = true
    else if (!shape.besidePing.includes(reader.field)) isMore = true
    if (reader.field === shape.fromSlot && reader.wireType === WIRE_VARINT) fromSlot = reader.value
    const filter = shape.filters[reader.field]
    if (filter === undefined || reader.wireType !== WIRE_BYTES) continue
    const entry = readEntry(filter, reader.inside(), { bytes: request, blocked: grpcBlockedOwners })
    if (entry === undefined) return unreadable(shape)
    const { kind } = filter
    if (grpcKinds !== null && !grpcKinds.includes(kind)) return refuseKind(kind, entry.name, grpcKinds)
    if (entry.blocked !== undefined) return refuseBlocked(kind, entry.name, entry.blocked)
    accounts += entry.accounts
    filters[kind] = (filters[kind] ?? 0) + 1
    if (max !== null && accounts > max) return tooMany(kind, entry.name, accounts, max)
  }
  if (reader.isBroken || !shape.isReadable(request)) return unreadable(shape)
  return { ok: true, accounts, filters, isPing: hasPing && !isMore, fromSlot }
}

function unreadable({ name }: RequestShape): GateRefusal {
  return { ok: false, rule: 'readable', filter: undefined, message: `request refused: it is not a ${name}` }
}

function refuseFilter(rule: GateRefusal['rule'], kind: string, name: string, says: string): GateRefusal {
  const shown = name.length > NAME_SHOWN_MAX ? `${name.slice(0, NAME_SHOWN_MAX)}…` : name
  return { ok: false, rule, filter: { kind, name }, message: `filter refused: ${kind} "${shown}" ${says}` }
}

function tooMany(kind: string, name: string, accounts: number, max: number): GateRefusal {
  const words = LIMIT_WORDS.grpcAccountsPerStream
  const says = `brings the request to ${accounts} accounts; grpcAccountsPerStream allows ${max} ${words}`
  return refuseFilter('grpcAccountsPerStream', kind, name, says)
}

function refuseKind(kind: string, name: string, allowed: readonly string[]): GateRefusal {
  return refuseFilter(
    'grpcKinds',
    kind,
    name,
    `is of a kind the plan does not have; grpcKinds allows ${allowed.join(', ')}`,
  )
}

function refuseBlocked(kind: string, name: string, blocked: Blocked): GateRefusal {
  return refuseFilter('grpcBlockedOwners', kind, name, `${blocked}; grpcBlockedOwners does not allow it`)
}

/** Why a filter would bring what is blocked. */
type Blocked =
  | `asks for ${string}`
  | 'names nothing, so it asks for everything'
  | 'holds a set of accounts that cannot be looked into'

type Counted = { readonly accounts: number; readonly blocked: Blocked | undefined }
type Judged = { readonly bytes: Uint8Array; readonly blocked: readonly string[] }

/** One entry of a map of filters: its name is field 1, the filter field 2. */
function readEntry(
  filter: FilterKind,
  entry: WireReader,
  on: Judged,
): (Counted & { readonly name: string }) | undefined {
  let name = ''
  let accounts = 0
  let blocked: Blocked | undefined
  let hasFilter = false
  while (entry.next()) {
    if (entry.wireType !== WIRE_BYTES) continue
    if (entry.field === 1) name = textAt(on.bytes, entry)
    if (entry.field !== 2) continue
    hasFilter = true
    const inFilter = readFilter(filter, entry.inside(), on)
    if (inFilter === undefined) return undefined
    accounts += inFilter.accounts
    blocked ??= inFilter.blocked
  }
  if (entry.isBroken) return undefined
  // Rust clients leave an empty filter out.
  if (!hasFilter) blocked ??= readFilter(filter, new WireReader(NOTHING), on)?.blocked
  return { name, accounts, blocked }
}

const NOTHING = new Uint8Array(0)

function readFilter(
  kind: FilterKind,
  filter: WireReader,
  { bytes, blocked: blockedOwners }: Judged,
): Counted | undefined {
  let accounts = 0
  let isNarrow = kind.wanted.length === 0
  let blocked: Blocked | undefined
  while (filter.next()) {
    if (filter.wireType !== WIRE_BYTES) continue
    if (kind.unwanted.includes(filter.field)) accounts += 1
    else if (kind.wanted.includes(filter.field)) {
      accounts += 1
      isNarrow = true
      const wanted = blockedOwners.length === 0 ? undefined : textAt(bytes, filter)
      if (wanted !== undefined && blockedOwners.includes(wanted)) blocked ??= `asks for ${wanted}`
    } else if (filter.field === kind.narrows) isNarrow ||= filter.to > filter.from
    else if (filter.field === kind.cuckoo) {
      const held = cuckooCapacity(filter.inside())
      if (held === undefined) return undefined
      accounts += held
      blocked ??= 'holds a set of accounts that cannot be looked into'
    }
  }
  if (filter.isBroken) return undefined
  if (!isNarrow) blocked ??= 'names nothing, so it asks for everything'
  return { accounts, blocked: blockedOwners.length === 0 ? undefined : blocked }
}

function textAt(bytes: Uint8Array, { from, to }: WireReader): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('utf8')
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
