import { hash } from 'node:crypto'
import type { Clock, Timer } from '../../core/clock.ts'
import { JsonScanner } from '../../solana/json/scan.ts'
import { upstreamRequest } from '../../upstreams/http-call.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import { deletedAccount } from './deleted-account.ts'
import { canonicalParams, type PubSubKind } from './request.ts'

/** A change that a subscription missed while it had no node: the `result` of a notification to send now, as text. */
export type Missed = {
  readonly result: string
  readonly slot: number
  readonly isLast: boolean
  /** An account that does not exist, in the form in which nodes notify that. */
  readonly isDeleted?: boolean | undefined
}

/** Larger accounts are not read again; their subscribers only get the gap notification. */
const REREAD_BYTES_MAX = 2 * 1024 * 1024
const DEPTH_MAX = 256
const LEVELS = ['processed', 'confirmed', 'finalized']
/** Finalized slots are about 32 behind the newest. */
export const FINALIZED_SLOTS = 32

/** Thousands of subscriptions lose a node at once; this many reads of a process run at the same time. */
const CONCURRENT_MAX = 32
/** A node may be behind the one of the new subscription, and confirmed state behind both: it is read again, after doubling delays. */
const READS_MAX = 5
const REPEAT_MS = 1000

export type CatchUpRequest = {
  readonly upstream: Pick<Upstream, 'forwardAsync'>
  readonly kind: PubSubKind
  readonly params: string
  /** The new subscription reports changes after this slot: older state may lack some. */
  readonly minSlot: number
  /** Whether the result is still needed when the read starts and when it ends. */
  isNeeded(): boolean
  /** Called later, for each state that may have been missed. False where it is older than what the subscribers have. */
  onMissed(missed: Missed): boolean
}

export type CatchUp = {
  /** Reads the current state of an account or signature. At most one read waits for each subscription; a later one replaces it. */
  start(subscription: object, request: CatchUpRequest): void
}

type Task = { readonly request: CatchUpRequest; reads: number; lastDigest: string | undefined }

/** `threads`: the gateway threads of the process, of which each runs its share of the reads. */
export function createCatchUp(clock: Clock, threads = 1): CatchUp {
  const concurrentMax = Math.max(1, Math.floor(CONCURRENT_MAX / threads))
  const waiting = new Map<object, Task>()
  const repeating = new Map<object, Timer>()
  let running = 0

  function next(): void {
    for (const [subscription, task] of waiting) {
      if (running >= concurrentMax) return
      waiting.delete(subscription)
      if (!task.request.isNeeded()) continue
      void runOne(subscription, task)
    }
  }

  async function runOne(subscription: object, task: Task): Promise<void> {
    running += 1
    const isCurrent = await run(task)
    running -= 1
    if (!isCurrent) repeat(subscription, task)
    next()
  }

  function repeat(subscription: object, task: Task): void {
    // Another loss has started a read of its own.
    if (task.reads >= READS_MAX || !task.request.isNeeded() || waiting.has(subscription)) return
    const timer = clock.setTimer(REPEAT_MS * 2 ** (task.reads - 1), () => {
      repeating.delete(subscription)
      waiting.set(subscription, task)
      next()
    })
    timer.unref?.()
    repeating.set(subscription, timer)
  }

  return {
    start(subscription, request) {
      if (request.kind !== 'account' && request.kind !== 'signature') return
      repeating.get(subscription)?.cancel()
      repeating.delete(subscription)
      waiting.delete(subscription)
      waiting.set(subscription, { request, reads: 0, lastDigest: undefined })
      next()
    },
  }
}

/** False where the state that was read is older than that of the new subscription. */
async function run(task: Task): Promise<boolean> {
  const { request } = task
  task.reads += 1
  try {
    const state = await readState(request)
    if (state === undefined || !request.isNeeded()) return true
    const { missed } = state
    const digest = missed && hash('sha1', missed.result.slice(missed.result.indexOf('"value"')))
    if (missed !== undefined && digest !== task.lastDigest && request.onMissed(missed)) task.lastDigest = digest
    return state.slot >= state.neededSlot
  } catch {
    // The response is not JSON. The gap was reported already.
    return true
  }
}

type State = {
  readonly slot: number
  readonly neededSlot: number
  /** Undefined where nothing is known to be missed. */
  readonly missed: Missed | undefined
}

/** Only the state of accounts and signatures can be read afterwards. Undefined where it cannot be. */
async function readState({ upstream, kind, params, minSlot }: CatchUpRequest): Promise<State | undefined> {
  const [target, options] = readParams(params)
  if (target === undefined) return undefined
  const config = (options ?? {}) as Readonly<Record<string, unknown>>
  const commitment = config['commitment'] ?? 'finalized'
  if (kind === 'account') {
    const { encoding, dataSlice } = config
    const account = [target, { encoding, commitment: config['commitment'], dataSlice }]
    const response = await read(upstream, 'getAccountInfo', account, minSlot)
    if (!isResult(response)) return undefined
    const neededSlot = commitment === 'finalized' ? minSlot - FINALIZED_SLOTS : minSlot
    return { slot: response.slot, neededSlot, missed: accountMissed(response, encoding) }
  }
  const response = await readStatus(upstream, target, minSlot)
  if (!isResult(response)) return undefined
  return { slot: response.slot, neededSlot: minSlot, missed: signatureMissed(response, commitment) }
}

