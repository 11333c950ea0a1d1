import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { Clock } from '../../core/clock.ts'
import { createGzipStream } from '../../platform/http/gzip.ts'
import { isGzipped, withEncodingVariants } from '../../platform/http/server/gzip-reply.ts'
import { readBody } from '../../platform/http/server/read-body.ts'
import { sendText } from '../../platform/http/server/reply.ts'
import { PRICE, UNIT, type WorkBudget, type WorkOwner } from '../api/work-budget.ts'
import type { WorkQueue } from '../api/work-queue.ts'
import { type CallMeter, createCallMeter } from './call-meter.ts'
import { LimitFailure } from './failure.ts'
import { errorText, type JsonRpcDeps, respondToJsonRpc } from './json-rpc.ts'
import type { RpcPermit, RpcPermits } from './permits.ts'
import { ResponseText } from './response-text.ts'

export type RpcPostOptions = {
  readonly bodyBytesMax: number
  readonly batchItemsMax: number
  readonly responseBytesMax: number
}

export type RpcPostDeps = JsonRpcDeps & {
  readonly clock: Clock
  readonly budget: WorkBudget
  readonly queue: WorkQueue
  readonly permits: RpcPermits
  /** Headers of every response: which blocks are held. */
  readonly heldHeaders: () => OutgoingHttpHeaders
}

export type RpcPost = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly owner: WorkOwner
  readonly headers: OutgoingHttpHeaders
}

/** A client must read a response within this time, whatever its size; otherwise the connection is closed. */
const READ_MS = 60_000
const JSON_TYPE = { 'content-type': 'application/json' }

/** Serves `POST /`: work is charged to its owner, runs in slices and stops when the client disconnects. */
export function createRpcPosts(options: RpcPostOptions, deps: RpcPostDeps): (post: RpcPost) => Promise<void> {
  return async (post) => {
    const { response, owner } = post
    try {
      const meter = createCallMeter(deps.budget, owner)
      meter.take(PRICE.call)
      const permit = deps.permits.acquire(owner, () => {
        deps.onLimit?.('requestsInAll')
        response.destroy()
      })
      response.once('close', () => permit[Symbol.dispose]())
      await servePost(post, meter, permit)
    } catch (error) {
      if (!(error instanceof LimitFailure)) throw error
      deps.onLimit?.(error.limit)
      refuse(post, error)
    }
  }

  async function servePost(post: RpcPost, meter: CallMeter, permit: RpcPermit): Promise<void> {
    const { request, response, owner, headers } = post
    const read = await readBody(request, options)
    if (!read.ok && read.reason === 'aborted') return
    if (!read.ok) throw bodyTooLarge(options.bodyBytesMax)
    permit.bodyRead()
    const out = new ResponseText({
      bytesMax: options.responseBytesMax,
      onBytes: (bytes) => meter.charge(bytes / UNIT.bytes),
    })
    const leaving = new AbortController()
    response.once('close', () => leaving.abort())
    const work = respondToJsonRpc({ body: read.body, meter, out }, options, deps)
    const outcome = await deps.queue.run(owner, work, leaving.signal)
    if (outcome === undefined) return
    const { status, retryAfterMs } = outcome
    // Notifications only: there is no response body.
    if (status === 204) return sendText(response, 204, '', headers)
    const { chunks, bytes } = out.take()
    permit.holdResponse(bytes, () => {
      deps.onLimit?.('unreadBytes')
      response.destroy()
    })
    const sent = withEncodingVariants({ ...headers, ...JSON_TYPE, ...deps.heldHeaders(), ...retryAfter(retryAfterMs) })
    await send(response, { status, chunks, bytes, headers: sent })
  }

  async function send(
    response: ServerResponse,
    sent: { status: number; chunks: readonly Buffer[]; bytes: number; headers: OutgoingHttpHeaders },
  ): Promise<void> {
    if (response.destroyed) return
    using _deadline = deps.clock.setTimer(READ_MS, () => response.destroy())
    const closed = new Promise<void>((resolve) => response.once('close', resolve))
    const isPacked = isGzipped(response, sent.bytes)
    const size = isPacked ? { 'content-encoding': 'gzip' } : { 'content-length': sent.bytes }
    response.writeHead(sent.status, { ...sent.headers, ...size })
    // Compressed on the thread pool while it is sent.
    const chunks = isPacked ? Readable.from(sent.chunks).pipe(createGzipStream()) : sent.chunks
    for await (const chunk of chunks) {
      if (response.destroyed) return
      if (!response.write(chunk)) await Promise.race([closed, drained(response)])
    }
    response.end()
    await closed
  }
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.once('drain', resolve)
  })
}

function bodyTooLarge(size: number): LimitFailure {
  return new LimitFailure(`a body has at most ${size} bytes`, { limit: 'requestBytes', size })
}

/** Refuses the request. */
function refuse({ response, headers }: RpcPost, { code, message, data, retryAfterMs, limit }: LimitFailure): void {
  const status = limit === 'requestBytes' ? 413 : 429
  const body = errorText('null', code, message, data)
  sendText(response, status, body, { ...headers, ...JSON_TYPE, ...retryAfter(retryAfterMs) })
}

/** In seconds, rounded up, at least one. */
export function retryAfter(retryAfterMs: number | undefined): { 'retry-after'?: string } {
  return retryAfterMs === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1000))) }
}
