import type { GrpcKind, Limits } from '../../contract/limits.ts'
import { Geyser } from '../../solana/gen/geyser_pb.ts'
import { scanMessage } from '../../solana/geyser/protobuf-scan.ts'
import { WireReader } from '../../solana/geyser/wire-reader.ts'
import { type BlockedOwners, createBlockedOwners } from './blocked-owners.ts'
import { isUnary } from './methods.ts'
import {
  accountsRefusal,
  type BlockReason,
  blockedRefusal,
  kindRefusal,
  type PolicyRefusal,
  requestRefusal,
  unknownAccountsRefusal,
} from './policy-refusal.ts'
import { DESHRED, type FilterKind, type MessageSchema, type RequestShape, SUBSCRIBE } from './request-shape.ts'

export type PolicyVerdict = PolicyPass | PolicyRefusal

export type PolicyPass = {
  readonly ok: true
  /** How many accounts the request names. */
  readonly accounts: number
  /** How many filters of each kind it has. */
  readonly filters: Readonly<Partial<Record<GrpcKind, number>>>
  /** A ping, which changes no filter. */
  readonly isPing: boolean
  /** The slot from which the stream is to start. */
  readonly fromSlot: number | undefined
}

export type PolicyLimits = Pick<Limits, 'grpcAccountsPerStream' | 'grpcKinds' | 'grpcBlockedOwners'>

/**
 * Checks the bytes of one request against the limits of a plan. A request that is forwarded may have fields that are not known here; in one that is
 * served here nobody would read them.
 */
export type Policy = (request: Uint8Array, limits: PolicyLimits, isForwarded?: boolean) => PolicyVerdict

const POLICIES: ReadonlyMap<string, Policy> = new Map<string, Policy>([
  ['Subscribe', (request, limits) => check(SUBSCRIBE, request, limits)],
  ['SubscribeDeshred', (request, limits, isForwarded) => check(DESHRED, request, limits, isForwarded)],
  ...Geyser.methods
    .filter(({ name }) => isUnary(name))
    .map(({ name, input }): [string, Policy] => [name, (request, limits) => checkUnary(input, request, limits)]),
])

export function policyOf(method: string): Policy {
  return POLICIES.get(method) ?? checkUnknown
}

/** Requests of a method that is not known here count as the accounts they could hold, like the unknown fields of one that is. */
function checkUnknown(request: Uint8Array, { grpcAccountsPerStream: max }: PolicyLimits): PolicyVerdict {
  const accounts = Math.floor(request.length / ACCOUNT_BYTES_MIN)
  if (max !== null && accounts > max) return unknownAccountsRefusal(accounts, max)
  return { ok: true, accounts, filters: {}, isPing: false, fromSlot: undefined }
}

/** The limit of the plan that cannot be enforced for this method, because its requests are not understood. */
export function undecidedBy(method: string, limits: PolicyLimits): 'grpcKinds' | 'grpcBlockedOwners' | undefined {
  return !POLICIES.has(method) ? selectionLimitOf(limits) : undefined
}

/** The limit that decides what may be selected. Under it a field that is not known here is refused, since it could select anything. */
function selectionLimitOf(limits: PolicyLimits): 'grpcKinds' | 'grpcBlockedOwners' | undefined {
  if (limits.grpcKinds !== null) return 'grpcKinds'
  return limits.grpcBlockedOwners.length > 0 ? 'grpcBlockedOwners' : undefined
}

/** Whether the plan decides what may be selected. */
export function isSelectionLimited(limits: PolicyLimits): boolean {
  return selectionLimitOf(limits) !== undefined
}

/** The request of a unary call has no filters; a plan that decides what may be selected refuses unknown fields of it too. */
function checkUnary(schema: MessageSchema, request: Uint8Array, limits: PolicyLimits): PolicyVerdict {
  if (isSelectionLimited(limits)) {
    const { problem } = scanMessage(schema, request, { fieldsMax: UNARY_FIELDS_MAX, entriesMax: 0 })
    if (problem !== undefined) return requestRefusal(schema, problem, boundsOf(UNARY_FIELDS_MAX, limits))
  }
  return { ok: true, accounts: 0, filters: {}, isPing: false, fromSlot: undefined }
}

const UNARY_FIELDS_MAX = 64

/** A public key in the shortest form. */
const ACCOUNT_BYTES_MIN = 32

/**
 * Counts on the encoded request. The scan before it makes sure that the node reads the same: no filter twice, no truncated filter, and no
 * unknown field where the plan decides what may be selected or no node reads the request. Elsewhere unknown fields are passed on and count as the
 * accounts they could hold.
 */
