/** An empty zstd frame as Agave writes it. */
const EMPTY_ZSTD = 'KLUv/QBYAQAA'

/** No data in each encoding. Without an encoding it is as in `binary`; an account that cannot be parsed is in base64. */
const NO_DATA: Readonly<Record<string, unknown>> = {
  binary: '',
  base58: ['', 'base58'],
  base64: ['', 'base64'],
  'base64+zstd': [EMPTY_ZSTD, 'base64+zstd'],
  jsonParsed: ['', 'base64'],
}

/**
 * What a node notifies when an account is deleted: the default account (Agave, rpc_subscriptions.rs, `filter_account_result`). Clients do not expect
 * null, which is how `getAccountInfo` reports it. Undefined for an encoding that is not known.
 */
export function deletedAccount(encoding: unknown): object | undefined {
  const data = encoding === undefined ? '' : typeof encoding === 'string' ? NO_DATA[encoding] : undefined
  if (data === undefined) return undefined
  return { lamports: 0, data, owner: '1'.repeat(32), executable: false, rentEpoch: 0, space: 0 }
}

/** A deleted account has no data, so its notification is short. */
const NOTIFICATION_BYTES_MAX = 1024
const NO_LAMPORTS = Buffer.from('"lamports":0')

/** Whether a notification of an account reports it as deleted. */
export function isOfDeletedAccount(notification: Buffer): boolean {
  if (notification.length > NOTIFICATION_BYTES_MAX || !notification.includes(NO_LAMPORTS)) return false
  try {
    // Parsed data may have such a member too.
    const { params } = JSON.parse(notification.toString('utf8')) as AccountNotification
    return params?.result?.value?.lamports === 0
  } catch {
    return false
  }
}

type AccountNotification = {
  readonly params?: { readonly result?: { readonly value?: { readonly lamports?: unknown } | null } }
}
