import { canonicalJson, ExactNumber, parseExact } from './canonical-json.ts'

/** What can be subscribed to. Each kind has `<kind>Subscribe`, `<kind>Unsubscribe` and `<kind>Notification`. */
export const PUBSUB_KINDS = [
  'account',
  'program',
  'logs',
  'signature',
  'slot',
  'slotsUpdates',
  'root',
  'block',
  'vote',
] as const
export type PubSubKind = (typeof PUBSUB_KINDS)[number]

export type PubSubMethod = { readonly kind: PubSubKind; readonly verb: 'Subscribe' | 'Unsubscribe' }

const METHODS: ReadonlyMap<string, PubSubMethod> = new Map(
  PUBSUB_KINDS.flatMap((kind) =>
    (['Subscribe', 'Unsubscribe'] as const).map((verb) => [`${kind}${verb}`, { kind, verb }] as const),
  ),
)

/** Undefined for a method that has nothing to do with subscriptions. */
export function pubSubMethod(name: string): PubSubMethod | undefined {
  return METHODS.get(name)
}

/** What a node assumes where the second parameter or a member of it is left out (bundle.md section 5.2). */
const DEFAULTS: Readonly<Partial<Record<PubSubKind, Readonly<Record<string, unknown>>>>> = {
  account: { commitment: 'finalized', encoding: 'binary' },
  program: { commitment: 'finalized', encoding: 'binary', filters: [], withContext: false },
  logs: { commitment: 'finalized' },
  signature: { commitment: 'finalized', enableReceivedNotification: false },
  block: { commitment: 'finalized', encoding: 'base64', transactionDetails: 'full', showRewards: false },
}

/**
 * One text for all requests that ask a node for the same: defaults filled in, members in one order, lists as they are. It is only compared;
 * nodes get the client's own text, so that what is wrong with it is said by the node.
 */
export function subscriptionKey(kind: PubSubKind, paramsText: string | undefined): string {
  const params = parseExact(paramsText ?? '[]')
  if (!Array.isArray(params)) return `${kind} ${paramsText}`
  const defaults = DEFAULTS[kind]
  if (defaults === undefined) return `${kind} ${canonicalJson(params)}`
  const [target, config, ...more] = params as unknown[]
  if (!isConfig(config)) return `${kind} ${canonicalJson(params)}`
  const filled: Record<string, unknown> = { ...defaults }
  for (const [name, value] of Object.entries(config ?? {})) if (value !== null) filled[name] = value
  return `${kind} ${canonicalJson([target, filled, ...more])}`
}

/** The subscription an unsubscribe names: `[7]`; undefined where it names none. */
export function unsubscribedId(paramsText: string | undefined): number | undefined {
  const params = parseExact(paramsText ?? 'null')
  if (!Array.isArray(params) || params.length !== 1) return undefined
  const id: unknown = params[0]
  return Number.isSafeInteger(id) ? (id as number) : undefined
}

/** The parameters of a subscription as values; undefined where they are no list. */
export function readParams(paramsText: string | undefined): readonly unknown[] | undefined {
  const params = parseExact(paramsText ?? '[]')
  return Array.isArray(params) ? params : undefined
}

function isConfig(value: unknown): value is Record<string, unknown> | null | undefined {
  if (value === undefined || value === null) return true
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof ExactNumber)
}
