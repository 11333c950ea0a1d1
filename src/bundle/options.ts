import { z } from 'zod'
import { listenerOption } from '../contract/listener-option.ts'

export const bundleOptions = z.strictObject({
  rpc: z
    .strictObject(listenerOption('127.0.0.1:8899'))
    .prefault({})
    .describe('JSON-RPC over HTTP: token in x-token, Authorization, x-api-key, or the query as api-key or api_key.'),
  ws: z
    .strictObject({
      ...listenerOption('127.0.0.1:8900'),
      queryToken: z
        .boolean()
        .default(false)
        .describe('Accepts the token itself in the query of a WebSocket address, where it may be logged on the way.'),
    })
    .prefault({})
    .describe('PubSub over WebSocket: token in x-token or Authorization, or a ticket in the query.'),
  grpc: z
    .strictObject(listenerOption('127.0.0.1:10010'))
    .prefault({})
    .describe('geyser.Geyser over gRPC: token in the metadata x-token or authorization.'),
})

export type BundleOptions = z.output<typeof bundleOptions>
