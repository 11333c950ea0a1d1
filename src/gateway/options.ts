import { z } from 'zod'
import { listenerOption } from '../contract/listener-option.ts'
import { integer, section } from '../contract/option-fields.ts'
import { publicUrlOption } from '../contract/public-url-option.ts'
import { formerNameOf } from '../contract/schemas/former-field.ts'
import { networkOption } from '../platform/config/network-option.ts'

/** More threads than any machine has use for. */
const WORKERS_MAX = 256

export const gatewayOptions = z.strictObject({
  workers: z
    .union([z.literal('auto'), integer(1, WORKERS_MAX)])
    .default('auto')
    .describe(
      'Threads that serve JSON-RPC, WebSocket and gRPC on the same ports: a number, or auto for the cores of the machine less those that the other services need; 1 on a machine of two cores.',
    ),
  rpc: section('JSON-RPC over HTTP: token in x-token, Authorization, x-api-key, or the query as api-key or api_key.', {
    ...listenerOption('127.0.0.1:8899'),
    ...publicUrlOption('http'),
  }),
  ws: section('PubSub over WebSocket: token in x-token or Authorization, or a ticket in the query.', {
    ...listenerOption('127.0.0.1:8900'),
    ...publicUrlOption('ws'),
    queryToken: z
      .boolean()
      .default(false)
      .describe('Accepts the token itself in the query of a WebSocket address, where proxies may log it.'),
  }),
  grpc: section('geyser.Geyser over gRPC: token in the metadata x-token or authorization.', {
    ...listenerOption('127.0.0.1:10010'),
    ...publicUrlOption('grpc'),
    healthPerSecond: integer(1, 100_000)
      .default(50)
      .describe('Calls of grpc.health.v1 per second and address, without a token; the burst is ten seconds.'),
  }),
  entries: section(
    'A second gRPC port, for shredstream.ShredstreamProxy/SubscribeEntries alone: for clients that expect a shred proxy on a port of its own. Token, budget and limits are those of the gRPC port.',
    {
      enabled: z.boolean().default(false).describe('Opens the port.'),
      ...listenerOption('127.0.0.1:10011'),
      ...publicUrlOption('grpc'),
    },
  ),
  cache: section('Cache of responses that never change, in memory, for each pool of nodes.', {
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Caches responses that never change, such as finalized blocks; a cached response is charged like any other.',
      ),
    bytesMax: integer(1024 * 1024, 64 * 1024 * 1024 * 1024)
      .default(64 * 1024 * 1024)
      .describe(
        'Bytes of all cached responses; beyond it the least recently used is evicted. Each gateway thread has its own part.',
      ),
    entriesMax: integer(1, 10_000_000)
      .default(10_000)
      .describe('Number of cached responses, over all gateway threads.'),
    responseBytesMax: integer(1024, 16 * 1024 * 1024)
      .default(1024 * 1024)
      .describe('A larger response is not cached.'),
    answerBytesMax: integer(1024, 16 * 1024 * 1024)
      .optional()
      .meta(formerNameOf('responseBytesMax')),
  }),
  decoded: section('Streams of ShredStream Decoded on the gRPC port, where the product is offered.', {
    filtersMax: integer(1, 4096).default(64).describe('Filters of one stream (decodedFiltersPerStream).'),
    pendingBytesMax: integer(64 * 1024, 1024 * 1024 * 1024)
      .default(4 * 1024 * 1024)
      .describe(
        'Bytes that wait for a client that does not read (decodedPendingBytes); it loses what comes beyond them, and is informed.',
      ),
  }),
  accountPage: z
    .boolean()
    .default(true)
    .describe('Serves the page /account on the RPC port, where customers see their usage, limits and connections.'),
  trustedProxies: z
    .array(networkOption)
    .max(64)
    .default([])
    .describe(
      'Addresses and networks of proxies whose x-forwarded-for header is used as the client address: 10.0.0.1, 10.0.0.0/8.',
    ),
})
