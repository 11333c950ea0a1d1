import { type Random, randomInt } from '../../../src/core/random.ts'
import { createMessageReader, frameMessage } from '../../../src/platform/grpc/framing.ts'
import { WireReader } from '../../../src/solana/geyser/wire-reader.ts'
import type { Upstream } from '../../../src/upstreams/upstream.ts'

/** Field of SubscribeUpdate that holds a block (geyser.proto). */
const BLOCK_FIELD = 5
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024

export type DroppingUpstream = {
  readonly upstream: Pick<Upstream, 'forwardAsync' | 'each' | 'grpc' | 'bestSlot' | 'isAvailable'>
  readonly dropped: number
}

/** A node whose stream drops one block in `oneIn`, as an overloaded node does; getBlock still returns it. */
export function dropBlocks(upstream: Upstream, random: Random, oneIn: number): DroppingUpstream {
  let dropped = 0
  const isBlock = (message: Uint8Array): boolean => {
    const update = new WireReader(message)
    while (update.next()) if (update.field === BLOCK_FIELD) return true
    return false
  }
  const open: Upstream['grpc']['open'] = async (...given) => {
    const opened = await upstream.grpc.open(...given)
    if (!opened.ok) return opened
    const { stream } = opened
    const onData: typeof stream.onData = (listener) => {
      let since: Parameters<typeof listener>[1]
      const reader = createMessageReader({ messageBytesMax: MESSAGE_BYTES_MAX }, (message) => {
        if (isBlock(message) && randomInt(random, oneIn) === 0) dropped++
        else listener(frameMessage(message), since)
      })
      stream.onData((bytes, rest) => {
        since = rest
        reader.push(bytes)
      })
    }
    return { ...opened, stream: Object.create(stream, { onData: { value: onData } }) }
  }
  return {
    upstream: {
      get bestSlot() {
        return upstream.bestSlot
      },
      get isAvailable() {
        return upstream.isAvailable
      },
      forwardAsync: upstream.forwardAsync.bind(upstream),
      each: () => upstream.each(),
      grpc: Object.create(upstream.grpc, { open: { value: open } }),
    },
    get dropped() {
      return dropped
    },
  }
}
