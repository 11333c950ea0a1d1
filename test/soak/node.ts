import { SubscribeUpdateSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'

/** A node that responds immediately, publishes its slots on WebSocket and gRPC, and counts the calls it received. */
export type SoakNode = AsyncDisposable & {
  readonly ports: FakeNode['ports']
  /** Calls received, without health probes. */
  readonly calls: number
  tick(): void
}

export async function startSoakNode(): Promise<SoakNode> {
  const node = await startFakeNode()
  const streams = new Set<(bytes: Uint8Array) => void>()
  let calls = 0
  node.respond = () => {
    calls += 1
    return { result: `{"context":{"slot":${node.slot}},"value":1}` }
  }
  node.onGrpcCall = (call) => {
    call.sendHeaders()
    const send = (bytes: Uint8Array) => call.send(bytes)
    call.onMessage(() => streams.add(send))
    call.onClose(() => streams.delete(send))
  }
  return {
    ports: node.ports,
    get calls() {
      return calls
    },
    tick() {
      // These lists, which tests inspect, would grow without limit here.
      for (const list of [node.calls, node.requests, node.handshakes, node.texts]) list.length = 0
      node.tick()
      const update = slotUpdate(BigInt(node.slot))
      for (const send of streams) send(update)
    },
    [Symbol.asyncDispose]: () => node[Symbol.asyncDispose](),
  }
}

function slotUpdate(slot: bigint): Uint8Array {
  return encodeMessage(SubscribeUpdateSchema, {
    filters: ['soak'],
    updateOneof: { case: 'slot', value: { slot, parent: slot - 1n, status: 0 } },
  })
}
