import { type Json, JsonText, jsonFloat } from '../json.ts'
import { ByteReader, BytesError } from './byte-reader.ts'
import { STAKE_CONFIG, VALIDATOR_INFO } from './program-ids.ts'
import type { AccountToParse, ParsedState } from './state.ts'

/** Accounts of the Config program: a short list of keys, then data whose meaning the first key (or the address) tells. */
export function parseConfig({ address, data }: AccountToParse): ParsedState | undefined {
  const read = new ByteReader(data)
  const keyCount = read.shortLength()
  const keys: { pubkey: string; signer: boolean }[] = []
  for (let i = 0; i < keyCount; i++) keys.push({ pubkey: read.key(), signer: read.bool() })
  if (address === STAKE_CONFIG) {
    return { type: 'stakeConfig', info: { warmupCooldownRate: jsonFloat(read.f64()), slashPenalty: read.u8() } }
  }
  if (keys[0]?.pubkey !== VALIDATOR_INFO) return undefined
  return { type: 'validatorInfo', info: { keys, configData: readJson(read.string64()) } }
}

/** The validator's own words. Checked here, so that the text can be handed on as it is. */
function readJson(text: string): Json {
  try {
    JSON.parse(text)
  } catch {
    throw new BytesError('not JSON')
  }
  return new JsonText(text)
}
