import { frameMessage } from './framing.ts'
import type { GrpcStream } from './stream.ts'

/** Replies to the pings of a server. One that sends pings and reads nothing gets no reply while the earlier ones fill the write buffer of the stream. */
export function createPingReply(stream: Pick<GrpcStream, 'write' | 'onWritable'>, reply: Uint8Array): () => void {
  const frame = frameMessage(reply)
  let isWritable = true
  stream.onWritable(() => {
    isWritable = true
  })
  return () => {
    if (isWritable) isWritable = stream.write(frame)
  }
}
