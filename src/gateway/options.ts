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
    .strictObject({
      ...listenerOption('127.0.0.1:10010'),
      healthPerSecond: z
        .int()
        .min(1)
        .max(100_000)
        .default(50)
        .describe(
          'Calls of grpc.health.v1 that one address may make a second without a token; ten seconds can be saved up.',
        ),
    })
    .prefault({})
    .describe('geyser.Geyser over gRPC: token in the metadata x-token or authorization.'),
  cache: z
    .strictObject({
      enabled: z
        .boolean()
        .default(false)
        .describe('Keeps answers that never change, such as finalized blocks; each is charged like any other.'),
      bytesMax: z
        .int()
        .min(1024 * 1024)
        .max(64 * 1024 * 1024 * 1024)
        .default(64 * 1024 * 1024)
        .describe('Bytes of all answers kept; beyond it the one not asked for longest goes.'),
      entriesMax: z.int().min(1).max(10_000_000).default(10_000).describe('Answers kept.'),
      answerBytesMax: z
        .int()
        .min(1024)
        .max(16 * 1024 * 1024)
        .default(1024 * 1024)
        .describe('A larger answer is not kept.'),
    })
    .prefault({})
    .describe('Answers that never change, kept in memory for each pool of nodes.'),
  trustedProxies: z
    .array(z.string().min(1))
    .max(64)
    .default([])
    .describe(
      'Addresses and networks of proxies in front, whose x-forwarded-for tells the client: 10.0.0.1, 10.0.0.0/8.',
    ),
})
