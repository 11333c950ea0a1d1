import { buildRouteMap } from '@stricli/core'
import {
  argument,
  type CommonFlags,
  command,
  commonFlags,
  type ListFlags,
  listFlags,
  optionalArgument,
  positional,
} from '../../define.ts'

const load = () => import('./run/upstream.ts')

const node = argument('NODE', 'Name of the node')

export const upstreamRoutes = buildRouteMap({
  docs: { brief: 'Upstream nodes of the running process' },
  routes: {
    list: command<ListFlags>({
      brief: 'List upstream nodes with their state, slot and lag',
      examples: ['', '-o json'],
      parameters: { flags: listFlags, aliases: { o: 'output' } },
      load: async () => (await load()).listUpstreams,
    }),
    drain: command<CommonFlags, [string]>({
      brief: 'Send no new requests to a node',
      examples: ['localnet'],
      parameters: { flags: commonFlags, positional: positional(node) },
      load: async () => (await load()).drainUpstream,
    }),
    undrain: command<CommonFlags, [string]>({
      brief: 'Send requests to a drained node again',
      examples: ['localnet'],
      parameters: { flags: commonFlags, positional: positional(node) },
      load: async () => (await load()).undrainUpstream,
    }),
    test: command<ListFlags, [string?]>({
      brief: 'Test the configured upstreams over HTTP, WebSocket and gRPC, and compare them',
      details:
        'Opens its own connections to each node; works without a running process. Exits with 1 if a node does not respond or is on another chain.',
      examples: ['', '-o json'],
      parameters: {
        flags: listFlags,
        aliases: { o: 'output' },
        positional: positional(optionalArgument('NODE', 'Name of the node (default: all)')),
      },
      load: async () => (await import('./run/test-nodes.ts')).testUpstreams,
    }),
  },
})
