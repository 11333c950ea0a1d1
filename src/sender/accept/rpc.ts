import { ERRORS, type ErrorContext } from '../../contract/errors.ts'
import { AGAVE_VERSION } from '../../solana/agave-version.ts'
import { type CheckedItem, readCalls, writeError, writeResult } from '../../solana/json/json-rpc.ts'
import type { TransactionLimits } from '../../solana/transaction/types.ts'
import type { Accept, Acceptance } from './accept.ts'
import { type Awaitable, mapAwaitable } from './awaitable.ts'
import { type Decoded, decodeText, type Encoding } from './decode.ts'
import {
  errorOf,
  type Refusal,
  refuseBatch,
  refuseBody,
  refuseBundles,
  refusePlain,
  retryAfterOf,
  type TipTerms,
} from './refusal.ts'
import type { RefusalReporter } from './refusal-reporter.ts'

export type RpcResponse = { readonly status: number; readonly body: string; readonly retryAfterSeconds?: number }

export type RpcDeps = {
  readonly accept: Accept
  readonly terms: TipTerms
  readonly transactionLimits: TransactionLimits
  readonly version: string
  /** Whether a transaction could be sent now. */
  readonly isHealthy: () => boolean
  /** Charges a call that is not a transaction; the refusal when its address has made too many. */
  takeRead(address: string): Refusal | undefined
  readonly refusals: RefusalReporter
  onDuplicate(): void
}

/** Calls in one batch; each is charged separately. */
export const BATCH_MAX = 10
const DEPTH_MAX = 16

type Caller = ErrorContext & { readonly address: string }
type Responded = { readonly text: string | undefined; readonly limited?: Refusal | undefined }

/** `isCounted`: the refusal of a transaction or of a call over its limit, which is counted. */
type Outcome = { readonly result: string } | { readonly refusal: Refusal; readonly isCounted: boolean }

/** JSON-RPC with the responses of a Solana node, for the methods that the sender supports. */
export function createRpc(deps: RpcDeps): (body: string, caller: Caller) => Awaitable<RpcResponse> {
  return (text, caller) => {
    const body = readCalls(text, { depthMax: DEPTH_MAX, batchItemsMax: BATCH_MAX, anyParams: true })
    if (body.kind !== 'calls') {
      const refusal = deps.takeRead(caller.address)
      if (refusal !== undefined) return join([refused('null', refusal, caller)], false)
      if (body.kind === 'batch-too-long') {
        const { text = '' } = refused('null', refuseBatch(BATCH_MAX), caller)
        return { status: ERRORS['too-large'].http, body: text }
      }
      return join([refused('null', refuseBody(body.kind), caller)], false)
    }
    if (!body.batch) {
      return mapAwaitable(respond(body.items[0] as CheckedItem, caller), (responded) => join([responded], false))
    }
    return Promise.all(body.items.map(async (item) => respond(item, caller))).then((responses) => join(responses, true))
  }

  function respond(item: CheckedItem, caller: Caller): Awaitable<Responded> {
    if ('invalidId' in item) {
      const { invalidId: id } = item
      const refusal = deps.takeRead(caller.address)
      return refused(id, refusal ?? refuseBody('invalid-request'), caller)
    }
    const { method, paramsText, id = 'null' } = item.call
    return mapAwaitable(call(method, paramsText, caller), (outcome) => {
      const responded: Responded =
        'result' in outcome
          ? { text: writeResult(id, outcome.result) }
          : refused(id, outcome.refusal, caller, outcome.isCounted)
      // A call without an id is a notification: executed, without a response.
      return item.call.id === undefined ? { ...responded, text: undefined } : responded
    })
  }

  function call(method: string, params: string | undefined, caller: Caller): Awaitable<Outcome> {
    if (method === 'sendTransaction') {
      return mapAwaitable(
        deps.accept(() => readSend(params, deps.transactionLimits), caller.address),
        outcomeOf,
      )
    }
    const refusal = deps.takeRead(caller.address)
    if (refusal !== undefined) return { refusal, isCounted: true }
    switch (method) {
      case 'getTipAccounts':
        return { result: JSON.stringify(deps.terms.tipAccounts) }
      case 'getHealth':
        return deps.isHealthy() ? { result: '"ok"' } : { refusal: refusePlain('no-path'), isCounted: false }
      case 'getVersion':
        // A semantic version: clients parse it before they send a transaction.
        return {
          result: JSON.stringify({ 'solana-core': `${AGAVE_VERSION}+sluice.${deps.version}`, 'feature-set': 0 }),
        }
      default:
        return {
          refusal: BUNDLE_METHODS.has(method) ? refuseBundles(method) : refusePlain('method-not-found'),
          isCounted: false,
        }
    }
  }

  /** A body that is no call is recorded and not counted, also when its address is over the limit of reads. */
  function refused(id: string, refusal: Refusal, caller: Caller, isCounted = false): Responded {
    if (isCounted) deps.refusals.report(refusal, caller.requestId)
    else deps.refusals.record(refusal, caller.requestId)
    const limited = refusal.code === 'rate-limited' ? refusal : undefined
    return { text: writeError(id, errorOf(refusal, caller)), limited }
  }

  function outcomeOf(outcome: Acceptance): Outcome {
    if (outcome.ok) {
      if (!outcome.isNew) deps.onDuplicate()
      return { result: JSON.stringify(outcome.signature) }
    }
    return { refusal: outcome.refusal, isCounted: true }
  }
}

/** Methods of block engines that this sender does not have. */
const BUNDLE_METHODS: ReadonlySet<string> = new Set([
  'sendBundle',
  'simulateBundle',
  'getBundleStatuses',
  'getInflightBundleStatuses',
])

function join(responses: readonly Responded[], isBatch: boolean): RpcResponse {
  const message = responses.flatMap(({ text }) => (text === undefined ? [] : [text]))
  // 429 only if every call was limited: clients do not read the body of a 429.
  const limited = responses.every((one) => one.limited !== undefined) ? responses[0]?.limited : undefined
  return {
    status: limited === undefined ? (message.length === 0 ? 204 : 200) : 429,
    body: isBatch && message.length > 0 ? `[${message.join(',')}]` : (message[0] ?? ''),
    ...(limited === undefined ? {} : { retryAfterSeconds: retryAfterOf(limited) }),
  }
}

/** `[text, { encoding }]`; other options, such as those for preflight and retries, are ignored. */
function readSend(params: string | undefined, limits: TransactionLimits): Decoded {
  const list: unknown = params === undefined ? undefined : JSON.parse(params)
  const [text, config] = Array.isArray(list) ? (list as unknown[]) : []
  if (typeof text !== 'string') {
    return { ok: false, fault: 'encoding', message: 'Invalid params: give the transaction as a string, then options' }
  }
  const encoding = (config as { encoding?: unknown } | null | undefined)?.encoding ?? undefined
  if (encoding !== undefined && encoding !== 'base64' && encoding !== 'base58') {
    return { ok: false, fault: 'encoding', message: `unsupported encoding. Supported encodings: base58, base64` }
  }
  return decodeText(text, encoding as Encoding | undefined, limits)
}
