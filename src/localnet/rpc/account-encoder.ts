import type { Account } from '../chain/model.ts'
import {
  type AccountEncoding,
  type AccountEncodingOptions,
  type DataSlice,
  encodeAccount,
  isListedParsedOnly,
  parseAccount,
  type ReadAccount,
  withData,
} from './encode-account.ts'
import { JsonText, writeJson } from './json.ts'

type Form = Omit<AccountEncodingOptions, 'readAccount'>

export type AccountEncoder = {
  encode(form: Form): JsonText
  /** As one of the accounts of its program; undefined where such a list lacks it. */
  encodeListed(form: Form): JsonText | undefined
}

/** Encodes one state of an account for many subscriptions, each form once: the text of the slot history alone has a million digits. */
export function createAccountEncoder(address: string, account: Account, readAccount: ReadAccount): AccountEncoder {
  const texts = new Map<string, JsonText>()
  /** Null where the data cannot be parsed. */
  let parsed: JsonText | null | undefined

  function parse(): JsonText | null {
    if (parsed !== undefined) return parsed
    const data = parseAccount(address, account, readAccount)
    parsed = data === undefined ? null : new JsonText(writeJson(withData(account, data)))
    return parsed
  }

  function encode({ encoding, dataSlice }: Form): JsonText {
    // A slice has an effect only on data that cannot be parsed.
    const text = encoding === 'jsonParsed' ? parse() : null
    return text ?? encodeBytes(encoding, dataSlice)
  }

  function encodeBytes(encoding: AccountEncoding, dataSlice: DataSlice | undefined): JsonText {
    const bytesEncoding = encoding === 'jsonParsed' ? 'base64' : encoding
    const key = `${bytesEncoding} ${dataSlice?.offset} ${dataSlice?.length}`
    const known = texts.get(key)
    if (known) return known
    const form = { encoding: bytesEncoding, dataSlice, readAccount }
    const text = new JsonText(writeJson(encodeAccount(address, account, form)))
    texts.set(key, text)
    return text
  }

  return {
    encode,
    encodeListed: (form) => (isListedParsedOnly(account, form.encoding) ? (parse() ?? undefined) : encode(form)),
  }
}
