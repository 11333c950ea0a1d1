import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import type { Secret } from '../../platform/config/secret-ref.ts'
import { createHttpClient, type HttpClient } from '../../platform/http/client/client.ts'
import { type CommandResult, runCommand } from '../../platform/process/run-command.ts'
import { type Notice, type NoticeKind, noticeWire } from './notice.ts'
import { webhookHeaders } from './signature.ts'

/** One place that notices are sent to. */
export type Receiver = Disposable & {
  readonly name: string
  accepts(kind: NoticeKind): boolean
  /** Never throws; `signal` ends the attempt. `isFinal`: the receiver does not want this notice, so it is not offered again. */
  send(notice: Notice, signal: AbortSignal): Promise<SendResult>
}

export type SendResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly isFinal?: true }

export type WebhookOptions = {
  readonly name: string
  readonly url: string
  readonly kinds?: readonly NoticeKind[] | undefined
}

const TIMEOUT_MS = 15_000
const CONNECT_MS = 5000
/** The receiver is gone for good, by its own word. */
const GONE = 410

export function createWebhook(
  { name, url, kinds }: WebhookOptions,
  { clock, secrets, version }: { clock: Clock; secrets: () => Promise<readonly Secret[]>; version: string },
): Receiver {
  const { pathname, search } = new URL(url)
  const http = createHttpClient({ url, connectionsMax: 1, connectMs: CONNECT_MS })

  async function post(notice: Notice, signal: AbortSignal): Promise<SendResult> {
    const body = JSON.stringify(noticeWire(notice))
    const id = notice.id
    // Each attempt is signed anew: receivers refuse old timestamps.
    const message = { id, timestampSeconds: Math.floor(clock.nowMs() / 1000), body }
    const keys = (await secrets()).map((secret) => secret.reveal())
    const headers = {
      'content-type': 'application/json',
      'user-agent': `sluice/${version}`,
      ...webhookHeaders(message, keys),
    }
    const status = await sendWithin(http, { target: `${pathname}${search}`, headers, body, signal }, clock)
    if (status >= 200 && status < 300) return { ok: true }
    const reason = `the receiver responded with status ${status}`
    return status === GONE ? { ok: false, reason, isFinal: true } : { ok: false, reason }
  }

  return {
    name,
    accepts: (kind) => kind === 'test' || (kinds?.includes(kind) ?? true),
    send: (notice, signal) => post(notice, signal).catch((error: unknown) => ({ ok: false, reason: messageOf(error) })),
    [Symbol.dispose]: () => http[Symbol.dispose](),
  }
}

/** Sends a POST and returns its status. The body of the response is not read. */
async function sendWithin(
  http: HttpClient,
  {
    target,
    headers,
    body,
    signal,
  }: { target: string; headers: Record<string, string>; body: string; signal: AbortSignal },
  clock: Clock,
): Promise<number> {
  const abort = new AbortController()
  using _timer = clock.setTimer(TIMEOUT_MS, () => abort.abort(new Error(`no response within ${TIMEOUT_MS} ms`)))
  const sending = http.send({
    method: 'POST',
    target,
    headers,
    body: Buffer.from(body),
    signal: AbortSignal.any([signal, abort.signal]),
  })
  const reply = await sending.catch((error: unknown) => {
    throw abort.signal.aborted ? abort.signal.reason : error
  })
  reply.body.on('error', () => {})
  reply.body.destroy()
  return reply.status
}

export type CommandReceiverOptions = {
  readonly command: readonly string[]
  readonly kinds?: readonly NoticeKind[] | undefined
  readonly env: Readonly<Record<string, string>>
}

/** A program of the operator. It gets the notice on its standard input, and nothing from outside in its arguments. */
export function createCommandReceiver(
  { command, kinds, env }: CommandReceiverOptions,
  { clock }: { clock: Clock },
): Receiver {
  return {
    name: 'command',
    accepts: (kind) => kind === 'test' || (kinds?.includes(kind) ?? true),
    send: (notice, signal): Promise<CommandResult> =>
      runCommand(
        { command, input: `${JSON.stringify(noticeWire(notice))}\n`, timeoutMs: TIMEOUT_MS, env, signal },
        { clock },
      ),
    [Symbol.dispose]() {},
  }
}
