import { ServiceError } from '../../core/error.ts'

const BILLING_ID = /^[\x21-\x7e]{1,200}$/

/** The id of a customer in the billing system; null, for an empty text, removes it. */
export function parseBillingId(text: string): string | null {
  if (text === '') return null
  if (BILLING_ID.test(text)) return text
  throw new ServiceError('invalid-value', 'a billing id has 1 to 200 printable characters without spaces')
}
