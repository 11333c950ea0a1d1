import { PUBSUB_KINDS } from '../../contract/rpc-methods.ts'
import { canonicalJson } from '../rpc/canonical-json.ts'
import { JSON_DEPTH_MAX } from '../rpc/request.ts'

export type PubSubKind = (typeof PUBSUB_KINDS)[number]

export type PubSubMethod = { readonly kind: PubSubKind; readonly verb: 'Subscribe' | 'Unsubscribe' }

const METHODS: ReadonlyMap<string, PubSubMethod> = new Map(
  PUBSUB_KINDS.flatMap((kind) =>
    (['Subscribe', 'Unsubscribe'] as const).map((verb) => [`${kind}${verb}`, { kind, verb }] as const),
  ),
)

/** Undefined for a method that is no subscribe or unsubscribe. */
export function pubSubMethod(name: string): PubSubMethod | undefined {
  return METHODS.get(name)
}

/**
 * The canonical params of a subscribe: the key under which it is shared, and the text that is forwarded. Undefined for params that must not
 * be shared. Missing params are an empty list. Defaults are not filled in, because a node may change them.
 */
export function canonicalParams(paramsText: string | undefined): string | undefined {
  return canonicalJson(paramsText ?? '[]', JSON_DEPTH_MAX)
}

const ONE_ID = /^\[\s*(0|[1-9]\d{0,14})\s*\]$/

/** The subscription id in the params of an unsubscribe: `[7]`; undefined for any other params. */
export function unsubscribedId(paramsText: string | undefined): number | undefined {
  const id = ONE_ID.exec(paramsText ?? '')?.[1]
  return id === undefined ? undefined : Number(id)
}
