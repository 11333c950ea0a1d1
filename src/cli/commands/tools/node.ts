import { buildRouteMap } from '@stricli/core'
import {
  argument,
  type ChangeFlags,
  type CutFlags,
  changeFlags,
  command,
  cutFlags,
  type FirstFlags,
  firstFlags,
  flag,
  type ListFlags,
  listFlags,
  optionalArgument,
  positional,
  text,
} from '../../define.ts'

const load = () => import('./run/node.ts')

const ADDRESS_DETAILS =
  'An address with a secret in its path or query is given by reference: env:NAME or file:PATH in place of the URL.'

export const nodeRoutes = buildRouteMap({
  docs: { brief: 'Dedicated nodes' },
  routes: {
    add: command<FirstFlags & { rpc: string; ws?: string; grpc?: string; credential?: string }, [string]>({
      brief: 'Add a dedicated node',
      details: ADDRESS_DETAILS,
      examples: [
        'ded-1 --rpc https://ded-1.example.net:8899 --ws wss://ded-1.example.net:8900 --grpc https://ded-1.example.net:10000',
      ],
      parameters: {
        flags: {
          ...firstFlags,
          rpc: { kind: 'parsed', parse: text, brief: 'JSON-RPC address, or a reference to it', placeholder: 'URL' },
          ws: flag.text('WebSocket address', 'URL'),
          grpc: flag.text('gRPC address', 'URL'),
          credential: flag.text('Reference to its credential: file:PATH or env:NAME', 'REF'),
        },
        positional: positional(argument('NAME', 'Short name, unique')),
      },
      load: async () => (await load()).addNodeCommand,
    }),
    set: command<ChangeFlags & { rpc?: string; ws?: string; grpc?: string; credential?: string }, [string]>({
      brief: 'Change addresses or credential of a dedicated node',
      details: `In use within a second, for new connections. "none" removes an address or the credential.\n${ADDRESS_DETAILS}`,
      examples: ['ded-1 --credential file:/etc/sluice/ded-1.key', 'ded-1 --rpc env:DED_1_RPC --ws none'],
      parameters: {
        flags: {
          ...changeFlags,
          rpc: flag.text('JSON-RPC address, or a reference to it', 'URL'),
          ws: flag.text('WebSocket address', 'URL'),
          grpc: flag.text('gRPC address', 'URL'),
          credential: flag.text('Reference to its credential: file:PATH or env:NAME', 'REF'),
        },
        positional: positional(argument('NODE', 'Node name or id')),
      },
      load: async () => (await load()).setNodeCommand,
    }),
    remove: command<CutFlags & { force?: boolean }, [string]>({
      brief: 'Remove a dedicated node',
      details: 'An assigned node is removed only with --force; its subscription then has one node less.',
      examples: ['ded-1', 'ded-1 --force --yes'],
      parameters: {
        flags: { force: flag.switch('Also when it is assigned'), ...cutFlags },
        positional: positional(argument('NODE', 'Node name or id')),
      },
      load: async () => (await load()).removeNodeCommand,
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
