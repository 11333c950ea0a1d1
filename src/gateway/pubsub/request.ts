import { canonicalJson } from '../rpc/canonical-json.ts'
import { JSON_DEPTH_MAX } from '../rpc/request.ts'

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

/**
 * The params of a subscribe as all nodes read them, which is the text that is shared and forwarded; undefined for params that must not be
 * shared. Missing params are an empty list. Defaults are not filled in: they are the node's to change.
 */
export function canonicalParams(paramsText: string | undefined): string | undefined {
  return canonicalJson(paramsText ?? '[]', JSON_DEPTH_MAX)
}

const ONE_ID = /^\[\s*(0|[1-9]\d{0,14})\s*\]$/

/** The subscription an unsubscribe names: `[7]`; undefined where it names none. */
export function unsubscribedId(paramsText: string | undefined): number | undefined {
  const id = ONE_ID.exec(paramsText ?? '')?.[1]
  return id === undefined ? undefined : Number(id)
}
