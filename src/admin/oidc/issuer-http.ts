import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import { createHttpClient, readReplyText } from '../../platform/http/client/client.ts'
import { AdminError } from '../api/errors.ts'

const CONNECT_MS = 5000
/** From the request to the end of the response. */
const REQUEST_MS = 10_000

export type IssuerCall = {
  readonly url: string
  /** In the words of an error: "the discovery document". */
  readonly what: string
  readonly bytesMax: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as a POST. */
  readonly form?: URLSearchParams
}

export type IssuerReply = { readonly status: number; readonly value: unknown }

/** Requests JSON from the issuer, within time and bytes. Redirects are not followed. */
export async function callIssuer(call: IssuerCall, { clock }: { readonly clock: Clock }): Promise<IssuerReply> {
  const { url, what, bytesMax, headers = {}, form } = call
  const { host, pathname, search } = new URL(url)
  using client = createHttpClient({ url, connectionsMax: 1, connectMs: CONNECT_MS })
  const abort = new AbortController()
  using _timer = clock.setTimer(REQUEST_MS, () => abort.abort())
  try {
    const reply = await client.send({
      method: form === undefined ? 'GET' : 'POST',
      target: `${pathname}${search}`,
      headers: {
        host,
        accept: 'application/json',
        'user-agent': 'sluice',
        ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
      body: form === undefined ? undefined : Buffer.from(form.toString()),
      signal: abort.signal,
    })
    return { status: reply.status, value: parseJson(await readReplyText(reply, bytesMax)) }
  } catch (error) {
    const reason = abort.signal.aborted ? `no response within ${REQUEST_MS / 1000} s` : messageOf(error)
    throw unavailable(`${what} of the issuer cannot be read: ${reason}`)
  }
}

/** The issuer does not work, or does not do what OpenID Connect asks of it. Tokens are not affected. */
export function unavailable(
  message: string,
  fix = 'Try again later, or sign in with a token. On the machine: sluice doctor.',
): AdminError {
  return new AdminError('issuer-unavailable', message, fix, { 'retry-after': '10' })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
