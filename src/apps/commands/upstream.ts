import { buildRouteMap } from '@stricli/core'
import { type CommonFlags, command, commonFlags, type ListFlags, listFlags, word, words } from './define.ts'
import { notInBuild } from './not-in-build.ts'

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
    test: notInBuild('upstream test', 'Reach an upstream over HTTP, WebSocket and gRPC'),
  },
})
