import { buildRouteMap } from '@stricli/core'
import {
  type ChangeFlags,
  changeFlags,
  command,
  flag,
  type ListFlags,
  listFlags,
  optionalWord,
  text,
  word,
  words,
} from '../../define.ts'

const load = () => import('./run/node.ts')

export const nodeRoutes = buildRouteMap({
  docs: { brief: 'Dedicated nodes: one customer each' },
  routes: {
    add: command<ChangeFlags & { rpc: string; ws?: string; grpc?: string; credential?: string }, [string]>({
      brief: 'Put a dedicated node on record',
      examples: [
        'ded-1 --rpc https://ded-1.example.net:8899 --ws wss://ded-1.example.net:8900 --grpc https://ded-1.example.net:10000',
      ],
      parameters: {
        flags: {
          ...changeFlags,
          rpc: { kind: 'parsed', parse: text, brief: 'JSON-RPC address', placeholder: 'URL' },
          ws: flag.text('WebSocket address', 'URL'),
          grpc: flag.text('gRPC address', 'URL'),
          credential: flag.text('Where its credential is: file:PATH or env:NAME', 'REF'),
        },
        positional: words(word('NAME', 'Short name, unique')),
      },
      load: async () => (await load()).addNodeCommand,
    }),
    assign: command<ChangeFlags & { nobody?: boolean }, [string, string?]>({
      brief: 'Give a node to one subscription, alone',
      examples: ['ded-1 --nobody'],
      parameters: {
        flags: { nobody: flag.switch('Take the node back'), ...changeFlags },
        positional: words(word('NODE', 'Node name or id'), optionalWord('SUB', 'Subscription name or id')),
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
      brief: 'Reach dedicated nodes over HTTP, WebSocket and gRPC, with their own credentials',
      details: 'Nothing needs to run. Ends with 1 when a node does not answer.',
      examples: ['ded-1'],
      parameters: {
        flags: listFlags,
        aliases: { o: 'output' },
        positional: words(optionalWord('NODE', 'Node name or id (default: all)')),
      },
      load: async () => (await import('./run/test-nodes.ts')).testNodes,
    }),
  },
})
