import { type GrpcKind, LIMIT_LABELS, type Limits } from '../../contract/limits.ts'
import { Geyser } from '../../solana/gen/geyser_pb.ts'
import { type ScanProblem, scanMessage } from '../../solana/geyser/protobuf-scan.ts'
import { WireReader } from '../../solana/geyser/wire-reader.ts'
import { type BlockedOwners, createBlockedOwners } from './blocked-owners.ts'
import { isUnary } from './methods.ts'
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

/** A limit of the plan, or a rule for every plan: the gateway and every node must read a request in the same way. */
export type PolicyRule =
  | 'grpcAccountsPerStream'
  | 'grpcKinds'
  | 'grpcBlockedOwners'
  | 'readable'
  | 'knownFields'
  | 'singleFields'
  | 'grpcRequestFields'
  | 'grpcRequestFilters'

export type PolicyRefusal = {
  readonly ok: false
  readonly rule: PolicyRule
  /** Kind and name of the filter that breaks the rule. */
  readonly filter: { readonly kind: string; readonly name: string } | undefined
  readonly message: string
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
  if (max !== null && accounts > max) return tooManyUnknown(accounts, max)
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
    if (problem !== undefined) return refuseRequest(schema, problem, { fieldsMax: UNARY_FIELDS_MAX, limits })
  }
  return { ok: true, accounts: 0, filters: {}, isPing: false, fromSlot: undefined }
}

const UNARY_FIELDS_MAX = 64

/** Characters shown of a text that the customer chose, such as the name of a filter. */
const TEXT_SHOWN_MAX = 64

/** A public key in the shortest form. */
const ACCOUNT_BYTES_MIN = 32

/**
 * Counts on the encoded request. The scan before it makes sure that the node reads the same: no filter twice, no truncated filter, and no
 * unknown field where the plan decides what may be selected. Elsewhere unknown fields are passed on and count as the accounts they could hold.
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
  if (problem !== undefined) return refuseRequest(shape.schema, problem, { fieldsMax, limits })
  const reader = new WireReader(request)
  const on: Validated = {
    bytes: Buffer.from(request.buffer, request.byteOffset, request.length),
    blocked: createBlockedOwners(grpcBlockedOwners),
  }
  const filters: Partial<Record<GrpcKind, number>> = {}
  let accounts = Math.ceil(unknownBytes / ACCOUNT_BYTES_MIN)
  if (max !== null && accounts > max) return tooManyUnknown(accounts, max)
  let hasPing = false
  let isMore = false
  let fromSlot: number | undefined
  while (reader.next()) {
    if (reader.field === shape.ping) hasPing = true
    else if (shape.besidePing?.includes(reader.field) === false) isMore = true
    if (reader.field === shape.fromSlot) fromSlot = reader.value
    const filter = shape.filters[reader.field]
    if (filter === undefined) continue
    const entry = readEntry(filter, reader.inside(), on)
    const { kind } = filter
    if (grpcKinds !== null && !grpcKinds.includes(kind)) return refuseKind(kind, entry.name, grpcKinds)
    if (entry.blocked !== undefined) return refuseBlocked(kind, entry.name, entry.blocked)
    accounts += entry.accounts
    filters[kind] = (filters[kind] ?? 0) + 1
    if (max !== null && accounts > max) return tooMany(kind, entry.name, accounts, max)
  }
  return { ok: true, accounts, filters, isPing: hasPing && !isMore, fromSlot }
}

/** Fields besides the accounts: filters, their names and settings, four for each filter. */
const OTHER_FIELDS_MAX = 16_384
/** The fields of a 4 MiB message that lists only accounts. */
const FIELDS_MAX = 100_000

/** Filters of all kinds in one request: the default limit of names in Yellowstone's plugin. */
const FILTERS_MAX = 4096

/** Fields of one request, over all its filters. */
export function requestFieldsMax({ grpcAccountsPerStream }: PolicyLimits): number {
  return Math.min((grpcAccountsPerStream ?? FIELDS_MAX) + OTHER_FIELDS_MAX, FIELDS_MAX)
}

