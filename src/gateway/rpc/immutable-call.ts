import { canonicalJson } from './canonical-json.ts'
import { JSON_DEPTH_MAX } from './request.ts'

/** Longer params are not worth a key. */
const PARAMS_TEXT_MAX = 4096

/** Which parameter holds the config, and what else must stand in it for the response never to change. */
const FINALIZED: Readonly<Record<string, { readonly config: number; readonly needs?: string }>> = {
  getBlock: { config: 1 },
  getTransaction: { config: 1 },
  getInflationReward: { config: 1, needs: 'epoch' },
}

/** A call whose response never changes, in the one form in which it is looked up, forwarded and kept. */
export type ImmutableCall = {
  readonly methodText: string
  /** Canonical; undefined where the call has none. */
  readonly paramsText: string | undefined
}

/**
 * The canonical form of a call whose response never changes; undefined for every other call. Only an explicit `finalized` counts: everything
 * below it may still be undone, and a default is the node's to change. Params that nodes may read differently are never immutable.
 */
export function immutableCall(method: string, paramsText: string | undefined): ImmutableCall | undefined {
  const isGenesisHash = method === 'getGenesisHash'
  if (!isGenesisHash && !Object.hasOwn(FINALIZED, method)) return undefined
  const methodText = JSON.stringify(method)
  if (paramsText === undefined) return isGenesisHash ? { methodText, paramsText } : undefined
  if (paramsText.length > PARAMS_TEXT_MAX) return undefined
  const canonical = canonicalJson(paramsText, JSON_DEPTH_MAX)
  if (canonical === undefined) return undefined
  const isImmutable = isGenesisHash ? canonical === '[]' : isFinalized(method, canonical)
  return isImmutable ? { methodText, paramsText: canonical } : undefined
}

function isFinalized(method: string, canonicalParams: string): boolean {
  const rule = FINALIZED[method]
  const params: unknown = JSON.parse(canonicalParams)
  if (rule === undefined || !Array.isArray(params) || params.length !== rule.config + 1) return false
  const config: unknown = params[rule.config]
  if (typeof config !== 'object' || config === null || Array.isArray(config)) return false
  const members = new Map(Object.entries(config))
  if (members.get('commitment') !== 'finalized') return false
  return rule.needs === undefined || typeof members.get(rule.needs) === 'number'
}
