import { hash } from 'node:crypto'
import { JsonScanner } from '../../solana/json/scan.ts'
import { callOf } from '../../upstreams/http-call.ts'
import type { Upstream } from '../../upstreams/service.ts'
import { canonicalParams, type PubSubKind } from './request.ts'

/** What a subscription may have missed while it had no node: the `result` of a notification to send now, as text. */
export type Missed = { readonly result: string; readonly slot: number; readonly isLast: boolean }

/** Larger accounts are not read again; their owner hears of the gap. */
const RESPONSE_BYTES_MAX = 2 * 1024 * 1024
const DEPTH_MAX = 256
const LEVELS = ['processed', 'confirmed', 'finalized']

/** A lost node is missed by thousands of subscriptions at once; the others are asked about so many at a time. */
const AT_ONCE_MAX = 32

export type CatchUpFor = {
  readonly upstream: Pick<Upstream, 'ask'>
  readonly kind: PubSubKind
  readonly params: string
  /** Whether the result is still of use when its turn comes. */
  isWanted(): boolean
  /** Called later, only where something was missed. */
  found(missed: Missed): void
}

export type CatchUp = {
  /** At most one waits for each subscription: a later one takes the place of an earlier one. */
  find(subscription: object, wanted: CatchUpFor): void
}

export function createCatchUp(): CatchUp {
  const waiting = new Map<object, CatchUpFor>()
  let running = 0

  function next(): void {
    for (const [subscription, wanted] of waiting) {
      if (running >= AT_ONCE_MAX) return
      waiting.delete(subscription)
      if (!wanted.isWanted()) continue
      running += 1
      void run(wanted).finally(() => {
        running -= 1
        next()
      })
    }
  }

  return {
    find(subscription, wanted) {
      if (wanted.kind !== 'account' && wanted.kind !== 'signature') return
      waiting.delete(subscription)
      waiting.set(subscription, wanted)
      next()
    },
  }
}

async function run({ upstream, kind, params, isWanted, found }: CatchUpFor): Promise<void> {
  try {
    const missed = await findMissed(upstream, kind as 'account' | 'signature', params)
    if (missed !== undefined && isWanted()) found(missed)
  } catch {
    // A response that is no JSON; the gap was reported.
  }
}

/** Only the state of accounts and of signatures can be asked for later; undefined where nothing is known to be missed. */
async function findMissed(
  upstream: Pick<Upstream, 'ask'>,
  kind: 'account' | 'signature',
  paramsText: string,
): Promise<Missed | undefined> {
  const [target, given] = readParams(paramsText)
  if (target === undefined) return undefined
  const config = (given ?? {}) as Readonly<Record<string, unknown>>
  if (kind === 'account') {
    const { encoding, commitment, dataSlice } = config
    const result = await ask(upstream, 'getAccountInfo', [target, { encoding, commitment, dataSlice }])
    return result && { ...result, isLast: false }
  }
  const response = await ask(upstream, 'getSignatureStatuses', [[target]])
  if (response === undefined) return undefined
  const { context, value } = JSON.parse(response.result) as {
    context: unknown
    value: ({ confirmationStatus?: string; err: unknown } | null)[]
  }
  const status = value[0]
  if (!status || levelOf(status.confirmationStatus) < levelOf(config['commitment'] ?? 'finalized')) return undefined
  return { result: JSON.stringify({ context, value: { err: status.err } }), slot: response.slot, isLast: true }
}

/** Only params that parsing and writing leave as they are can be put into another call; others are not asked about. */
function readParams(paramsText: string): readonly unknown[] {
  const params: unknown = JSON.parse(paramsText)
  const isExact = Array.isArray(params) && JSON.stringify(params) === canonicalParams(paramsText)
  return isExact ? params : []
}

function levelOf(commitment: unknown): number {
  return LEVELS.indexOf(String(commitment))
}

async function ask(
  upstream: Pick<Upstream, 'ask'>,
  method: string,
  params: unknown,
): Promise<{ result: string; slot: number } | undefined> {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
  const outcome = await upstream.ask(callOf(method, body))
  if (outcome.kind !== 'responded') return undefined
  if (outcome.rest !== undefined || outcome.body.length > RESPONSE_BYTES_MAX) {
    outcome.rest?.abort()
    return undefined
  }
  const result = resultOf(outcome.body.toString('utf8'))
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

/** Larger accounts are not worth the work at every change; they are told again after a loss. */
const DIGEST_BYTES_MAX = 64 * 1024

/** A digest of the account in a notification, to know it again; undefined where the frame is written in another way. */
export function accountDigest(frame: Buffer, idFrom: number): string | undefined {
  return valueDigest(frame.subarray(0, idFrom - AFTER_RESULT))
}

/** The same of the result of `getAccountInfo`. */
export function resultDigest(result: string): string | undefined {
  return valueDigest(Buffer.from(result))
}

function valueDigest(upToResult: Buffer): string | undefined {
  if (upToResult.length > DIGEST_BYTES_MAX) return undefined
  const at = upToResult.indexOf(VALUE)
  return at === -1 ? undefined : hash('sha1', upToResult.subarray(at + VALUE.length, -1))
}
