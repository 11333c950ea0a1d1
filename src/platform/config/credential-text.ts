import { ServiceError } from '../../core/error.ts'
import type { Secret } from './secret-ref.ts'

/** Printable ASCII, with spaces inside. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

/** The text of a credential that is sent in a header. The error names it as `what`, and does not quote it. */
export function credentialText(credential: Secret, what: string, fields: ServiceError['fields'] = {}): string {
  const text = credential.reveal()
  if (HEADER_VALUE.test(text)) return text
  throw new ServiceError('secret-invalid', `${what} is not a valid header value`, {
    fields,
    fix: 'Check the file or variable it is read from for line breaks and unusual characters.',
  })
}
