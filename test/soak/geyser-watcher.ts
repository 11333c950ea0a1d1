import { credentials, Client as GrpcClient } from '@grpc/grpc-js'
import { SubscribeRequestSchema, SubscribeUpdateSchema } from '../../src/solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../support/gateway/grpc.ts'
import { type Client, pause, type SoakContext } from './client.ts'

/** Subscribes to slots on one gRPC stream after another. No slot may be missing within a stream: the loss of a node ends it. */
export const geyserWatcher: Client = async (context) => {
  while (!context.isOver()) {
    await watchOnce(context)
    await pause(200 + context.random(1000))
  }
}

async function watchOnce({ service, random, isOver, reportViolation, count }: SoakContext): Promise<void> {
  const client = new GrpcClient(service.at.grpc, credentials.createInsecure())
  const stream = openStream(client, SUBSCRIBE, tokenMetadata(service.token))
  stream.call.removeAllListeners('data')
  let last: bigint | undefined
  let isEnded = false
  stream.call.on('data', (bytes: Buffer) => {
    const update = decodeMessage(SubscribeUpdateSchema, bytes)?.updateOneof
    if (update?.case !== 'slot') return
    const { slot } = update.value
    count('geyser slots')
    if (last !== undefined && slot !== last + 1n) reportViolation(`geyser slot ${slot} after ${last}`)
    last = slot
  })
  void stream.ended.then(({ code }) => {
    isEnded = true
    count(`geyser ended ${code}`)
  })
  stream.send(encodeMessage(SubscribeRequestSchema, { slots: { soak: {} } }))
  const endMs = performance.now() + 2000 + random(40_000)
  while (performance.now() < endMs && !isOver() && !isEnded) await pause(250)
  stream.call.cancel()
  await stream.ended
  client.close()
}
