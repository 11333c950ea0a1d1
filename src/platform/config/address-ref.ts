import { ServiceError } from '../../core/error.ts'
import { parseRemoteAddress } from '../net/pinned-address.ts'
import { isSecretRef, resolveSecret, type SecretSources } from './secret-ref.ts'

/** Whether the text is a reference to an address; `file://…` is a URL of an unusable kind. */
export function isAddressRef(text: string): boolean {
  return isSecretRef(text) && !text.startsWith('file://')
}

/** The rest of the sentence that refuses a literal address with a query. */
export const ADDRESS_REF_RULE =
  'one with a key in its query is given by reference: "env:NAME" or "file:PATH" (mode 0600)'

export type AddressRef = {
  /** For the error: whose address it is. */
  readonly what: string
  /** An address, or a reference to one. */
  readonly given: string
  readonly protocols: readonly string[]
  readonly mayHaveQuery: boolean
}

/** The address, or the one that the reference refers to, which may have a query. An error quotes the reference only. */
export async function resolveAddress(
  { what, given, protocols, mayHaveQuery }: AddressRef,
  sources: SecretSources,
): Promise<string> {
  if (!isAddressRef(given)) return given
  const text = (await resolveSecret(given, sources)).reveal()
  if (parseRemoteAddress(text, protocols, { mayHaveQuery }) !== undefined) return text
  const prefixes = protocols.map((protocol) => `${protocol}//`).join(' or ')
  const without = mayHaveQuery ? 'without user, password and fragment' : 'without a query; its key is the credential'
  throw new ServiceError('secret-invalid', `${given} does not hold a usable address of ${what}`, {
    fix: `Write one address into it that begins with ${prefixes}, ${without}.`,
  })
}
