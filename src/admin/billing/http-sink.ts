import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import { redactText } from '../../core/redact.ts'
import type { Secret } from '../../platform/config/secret-ref.ts'
import { createHttpClient, HttpCallFailed, readReplyText } from '../../platform/http/client/client.ts'
import type { BatchResult } from './sink.ts'

const CONNECT_MS = 5000
/** From the request to the end of the response. */
export const REQUEST_MS = 15_000
const RESPONSE_BYTES_MAX = 256 * 1024
const RETRY_AFTER_MS_MAX = 3_600_000
const REASON_CHARS_MAX = 200

export type SinkAddress = {
  /** Scheme, host and, if the sink is below a path, that path. */
  readonly url: string
  readonly key: Secret | undefined
  readonly connectionsMax: number
}

export type SinkRequest = {
  /** Begins with a slash. */
  readonly path: string
  readonly contentType: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/** What the statuses mean that not all sinks use in the same way; undefined: as everywhere. */
export type ReadRefusal = (status: number, text: string) => BatchResult | undefined

export type SinkClient = Disposable & {
  post(request: SinkRequest, events: number, readRefusal: ReadRefusal): Promise<BatchResult>
}

/** Posts events, and reads from status and error what happened to them. */
export function createSinkClient(address: SinkAddress, { clock }: { readonly clock: Clock }): SinkClient {
  const { url, key, connectionsMax } = address
  const client = createHttpClient({ url, connectionsMax, connectMs: CONNECT_MS })
  const base = pathOf(url)
  return {
    async post({ path, contentType, body, headers }, events, readRefusal) {
      const abort = new AbortController()
      using _timer = clock.setTimer(REQUEST_MS, () => abort.abort())
      try {
        const reply = await client.send({
          method: 'POST',
          target: `${base}${path}`,
          headers: {
            host: new URL(url).host,
            'content-type': contentType,
            accept: 'application/json',
            'user-agent': 'sluice',
            ...(key === undefined ? {} : { authorization: `Bearer ${key.reveal()}` }),
            ...headers,
          },
          body: Buffer.from(body),
          signal: abort.signal,
        })
        const text = await readReplyText(reply, RESPONSE_BYTES_MAX)
        return readReply(reply.status, text, {
          events,
          readRefusal,
          retryAfterMs: parseRetryAfter(reply.headers['retry-after'], clock.nowMs()),
        })
      } catch (error) {
        const isCounted = error instanceof HttpCallFailed && !error.isSent ? false : undefined
        const reason = abort.signal.aborted ? `no response within ${REQUEST_MS / 1000} s` : messageOf(error)
        return { kind: 'failed', reason: cut(reason), isCounted }
      }
    },
    [Symbol.dispose]: () => client[Symbol.dispose](),
  }
}

/** The path without its last slash, so that another one can follow. */
function pathOf(url: string): string {
  const { pathname } = new URL(url)
  return pathname.endsWith('/') ? pathname.slice(0, -1) : pathname
}

type ReplyContext = {
  readonly events: number
  readonly readRefusal: ReadRefusal
  readonly retryAfterMs: number | undefined
}

function readReply(status: number, text: string, { events, readRefusal, retryAfterMs }: ReplyContext): BatchResult {
  if (status >= 200 && status < 300)
    return { kind: 'settled', results: Array.from({ length: events }, () => ({ kind: 'sent' })) }
  const reason = cut(`HTTP ${status}${text === '' ? '' : `: ${text}`}`)
  if (status === 429) return { kind: 'failed', reason, isCounted: false, retryAfterMs }
  // The key or the address is wrong, and with it every event.
  if (status < 400 || [401, 402, 403, 404, 405].includes(status)) return { kind: 'failed', reason, isCounted: false }
  if (status >= 500 || [408, 409, 425].includes(status))
    return { kind: 'failed', reason, isCounted: undefined, retryAfterMs }
  return readRefusal(status, text) ?? { kind: 'rejected', reason }
}

function parseRetryAfter(value: string | string[] | undefined, nowMs: number): number | undefined {
  if (typeof value !== 'string') return undefined
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), RETRY_AFTER_MS_MAX) : undefined
}

/** One line without secrets, for dead letters and the log. */
function cut(text: string): string {
  return redactText(text.replaceAll(/\s+/g, ' ')).slice(0, REASON_CHARS_MAX)
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
