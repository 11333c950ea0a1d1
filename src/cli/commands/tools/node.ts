import { buildRouteMap } from '@stricli/core'
import {
  argument,
  changeFlags,
  command,
  cutFlags,
  firstFlags,
  flag,
  listFlags,
  optionalArgument,
} from '../../define.ts'

const load = () => import('./run/node.ts')

const ADDRESS_DETAILS =
  'An address with a secret in its path or query is given by reference: env:NAME or file:PATH in place of the URL.'

export const nodeRoutes = buildRouteMap({
  docs: { brief: 'Dedicated nodes' },
  routes: {
    add: command({
      brief: 'Add a dedicated node',
      details: ADDRESS_DETAILS,
      examples: [
        'ded-1 --rpc https://ded-1.example.net:8899 --ws wss://ded-1.example.net:8900 --grpc https://ded-1.example.net:10000',
      ],
      flags: {
        ...firstFlags,
        rpc: flag.required('JSON-RPC address, or a reference to it', 'URL'),
        ws: flag.text('WebSocket address', 'URL'),
        grpc: flag.text('gRPC address', 'URL'),
        credential: flag.text('Reference to its credential: file:PATH or env:NAME', 'REF'),
      },
      args: [argument('NAME', 'Short name, unique')],
      load: async () => (await load()).addNodeCommand,
    }),
    set: command({
      brief: 'Change addresses or credential of a dedicated node',
      details: `In use within a second, for new connections. "none" removes an address or the credential.\n${ADDRESS_DETAILS}`,
      examples: ['ded-1 --credential file:/etc/sluice/ded-1.key', 'ded-1 --rpc env:DED_1_RPC --ws none'],
      flags: {
        ...changeFlags,
        rpc: flag.text('JSON-RPC address, or a reference to it', 'URL'),
        ws: flag.text('WebSocket address', 'URL'),
        grpc: flag.text('gRPC address', 'URL'),
        credential: flag.text('Reference to its credential: file:PATH or env:NAME', 'REF'),
      },
      args: [argument('NODE', 'Node name or id')],
      load: async () => (await load()).setNodeCommand,
    }),
    remove: command({
      brief: 'Remove a dedicated node',
      details: 'An assigned node is removed only with --force; its subscription then has one node less.',
      examples: ['ded-1', 'ded-1 --force --yes'],
      flags: { force: flag.switch('Also when it is assigned'), ...cutFlags },
      args: [argument('NODE', 'Node name or id')],
      load: async () => (await load()).removeNodeCommand,
    }),
    assign: command({
      brief: 'Assign a node to one subscription exclusively',
      examples: ['ded-1 --nobody'],
      flags: { nobody: flag.switch('Remove the assignment'), ...changeFlags },
      args: [argument('NODE', 'Node name or id'), optionalArgument('SUB', 'Subscription name or id')],
      load: async () => (await load()).assignNodeCommand,
    }),
    list: command({
      brief: 'List dedicated nodes',
      examples: [''],
      flags: listFlags,
      load: async () => (await load()).listNodes,
    }),
    test: command({
      brief: 'Test dedicated nodes over HTTP, WebSocket and gRPC with their credentials',
      details: 'Works without a running process. Exits with 1 if a node does not respond.',
      examples: ['ded-1'],
      flags: listFlags,
      args: [optionalArgument('NODE', 'Node name or id (default: all)')],
      load: async () => (await import('./run/check-nodes.ts')).checkNodes,
    }),
  },
})
