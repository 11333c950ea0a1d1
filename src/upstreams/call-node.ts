import type { Clock } from '../core/clock.ts'
import type { ResponseRest } from '../platform/http/response-rest.ts'
import { readCompleteResponse } from './complete-response.ts'
import { upstreamRequest } from './http-call.ts'
import type { Upstream } from './upstream.ts'

/** Calls a JSON-RPC method at an upstream node; undefined when no node responds with a result in time. */
export type CallNode = (method: string, params: readonly unknown[], withinMs: number) => Promise<unknown>

/** Larger responses are dropped; the largest that are requested are the leader schedule and the cluster nodes. */
const RESPONSE_BYTES_MAX = 64 * 1024 * 1024

export function createCallNode(upstream: Pick<Upstream, 'forward'>, clock: Clock): CallNode {
  return (method, params, withinMs) =>
    new Promise((resolve) => {
      const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
      let rest: ResponseRest | undefined
      const timer = clock.setTimer(withinMs, () => {
        forwarded.abort()
        rest?.abort()
        resolve(undefined)
      })
      timer.unref?.()
      const forwarded = upstream.forward(upstreamRequest(method, body), (response) => {
        if (response.kind !== 'responded') {
          timer.cancel()
          return resolve(undefined)
        }
        rest = response.rest
        void readCompleteResponse(response, { bytesMax: RESPONSE_BYTES_MAX }).then((complete) => {
          timer.cancel()
          resolve(typeof complete === 'string' ? undefined : resultOf(complete))
        })
      })
    })
}

function resultOf(body: Buffer): unknown {
  try {
    return (JSON.parse(body.toString()) as { result?: unknown } | null)?.result
  } catch {
    return undefined
  }
}
