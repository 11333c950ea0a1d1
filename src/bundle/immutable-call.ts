import { canonicalJson, parseExact } from './canonical-json.ts'

/** Longer parameters are not worth a key. */
const PARAMS_TEXT_MAX = 4096

/** Which parameter holds the config, and what else must stand in it for the answer never to change. */
const FINALIZED: Readonly<Record<string, { readonly config: number; readonly needs?: string }>> = {
  getBlock: { config: 1 },
  getTransaction: { config: 1 },
  getInflationReward: { config: 1, needs: 'epoch' },
}

/**
 * One text for all calls that have the same answer for ever; undefined for every other call. Only what says `finalized` in so many words counts:
 * everything below it may still be undone, and a default is the node's to change. Case is kept, since base58 has both.
 */
export function immutableCall(method: string, paramsText: string | undefined): string | undefined {
  if (method === 'getGenesisHash') return isNothing(paramsText) ? method : undefined
  const rule = Object.hasOwn(FINALIZED, method) ? FINALIZED[method] : undefined
  if (rule === undefined || paramsText === undefined || paramsText.length > PARAMS_TEXT_MAX) return undefined
  const params = parseExact(paramsText)
  if (!Array.isArray(params) || params.length !== rule.config + 1) return undefined
  const config: unknown = params[rule.config]
  if (typeof config !== 'object' || config === null || Array.isArray(config)) return undefined
  const { commitment, ...others } = config as Record<string, unknown>
  if (commitment !== 'finalized') return undefined
  if (rule.needs !== undefined && typeof others[rule.needs] !== 'number') return undefined
  return `${method} ${canonicalJson(params)}`
}

function isNothing(paramsText: string | undefined): boolean {
  return paramsText === undefined || /^\[\s*\]$/.test(paramsText)
}
