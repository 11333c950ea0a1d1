/** Layout of the token programs' accounts: 165 bytes; Token-2022 adds a byte for the account type, then extensions. A multisig has 355 bytes. */
export const TOKEN_ACCOUNT_BYTES = 165
export const MULTISIG_BYTES = 355
const STATE_OFFSET = 108
export const ACCOUNT_TYPE_OFFSET = 165
export const ACCOUNT_TYPE_ACCOUNT = 2

/** Whether data of a token program's account is an initialized token account. */
export function isTokenAccountData(data: Uint8Array): boolean {
  if (data.length < TOKEN_ACCOUNT_BYTES || data.length === MULTISIG_BYTES || data[STATE_OFFSET] === 0) return false
  return data.length === TOKEN_ACCOUNT_BYTES || data[ACCOUNT_TYPE_OFFSET] === ACCOUNT_TYPE_ACCOUNT
}
