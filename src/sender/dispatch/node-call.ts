import type { Clock } from '../../core/clock.ts'
import { callOf } from '../../upstreams/http-call.ts'
import type { Upstream } from '../../upstreams/service.ts'

/** The result of a read of the chain; undefined where no node gives one in time. */
export type AskNode = (method: string, params: readonly unknown[], withinMs: number) => Promise<unknown>

/** Answers larger than this are not for the sender: the largest it asks for are a leader schedule and the cluster's nodes. */
const RESPONSE_BYTES_MAX = 64 * 1024 * 1024

export function createAskNode(upstream: Pick<Upstream, 'call'>, clock: Clock): AskNode {
  return (method, params, withinMs) =>
    new Promise((resolve) => {
      const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
      const timer = clock.setTimer(withinMs, () => {
        call.abort()
        resolve(undefined)
      })
      timer.unref?.()
      const call = upstream.call(callOf(method, body), (outcome) => {
        timer.cancel()
        if (outcome.kind !== 'responded') return resolve(undefined)
        const { rest } = outcome
        if (rest === undefined) return resolve(resultOf(outcome.body))
        const parts = [outcome.body]
        let bytes = outcome.body.length
        rest.start({
          onData(chunk) {
            bytes += chunk.length
            if (bytes <= RESPONSE_BYTES_MAX) parts.push(chunk)
            else {
              rest.abort()
              resolve(undefined)
            }
          },
          onEnd: () => resolve(resultOf(Buffer.concat(parts))),
          onFail: () => resolve(undefined),
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
