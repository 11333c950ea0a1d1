import { buildRouteMap } from '@stricli/core'
import {
  type CommonFlags,
  command,
  commonFlags,
  type ListFlags,
  listFlags,
  optionalWord,
  word,
  words,
} from '../../define.ts'

const load = () => import('./run/upstream.ts')

const node = word('NODE', 'Name of the node')

export const upstreamRoutes = buildRouteMap({
  docs: { brief: 'Upstream nodes of the running Sluice' },
  routes: {
    list: command<ListFlags>({
      brief: 'List upstream nodes with their state, slot and lag',
      examples: ['', '-o json'],
      parameters: { flags: listFlags, aliases: { o: 'output' } },
      load: async () => (await load()).listUpstreams,
    }),
    drain: command<CommonFlags, [string]>({
      brief: 'Give a node no new work',
      examples: ['localnet'],
      parameters: { flags: commonFlags, positional: words(node) },
      load: async () => (await load()).drainUpstream,
    }),
    undrain: command<CommonFlags, [string]>({
      brief: 'Use a drained node again',
      examples: ['localnet'],
      parameters: { flags: commonFlags, positional: words(node) },
      load: async () => (await load()).undrainUpstream,
    }),
    test: command<ListFlags, [string?]>({
      brief: 'Reach the configured upstreams over HTTP, WebSocket and gRPC, and compare them',
      details:
        'Makes a call, a subscription and a gRPC call of its own to each node; nothing needs to run. Ends with 1 when a node does not answer or is on another chain.',
      examples: ['', '-o json'],
      parameters: {
        flags: listFlags,
        aliases: { o: 'output' },
        positional: words(optionalWord('NODE', 'Name of the node (default: all)')),
      },
      load: async () => (await import('./run/test-nodes.ts')).testUpstreams,
    }),
  },
})
