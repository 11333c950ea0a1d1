import { rpcMethod } from '../../src/contract/rpc-methods.ts'
import type { GrpcCall } from '../../src/platform/grpc/call.ts'
import { serveUnary } from '../../src/platform/grpc/unary.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { SUBSCRIBE } from '../support/gateway/grpc.ts'

/**
 * A node that knows what everything forwarded to it costs, and when it came. A read may be sent again and a subscription asked for again,
 * at the gateway's expense: what has come before counts once.
 */
export async function startCountingNode() {
  const node = await startFakeNode()
  const spent = new Map<string, { atMs: number; units: number }>()
  let came = 0
  const count = (name: string, units: number) => {
    came += 1
    if (!spent.has(name)) spent.set(name, { atMs: performance.now(), units })
  }
  // gRPC calls are never sent again.
  const countNew = () => count(`gRPC ${came}`, 1)
  node.respond = (method, params) => {
    count(String((params as string[])[0]), rpcMethod(method).cost)
    return { result: '0' }
  }
  node.onGrpcCall = (call: GrpcCall) => {
    countNew()
    if (call.path !== SUBSCRIBE) return serveUnary(call, (message) => ({ ok: true, message }))
    call.sendHeaders()
    let requests = 0
    call.onMessage((message) => {
      // The opening has paid for the first.
      if (++requests > 1) countNew()
      call.send(message)
    })
  }
  const subscribed = () =>
    node.texts.flatMap((text) => /"logsSubscribe","params":\[\{"mentions":\["([^"]+)"/.exec(text)?.[1] ?? [])
  return {
    node,
    /** All units received, WebSocket subscriptions included. */
    units: () => [...spent.values()].reduce((sum, { units }) => sum + units, 0) + new Set(subscribed()).size,
    /** The number of calls received twice. */
    repeated: () => came - spent.size + subscribed().length - new Set(subscribed()).size,
    /** The most units received within this time. */
    most(withinMs: number): number {
      let most = 0
      for (const { atMs: endMs } of spent.values()) {
        const inside = [...spent.values()].filter(({ atMs }) => atMs > endMs - withinMs && atMs <= endMs)
        most = Math.max(
          most,
          inside.reduce((sum, { units }) => sum + units, 0),
        )
      }
      return most
    },
  }
}