/** The status cache of a node forgets a signature after 300 slots, which an outage may exceed. Nodes without history refuse to search it. */
async function readStatus(upstream: CatchUpRequest['upstream'], signature: unknown, minSlot: number): Promise<Read> {
  const method = 'getSignatureStatuses'
  const found = await read(upstream, method, [[signature], { searchTransactionHistory: true }], minSlot)
  return found === 'no-result' ? read(upstream, method, [[signature]], minSlot) : found
}

type ReadResult = { readonly result: string; readonly slot: number }
/** `no-result`: the node responded, with an error or in another form. */
type Read = ReadResult | 'no-result' | 'no-response'

function isResult(read: Read): read is ReadResult {
  return typeof read === 'object'
}

const NO_VALUE = /"value":\s*null\s*\}$/

function accountMissed({ result, slot }: ReadResult, encoding: unknown): Missed | undefined {
  if (!NO_VALUE.test(result)) return { result, slot, isLast: false }
  const value = deletedAccount(encoding)
  const { context } = JSON.parse(result) as { context: unknown }
  return value && { result: JSON.stringify({ context, value }), slot, isLast: false, isDeleted: true }
}

function signatureMissed({ result, slot }: ReadResult, commitment: unknown): Missed | undefined {
  const { context, value } = JSON.parse(result) as {
    context: unknown
    value: ({ confirmationStatus?: string; err: unknown } | null)[]
  }
  const status = value[0]
  const level = levelOf(commitment)
  // A level includes those below it: the node may report a transaction as finalized that was never reported as confirmed.
  if (!status || level === -1 || levelOf(status.confirmationStatus) < level) return undefined
  return { result: JSON.stringify({ context, value: { err: status.err } }), slot, isLast: true }
}

/** Params that JSON.parse and JSON.stringify would change cannot be used in another call: returns an empty list for them. */
function readParams(paramsText: string): readonly unknown[] {
  const params: unknown = JSON.parse(paramsText)
  const isExact = Array.isArray(params) && JSON.stringify(params) === canonicalParams(paramsText)
  return isExact ? params : []
}

function levelOf(commitment: unknown): number {
  return LEVELS.indexOf(String(commitment))
}

async function read(
  upstream: Pick<Upstream, 'forwardAsync'>,
  method: string,
  params: unknown,
  minSlot: number,
): Promise<Read> {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
  // A node that has reached the slot is preferred.
  const response = await upstream.forwardAsync(upstreamRequest(method, body, { slot: minSlot }))
  if (response.kind !== 'responded') return 'no-response'
  if (response.rest !== undefined || response.body.length > REREAD_BYTES_MAX) {
    response.rest?.abort()
    return 'no-response'
  }
  const result = resultOf(response.body.toString('utf8'))
  const slot = /^\{"context":\{[^{}]*"slot":\s*(\d{1,16})/.exec(result ?? '')?.[1]
  return result === undefined || slot === undefined ? 'no-result' : { result, slot: Number(slot) }
}

/** The text of the member `result`. */
function resultOf(text: string): string | undefined {
  const scan = new JsonScanner(text, DEPTH_MAX)
  let result: string | undefined
  scan.skipSpace()
  if (scan.peek() !== '{') return undefined
  scan.eachMember((name) => {
    scan.skipSpace()
    const from = scan.at
    scan.skipValue()
    if (name === 'result') result = text.slice(from, scan.at)
  })
  return scan.fault === undefined ? result : undefined
}

const VALUE = Buffer.from('"value":')
const AFTER_RESULT = ',"subscription":'.length

/** Larger accounts are not hashed at every change; after a loss they are sent again. */
const DIGEST_BYTES_MAX = 64 * 1024

/** A digest of the account in a notification, to recognize it; undefined where the frame has another layout. */
export function accountDigest(frame: Buffer, idFrom: number): string | undefined {
  return valueDigest(frame.subarray(0, idFrom - AFTER_RESULT))
}

/** The same for the result of `getAccountInfo`. */
export function resultDigest(result: string): string | undefined {
  return valueDigest(Buffer.from(result))
}

function valueDigest(upToResult: Buffer): string | undefined {
  if (upToResult.length > DIGEST_BYTES_MAX) return undefined
  const at = upToResult.indexOf(VALUE)
  return at === -1 ? undefined : hash('sha1', upToResult.subarray(at + VALUE.length, -1))
}
