import { buildRouteMap } from '@stricli/core'
import { argument, command, listFlags, optionalArgument } from '../../define.ts'

const load = () => import('./run/upstream.ts')

const node = argument('NODE', 'Name of the node')

export const upstreamRoutes = buildRouteMap({
  docs: { brief: 'Upstream nodes of the running process' },
  routes: {
    list: command({
      brief: 'List upstream nodes with their state, slot and lag',
      examples: ['', '-o json'],
      flags: listFlags,
      load: async () => (await load()).listUpstreams,
    }),
    drain: command({
      brief: 'Send no new requests to a node',
      details:
        'Holds in this process until it is undrained or the process ends: a restart uses the node again. Other processes and machines are drained by a command of their own; to keep a node out of all of them, remove it from upstreams.nodes and reload.',
      examples: ['localnet'],
      args: [node],
      load: async () => (await load()).drainUpstream,
    }),
    undrain: command({
      brief: 'Send requests to a drained node again',
      examples: ['localnet'],
      args: [node],
      load: async () => (await load()).undrainUpstream,
    }),
    test: command({
      brief: 'Test the configured upstreams over HTTP, WebSocket and gRPC, and compare them',
      details:
        'Opens its own connections to each node; works without a running process. Exits with 1 if a node does not respond or is on another chain.',
      examples: ['', '-o json'],
      flags: listFlags,
      args: [optionalArgument('NODE', 'Name of the node (default: all)')],
      load: async () => (await import('./run/check-nodes.ts')).checkUpstreams,
    }),
  },
})
