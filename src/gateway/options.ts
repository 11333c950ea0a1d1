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
        .describe('Accepts the token itself in the query of a WebSocket address, where proxies may log it.'),
    })
    .prefault({})
    .describe('PubSub over WebSocket: token in x-token or Authorization, or a ticket in the query.'),
  grpc: z
    .strictObject({
      ...listenerOption('127.0.0.1:10010'),
      healthPerSecond: z
        .int()
        .min(1)
        .max(100_000)
        .default(50)
        .describe('Calls of grpc.health.v1 per second and address, without a token; the burst is ten seconds.'),
    })
    .prefault({})
    .describe('geyser.Geyser over gRPC: token in the metadata x-token or authorization.'),
  cache: z
    .strictObject({
      enabled: z
        .boolean()
        .default(false)
        .describe(
          'Caches responses that never change, such as finalized blocks; a cached response is charged like any other.',
        ),
      bytesMax: z
        .int()
        .min(1024 * 1024)
        .max(64 * 1024 * 1024 * 1024)
        .default(64 * 1024 * 1024)
        .describe('Bytes of all cached responses; beyond it the least recently used is evicted.'),
      entriesMax: z.int().min(1).max(10_000_000).default(10_000).describe('Number of cached responses.'),
      answerBytesMax: z
        .int()
        .min(1024)
        .max(16 * 1024 * 1024)
        .default(1024 * 1024)
        .describe('A larger response is not cached.'),
    })
    .prefault({})
    .describe('Cache of responses that never change, in memory, for each pool of nodes.'),
  trustedProxies: z
    .array(z.string().min(1))
    .max(64)
    .default([])
    .describe(
      'Addresses and networks of proxies whose x-forwarded-for header is used as the client address: 10.0.0.1, 10.0.0.0/8.',
    ),
})
