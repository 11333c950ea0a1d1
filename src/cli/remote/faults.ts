import { ServiceError } from '../../core/error.ts'
import type { HttpReply } from '../../platform/http/client/client.ts'
import { sanitizeForTerminal } from '../output/plain-text.ts'

/** An error of a remote command, with the id under which the log of the process has the request. */
export class RemoteFault extends ServiceError {
  readonly requestId: string | undefined
  readonly retryAfterMs: number | undefined
  constructor(
    code: string,
    message: string,
    more: { fix?: string | undefined; requestId?: string | undefined; retryAfterMs?: number | undefined } = {},
  ) {
    super(code, message, more.fix === undefined ? {} : { fix: more.fix })
    this.requestId = more.requestId
    this.retryAfterMs = more.retryAfterMs
  }
}

const TEXT_MAX = 2000

/** The error that the API has sent. */
export function errorOf(
  origin: string,
  { status, headers }: Pick<HttpReply, 'status' | 'headers'>,
  text: string,
): RemoteFault {
  const error = errorFieldsOf(text)
  const [code, message] = [textOf(error['code']), textOf(error['message'])]
  if (code === undefined || !/^[a-z][a-z-]{1,60}$/.test(code) || message === undefined)
    return notOurs(origin, `status ${status} without an error of the admin API`)
  const seconds = Number(headers['retry-after'] ?? Number.NaN)
  return new RemoteFault(code, message, {
    fix: textOf(error['fix']),
    requestId: textOf(error['request_id']),
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined,
  })
}

/** The server sent something else than the admin API would. */
export function notOurs(origin: string, what: string): RemoteFault {
  return new RemoteFault('remote-response', `${origin} did not respond as the admin API does: ${what}`)
}

export function noResponse(origin: string, why: string, { method }: { readonly method: string }): RemoteFault {
  if (method === 'GET') return new RemoteFault('remote-unavailable', `no response from ${origin}: ${why}`)
  return new RemoteFault('remote-unavailable', `no response from ${origin}: ${why}; the change may have been made`, {
    fix: 'Look whether it was made before you repeat it. Check the address, and that sluice serve runs there.',
  })
}

function errorFieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value = JSON.parse(text) as { error?: Record<string, unknown> } | null
    return value?.error ?? {}
  } catch {
    return {}
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? sanitizeForTerminal(value.slice(0, TEXT_MAX)) : undefined
}