function refuseRequest(
  schema: MessageSchema,
  problem: ScanProblem,
  { fieldsMax, limits }: { readonly fieldsMax: number; readonly limits: PolicyLimits },
): PolicyRefusal {
  const where = `field ${problem.field} of ${problem.message}`
  const refuse = (rule: PolicyRule, message: string): PolicyRefusal => ({
    ok: false,
    rule,
    filter: undefined,
    message: `request refused: ${message}`,
  })
  switch (problem.rule) {
    case 'known-fields': {
      const filter = problem.entry === undefined ? '' : `in the filter "${shownText(problem.entry)}", `
      const limit = selectionLimitOf(limits)
      const why = limit === undefined ? ', so it would be ignored' : ` and could select updates, which ${limit} of the plan limits`
      return refuse('knownFields', `${filter}${where} is not known here${why}; rule knownFields, leave it out`)
    }
    case 'single-fields':
      return refuse('singleFields', `${where} comes twice; rule singleFields, send it once`)
    case 'fields-max':
      return refuse('grpcRequestFields', `it has more than the ${fieldsMax} fields grpcRequestFields allows`)
    case 'entries-max':
      return refuse('grpcRequestFilters', `it has more than the ${FILTERS_MAX} filters grpcRequestFilters allows`)
    case 'readable':
      return refuse('readable', `it is not a ${schema.name}, at ${where}`)
  }
}

/** A refusal that names the filter. */
export function refuseFilter(rule: PolicyRefusal['rule'], kind: string, name: string, message: string): PolicyRefusal {
  return { ok: false, rule, filter: { kind, name }, message: `filter refused: ${kind} "${shownText(name)}" ${message}` }
}

/** A text of the customer as a refusal shows it. */
export function shownText(text: string): string {
  return text.length > TEXT_SHOWN_MAX ? `${text.slice(0, TEXT_SHOWN_MAX)}…` : text
}

function tooMany(kind: string, name: string, accounts: number, max: number): PolicyRefusal {
  const words = LIMIT_LABELS.grpcAccountsPerStream
  const message = `brings the request to ${accounts} accounts; grpcAccountsPerStream allows ${max} ${words}`
  return refuseFilter('grpcAccountsPerStream', kind, name, message)
}

function tooManyUnknown(accounts: number, max: number): PolicyRefusal {
  const words = LIMIT_LABELS.grpcAccountsPerStream
  const message = `request refused: fields that are not known here could hold ${accounts} accounts; grpcAccountsPerStream allows ${max} ${words}`
  return { ok: false, rule: 'grpcAccountsPerStream', filter: undefined, message }
}

function refuseKind(kind: string, name: string, allowed: readonly string[]): PolicyRefusal {
  return refuseFilter(
    'grpcKinds',
    kind,
    name,
    `is of a kind the plan does not have; grpcKinds allows ${allowed.join(', ')}`,
  )
}

function refuseBlocked(kind: string, name: string, blocked: Blocked): PolicyRefusal {
  return refuseFilter('grpcBlockedOwners', kind, name, `${blocked}; grpcBlockedOwners does not allow it`)
}

/** Why a filter could select blocked accounts. */
type Blocked =
  | `asks for ${string}`
  | 'names nothing, so it asks for everything'
  | 'holds a set of accounts that cannot be looked into'

type Counted = { readonly accounts: number; readonly blocked: Blocked | undefined }
type Validated = { readonly bytes: Buffer; readonly blocked: BlockedOwners }

/** One entry of a map of filters: its name is field 1, the filter field 2. */
function readEntry(filter: FilterKind, entry: WireReader, on: Validated): Counted & { readonly name: string } {
  let name = ''
  let accounts = 0
  let blocked: Blocked | undefined
  let hasFilter = false
  while (entry.next()) {
    if (entry.field === 1) name = textAt(on.bytes, entry)
    if (entry.field !== 2) continue
    hasFilter = true
    const inFilter = readFilter(filter, entry.inside(), on)
    accounts += inFilter.accounts
    blocked ??= inFilter.blocked
  }
  // Rust clients omit an empty filter.
  if (!hasFilter) blocked ??= readFilter(filter, new WireReader(NOTHING), on).blocked
  return { name, accounts, blocked }
}

const NOTHING = new Uint8Array(0)

function readFilter(kind: FilterKind, filter: WireReader, { bytes, blocked: blockedOwners }: Validated): Counted {
  let accounts = 0
  let isNarrow = kind.included.length === 0
  let blocked: Blocked | undefined
  while (filter.next()) {
    if (kind.excluded.includes(filter.field)) accounts += 1
    else if (kind.included.includes(filter.field)) {
      accounts += 1
      isNarrow = true
      const account = blockedOwners.isEmpty ? undefined : blockedOwners.find(bytes, filter.from, filter.to)
      if (account !== undefined) blocked ??= `asks for ${account}`
    } else if (filter.field === kind.signature) isNarrow ||= filter.to > filter.from
    else if (filter.field === kind.cuckoo) {
      accounts += cuckooCapacity(filter.inside())
      blocked ??= 'holds a set of accounts that cannot be looked into'
    }
  }
  if (!isNarrow) blocked ??= 'names nothing, so it asks for everything'
  return { accounts, blocked: blockedOwners.isEmpty ? undefined : blocked }
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
