import type { Account } from '../chain/model.ts'
import {
  type AccountEncodingOptions,
  encodeAccount,
  parseAccount,
  type ReadAccount,
  withData,
} from './encode-account.ts'
import { JsonText, writeJson } from './json.ts'

export type AccountEncoder = (form: Omit<AccountEncodingOptions, 'readAccount'>) => JsonText

/** Encodes one state of an account for many subscriptions, each form once: the text of the slot history alone has a million digits. */
export function createAccountEncoder(address: string, account: Account, readAccount: ReadAccount): AccountEncoder {
  const texts = new Map<string, JsonText>()
  /** Null where the data cannot be parsed. */
  let parsed: JsonText | null | undefined

  function parse(): JsonText | null {
    const data = parseAccount(address, account, readAccount)
    return data === undefined ? null : new JsonText(writeJson(withData(account, data)))
  }

  return ({ encoding, dataSlice }) => {
    if (encoding === 'jsonParsed') {
      if (parsed === undefined) parsed = parse()
      // A slice has an effect only on data that cannot be parsed.
      if (parsed) return parsed
    }
    const bytesEncoding = encoding === 'jsonParsed' ? 'base64' : encoding
    const key = `${bytesEncoding} ${dataSlice?.offset} ${dataSlice?.length}`
    const known = texts.get(key)
    if (known) return known
    const form = { encoding: bytesEncoding, dataSlice, readAccount }
    const text = new JsonText(writeJson(encodeAccount(address, account, form)))
    texts.set(key, text)
    return text
  }
}
