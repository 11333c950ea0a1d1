import type { RpcCall } from '../../solana/json/json-rpc.ts'
import { canonicalJson } from './canonical-json.ts'
import { JSON_DEPTH_MAX } from './request.ts'

/** Calls with longer params are not cached. */
const PARAMS_TEXT_MAX = 4096

/**
 * The index of the config parameter, and the member it needs besides the commitment for the response never to change. Without `getBlockTime`: it has no
 * commitment, and nodes respond to it for slots that can be rolled back.
 */
const FINALIZED: Readonly<Record<string, { readonly config: number; readonly needs?: string }>> = {
  getBlock: { config: 1 },
  getTransaction: { config: 1 },
  getInflationReward: { config: 1, needs: 'epoch' },
}

/** A call whose response never changes, with canonical params: the form in which it is looked up, forwarded and cached. */
export type ImmutableCall = Omit<RpcCall, 'id'>

/**
 * The canonical form of a call whose response never changes; undefined for every other call. The commitment must be `finalized` and
 * explicit: lower ones can be rolled back, and a node may change its default. Params that nodes may read differently are never immutable.
 */
export function immutableCall(method: string, paramsText: string | undefined): ImmutableCall | undefined {
  const isGenesisHash = method === 'getGenesisHash'
  if (!isGenesisHash && !Object.hasOwn(FINALIZED, method)) return undefined
  if (paramsText === undefined) return isGenesisHash ? { method, paramsText } : undefined
  if (paramsText.length > PARAMS_TEXT_MAX) return undefined
  const canonical = canonicalJson(paramsText, JSON_DEPTH_MAX)
  if (canonical === undefined) return undefined
  const isImmutable = isGenesisHash ? canonical === '[]' : isFinalized(method, canonical)
  return isImmutable ? { method, paramsText: canonical } : undefined
}

function isFinalized(method: string, canonicalParams: string): boolean {
  const rule = FINALIZED[method]
  const params: unknown = JSON.parse(canonicalParams)
  if (rule === undefined || !Array.isArray(params) || params.length !== rule.config + 1) return false
  const config: unknown = params[rule.config]
  if (typeof config !== 'object' || config === null || Array.isArray(config)) return false
  const members = new Map(Object.entries(config))
  if (members.get('commitment') !== 'finalized') return false
  // In a context null is part of an object, and the slot of the context changes with every call.
  if (members.has('withContext') && members.get('withContext') !== false) return false
  return rule.needs === undefined || typeof members.get(rule.needs) === 'number'
}
