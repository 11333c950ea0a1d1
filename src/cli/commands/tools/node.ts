import { buildRouteMap } from '@stricli/core'
import {
  argument,
  type ChangeFlags,
  changeFlags,
  command,
  flag,
  type ListFlags,
  listFlags,
  optionalArgument,
  positional,
  text,
} from '../../define.ts'

const load = () => import('./run/node.ts')

export const nodeRoutes = buildRouteMap({
  docs: { brief: 'Dedicated nodes' },
  routes: {
    add: command<ChangeFlags & { rpc: string; ws?: string; grpc?: string; credential?: string }, [string]>({
      brief: 'Add a dedicated node',
      examples: [
        'ded-1 --rpc https://ded-1.example.net:8899 --ws wss://ded-1.example.net:8900 --grpc https://ded-1.example.net:10000',
      ],
      parameters: {
        flags: {
          ...changeFlags,
          rpc: { kind: 'parsed', parse: text, brief: 'JSON-RPC address', placeholder: 'URL' },
          ws: flag.text('WebSocket address', 'URL'),
          grpc: flag.text('gRPC address', 'URL'),
          credential: flag.text('Reference to its credential: file:PATH or env:NAME', 'REF'),
        },
        positional: positional(argument('NAME', 'Short name, unique')),
      },
      load: async () => (await load()).addNodeCommand,
    }),
    assign: command<ChangeFlags & { nobody?: boolean }, [string, string?]>({
      brief: 'Assign a node to one subscription exclusively',
      examples: ['ded-1 --nobody'],
      parameters: {
        flags: { nobody: flag.switch('Remove the assignment'), ...changeFlags },
        positional: positional(argument('NODE', 'Node name or id'), optionalArgument('SUB', 'Subscription name or id')),
      },
      load: async () => (await load()).assignNodeCommand,
    }),
    list: command<ListFlags>({
      brief: 'List dedicated nodes',
      examples: [''],
      parameters: { flags: listFlags, aliases: { o: 'output' } },
      load: async () => (await load()).listNodes,
    }),
    test: command<ListFlags, [string?]>({
      brief: 'Test dedicated nodes over HTTP, WebSocket and gRPC with their credentials',
      details: 'Works without a running process. Exits with 1 if a node does not respond.',
      examples: ['ded-1'],
      parameters: {
        flags: listFlags,
        aliases: { o: 'output' },
        positional: positional(optionalArgument('NODE', 'Node name or id (default: all)')),
      },
      load: async () => (await import('./run/test-nodes.ts')).testNodes,
    }),
  },
})
