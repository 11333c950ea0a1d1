import { type Json, JsonText } from '../json.ts'
import { ByteReader, BytesError } from './byte-reader.ts'
import type { AccountToParse, ParsedState } from './parser.ts'
import { VALIDATOR_INFO } from './program-ids.ts'

/** Accounts of the Config program: a short vec of keys, then data. Only validator infos are parsed; Agave no longer parses StakeConfig. */
export function parseConfig({ data }: AccountToParse): ParsedState | undefined {
  const read = new ByteReader(data)
  const keyCount = read.shortLength()
  const keys: { pubkey: string; signer: boolean }[] = []
  for (let i = 0; i < keyCount; i++) keys.push({ pubkey: read.key(), signer: read.bool() })
  if (keys[0]?.pubkey !== VALIDATOR_INFO) return undefined
  return { type: 'validatorInfo', info: { keys, configData: readJson(read.string64()) } }
}

/** JSON text from the account, validated so that it can be embedded unchanged. */
function readJson(text: string): Json {
  try {
    JSON.parse(text)
  } catch {
    throw new BytesError('not JSON')
  }
  return new JsonText(text)
}