function check(shape: RequestShape, request: Uint8Array, limits: PolicyLimits, isForwarded = true): PolicyVerdict {
  const { grpcAccountsPerStream: max, grpcKinds, grpcBlockedOwners } = limits
  const fieldsMax = requestFieldsMax(limits)
  const allowsUnknown = isForwarded && !isSelectionLimited(limits)
  const { problem, unknownBytes } = scanMessage(shape.schema, request, {
    fieldsMax,
    entriesMax: FILTERS_MAX,
    allowsUnknown,
  })
  if (problem !== undefined) return requestRefusal(shape.schema, problem, boundsOf(fieldsMax, limits))
  const reader = new WireReader(request)
  const scan: Scan = {
    bytes: Buffer.from(request.buffer, request.byteOffset, request.length),
    blockedOwners: createBlockedOwners(grpcBlockedOwners),
  }
  const filters: Partial<Record<GrpcKind, number>> = {}
  let accounts = Math.ceil(unknownBytes / ACCOUNT_BYTES_MIN)
  if (max !== null && accounts > max) return unknownAccountsRefusal(accounts, max)
  let hasPing = false
  let isMore = false
  let fromSlot: number | undefined
  while (reader.next()) {
    if (reader.field === shape.ping) hasPing = true
    else if (shape.besidePing?.includes(reader.field) === false) isMore = true
    if (reader.field === shape.fromSlot) fromSlot = reader.value
    const filter = shape.filters[reader.field]
    if (filter === undefined) continue
    const entry = readEntry(filter, reader.inside(), scan)
    const { kind } = filter
    if (grpcKinds !== null && !grpcKinds.includes(kind)) return kindRefusal(kind, entry.name, grpcKinds)
    if (entry.blockReason !== undefined) return blockedRefusal(kind, entry.name, entry.blockReason)
    accounts += entry.accounts
    filters[kind] = (filters[kind] ?? 0) + 1
    if (max !== null && accounts > max) return accountsRefusal(kind, entry.name, accounts, max)
  }
  return { ok: true, accounts, filters, isPing: hasPing && !isMore, fromSlot }
}

/** Fields besides the accounts: filters, their names and settings, four for each filter. */
const OTHER_FIELDS_MAX = 16_384
/** The fields of a 4 MiB message that lists only accounts. */
const FIELDS_MAX = 100_000

/** Filters of all kinds in one request: the default limit of names in Yellowstone's plugin. */
const FILTERS_MAX = 4096

function boundsOf(fieldsMax: number, limits: PolicyLimits) {
  return { fieldsMax, filtersMax: FILTERS_MAX, selectionLimit: selectionLimitOf(limits) }
}

/** Fields of one request, over all its filters. */
export function requestFieldsMax({ grpcAccountsPerStream }: PolicyLimits): number {
  return Math.min((grpcAccountsPerStream ?? FIELDS_MAX) + OTHER_FIELDS_MAX, FIELDS_MAX)
}

type Counted = { readonly accounts: number; readonly blockReason: BlockReason | undefined }
type Scan = { readonly bytes: Buffer; readonly blockedOwners: BlockedOwners }

/** One entry of a map of filters: its name is field 1, the filter field 2. */
function readEntry(filter: FilterKind, entry: WireReader, scan: Scan): Counted & { readonly name: string } {
  let name = ''
  let accounts = 0
  let blockReason: BlockReason | undefined
  let hasFilter = false
  while (entry.next()) {
    if (entry.field === 1) name = textAt(scan.bytes, entry)
    if (entry.field !== 2) continue
    hasFilter = true
    const inFilter = readFilter(filter, entry.inside(), scan)
    accounts += inFilter.accounts
    blockReason ??= inFilter.blockReason
  }
  // Rust clients omit an empty filter.
  if (!hasFilter) blockReason ??= readFilter(filter, new WireReader(NOTHING), scan).blockReason
  return { name, accounts, blockReason }
}

const NOTHING = new Uint8Array(0)

function readFilter(kind: FilterKind, filter: WireReader, { bytes, blockedOwners }: Scan): Counted {
  let accounts = 0
  let isNarrow = kind.included.length === 0
  let blockReason: BlockReason | undefined
  while (filter.next()) {
    if (kind.excluded.includes(filter.field)) accounts += 1
    else if (kind.included.includes(filter.field)) {
      accounts += 1
      isNarrow = true
      const account = blockedOwners.isEmpty ? undefined : blockedOwners.find(bytes, filter.from, filter.to)
      if (account !== undefined) blockReason ??= `asks for ${account}`
    } else if (filter.field === kind.signature) isNarrow ||= filter.to > filter.from
    else if (filter.field === kind.cuckoo) {
      accounts += cuckooCapacity(filter.inside())
      blockReason ??= 'holds a set of accounts that cannot be looked into'
    }
  }
  if (!isNarrow) blockReason ??= 'names nothing, so it asks for everything'
  return { accounts, blockReason: blockedOwners.isEmpty ? undefined : blockReason }
}

export function textAt(bytes: Buffer, { from, to }: WireReader): string {
  return bytes.toString('utf8', from, to)
}

/** A cuckoo filter does not contain its number of accounts, so its capacity counts. */
function cuckooCapacity(cuckoo: WireReader): number {
  let dataBytes = 0
  let buckets = 0
  let perBucket = 0
  while (cuckoo.next()) {
    if (cuckoo.field === 1) dataBytes = cuckoo.to - cuckoo.from
    if (cuckoo.field === 2) buckets = cuckoo.value
    if (cuckoo.field === 3) perBucket = cuckoo.value
  }
  // Fingerprints have at most 16 bits, so the data alone has at least this capacity.
  return Math.max(buckets * perBucket, Math.floor(dataBytes / 2))
}
