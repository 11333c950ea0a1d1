/**
 * The tests whose chain is a localnet, directly or behind a served process. `npm run test:full` runs them on each of these chains too, `npm test` the short
 * list on one of them, which the seed chooses (`scripts/chain-matrix.ts`). One by hand: `SLUICE_TEST_CHAIN=alpenglow-200 node --test FILE`.
 */
export const CHAIN_CELLS: readonly string[] = ['tower-400', 'tower-200', 'alpenglow-400', 'alpenglow-200']

export const CHAIN_TESTS: readonly string[] = [
  'test/behaviours/examples.test.ts',
  'test/behaviours/gateway-process.test.ts',
  'test/behaviours/grpc-gateway-clients.test.ts',
  'test/behaviours/indexer-clients.test.ts',
  'test/behaviours/indexer-kills.test.ts',
  'test/behaviours/indexer-process.test.ts',
  'test/behaviours/indexer-results.test.ts',
  'test/behaviours/indexer-truth.test.ts',
  'test/behaviours/localnet-flows.test.ts',
  'test/behaviours/localnet-geyser-clients.test.ts',
  'test/behaviours/localnet-pubsub-kit.test.ts',
  'test/behaviours/localnet-pubsub-web3js.test.ts',
  'test/behaviours/localnet-rpc-framing.test.ts',
  'test/behaviours/localnet-rpc-fuzz.test.ts',
  'test/behaviours/localnet-rpc-kit.test.ts',
  'test/behaviours/localnet-rpc-web3js.test.ts',
  'test/behaviours/one-budget.test.ts',
  'test/behaviours/operator-connections.test.ts',
  'test/behaviours/rpc-gateway.test.ts',
  'test/behaviours/sender-block-engine-clients.test.ts',
  'test/behaviours/sender-lands.test.ts',
  'test/behaviours/sender-paths.test.ts',
  'test/behaviours/sender-process.test.ts',
  'test/behaviours/sender-refusals.test.ts',
  'test/behaviours/sender-restart.test.ts',
  'test/behaviours/sender-tips.test.ts',
  'test/behaviours/shred-commands.test.ts',
  'test/behaviours/shred-end-to-end.test.ts',
  'test/behaviours/upstream-command.test.ts',
  'test/behaviours/upstreams-over-localnet.test.ts',
  'test/behaviours/ws-gateway-kit.test.ts',
  'test/behaviours/ws-gateway-web3js.test.ts',
  'test/faults/gateway-http.test.ts',
  'test/faults/gateway-leave.test.ts',
  'test/faults/gateway-machine.test.ts',
  'test/faults/gateway-ws.test.ts',
  'test/faults/indexer-chain.test.ts',
  'test/faults/indexer-disk-full.test.ts',
  'test/faults/indexer-faults.test.ts',
  'test/faults/silent-node.test.ts',
  'test/faults/two-machines.test.ts',
]

/** Of the list above, less than a minute together. */
export const SHORT_CHAIN_TESTS: readonly string[] = [
  'test/behaviours/grpc-gateway-clients.test.ts',
  'test/behaviours/localnet-geyser-clients.test.ts',
  'test/behaviours/sender-lands.test.ts',
  'test/behaviours/upstreams-over-localnet.test.ts',
  'test/behaviours/ws-gateway-kit.test.ts',
]

/** Tests that have a localnet at hand and are not run on other chains, with the reason. */
export const OTHER_CHAIN_TESTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'it names its consensus itself': ['behaviours/localnet-alpenglow', 'behaviours/localnet-set'],
    'it describes the tower: votes, ticks, differences from a test validator': [
      'behaviours/localnet-differences',
      'behaviours/localnet-parity',
      'behaviours/localnet-votes',
    ],
    'nothing in it depends on blocks: documents, cards, refusals, packages, floods': [
      'behaviours/api-documents',
      'behaviours/handover-card',
      'behaviours/http-rules',
      'behaviours/indexer-clickhouse',
      'behaviours/indexer-clickhouse-hostile',
      'behaviours/indexer-clickhouse-proxy',
      'behaviours/indexer-credentials',
      'behaviours/node-changes',
      'behaviours/sender-disk-full',
      'behaviours/sender-overload',
      'behaviours/serve-terminal',
      'behaviours/state-files',
      'behaviours/token-refusals',
      'faults/clickhouse-silent',
      'faults/execution-storm',
      'faults/serve-databases',
      'faults/serve-disk',
      'faults/serve-store',
      'packaging/front',
      'packaging/release',
      'threats/guesses',
      'threats/requests',
      'threats/sender-flood',
      'threats/sender-requests',
      'threats/sender-unpaid',
      'threats/upstream-address',
      'threats/work-budget',
    ],
  }).flatMap(([reason, names]) => names.map((name): [string, string] => [`test/${name}.test.ts`, reason])),
)
