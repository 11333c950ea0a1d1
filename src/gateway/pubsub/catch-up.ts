import { hash } from 'node:crypto'
import { JsonScanner } from '../../solana/json/scan.ts'
import { upstreamRequest } from '../../upstreams/http-call.ts'
import type { Upstream } from '../../upstreams/started-pool.ts'
import { canonicalParams, type PubSubKind } from './request.ts'

/** A change that a subscription missed while it had no node: the `result` of a notification to send now, as text. */
export type Missed = { readonly result: string; readonly slot: number; readonly isLast: boolean }

/** Larger accounts are not read again; their subscribers only get the gap notification. */
const RESPONSE_BYTES_MAX = 2 * 1024 * 1024
const DEPTH_MAX = 256
const LEVELS = ['processed', 'confirmed', 'finalized']

/** Thousands of subscriptions lose a node at once; this many reads of a process run at the same time. */
const CONCURRENT_MAX = 32

export type CatchUpRequest = {
  readonly upstream: Pick<Upstream, 'forwardAsync'>
  readonly kind: PubSubKind
  readonly params: string
  /** Whether the result is still needed when the read starts and when it ends. */
  isNeeded(): boolean
  /** Called later, only where something was missed. */
  onMissed(missed: Missed): void
}

export type CatchUp = {
  /** Reads the current state of an account or signature. At most one read waits for each subscription; a later one replaces it. */
  start(subscription: object, request: CatchUpRequest): void
}

/** `threads`: the gateway threads of the process, of which each runs its share of the reads. */
export function createCatchUp(threads = 1): CatchUp {
  const concurrentMax = Math.max(1, Math.floor(CONCURRENT_MAX / threads))
  const waiting = new Map<object, CatchUpRequest>()
  let running = 0

  function next(): void {
    for (const [subscription, request] of waiting) {
      if (running >= concurrentMax) return
      waiting.delete(subscription)
      if (!request.isNeeded()) continue
      running += 1
      void run(request).finally(() => {
        running -= 1
        next()
      })
    }
  }

  return {
    start(subscription, request) {
      if (request.kind !== 'account' && request.kind !== 'signature') return
      waiting.delete(subscription)
      waiting.set(subscription, request)
      next()
    },
  }
}

async function run({ upstream, kind, params, isNeeded, onMissed }: CatchUpRequest): Promise<void> {
  try {
    const missed = await findMissed(upstream, kind as 'account' | 'signature', params)
    if (missed !== undefined && isNeeded()) onMissed(missed)
  } catch {
    // The response is not JSON. The gap was reported already.
  }
}

/** Only the state of accounts and signatures can be read afterwards. Undefined where nothing is known to be missed. */
async function findMissed(
  upstream: Pick<Upstream, 'forwardAsync'>,
  kind: 'account' | 'signature',
  paramsText: string,
): Promise<Missed | undefined> {
  const [target, options] = readParams(paramsText)
  if (target === undefined) return undefined
  const config = (options ?? {}) as Readonly<Record<string, unknown>>
  if (kind === 'account') {
    const { encoding, commitment, dataSlice } = config
    const result = await read(upstream, 'getAccountInfo', [target, { encoding, commitment, dataSlice }])
    return result && { ...result, isLast: false }
  }
  const response = await read(upstream, 'getSignatureStatuses', [[target]])
  if (response === undefined) return undefined
  const { context, value } = JSON.parse(response.result) as {
    context: unknown
    value: ({ confirmationStatus?: string; err: unknown } | null)[]
  }
  const status = value[0]
  const level = levelOf(config['commitment'] ?? 'finalized')
  // A level includes those below it: the node may report a transaction as finalized that was never reported as confirmed.
  if (!status || level === -1 || levelOf(status.confirmationStatus) < level) return undefined
  return { result: JSON.stringify({ context, value: { err: status.err } }), slot: response.slot, isLast: true }
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
): Promise<{ result: string; slot: number } | undefined> {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
  const response = await upstream.forwardAsync(upstreamRequest(method, body))
  if (response.kind !== 'responded') return undefined
  if (response.rest !== undefined || response.body.length > RESPONSE_BYTES_MAX) {
    response.rest?.abort()
    return undefined
  }
  const result = resultOf(response.body.toString('utf8'))
  const slot = /^\{"context":\{[^{}]*"slot":\s*(\d{1,16})/.exec(result ?? '')?.[1]
  return result === undefined || slot === undefined ? undefined : { result, slot: Number(slot) }
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
