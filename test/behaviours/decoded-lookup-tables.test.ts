import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { createLogger, silentLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { tableNodesOf } from '../../src/processes/compose/services/shreds.ts'
import { parseLookupTable, type TableAccount } from '../../src/shreds/decoded/lookup-tables.ts'
import { createLookupTableSource } from '../../src/shreds/decoded/node-lookup-tables.ts'
import { parseUpstreamsOptions } from '../../src/upstreams/options.ts'
import { startUpstreams } from '../../src/upstreams/service.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'
import { createLookupTable } from '../support/solana/lookup-table.ts'

test('a lookup table of a real chain is loaded once, and its extension arrives by the subscription', async () => {
  await using node = await startQuickLocalnet()
  const { key, extend } = await createLookupTable(`http://${node.rpc.host}:${node.rpc.port}`)
  await extend(2)

  let lines = ''
  const log = createLogger({ level: 'info', destination: { write: (line: string) => (lines += line) } })
  const deps = { clock: systemClock, random: secureRandom }
  await using upstreams = await startUpstreams(
    parseUpstreamsOptions({
      allowPrivate: true,
      nodes: [
        {
          name: 'local',
          rpc: `http://${node.rpc.host}:${node.rpc.port}`,
          grpc: `http://${node.grpc.host}:${node.grpc.port}`,
        },
      ],
    }),
    { ...deps, log: silentLogger, registry: createMetricsRegistry(), env: {} },
  )
  const nodes = tableNodesOf(upstreams.shared, systemClock)
  let asked = 0
  const source = createLookupTableSource()
  const accounts: TableAccount[] = []
  source.onAccounts((some) => void accounts.push(...some))
  using _following = source.follow(
    {
      ...nodes,
      callNode(...args) {
        asked += 1
        return nodes.callNode(...args)
      },
    },
    { ...deps, log },
  )
  await until('the stream is open', () => lines.includes('stream of a node opened'))
  source.change({ wanted: [key.toBytes()], dropped: [] })
  const addressesOf = (account: TableAccount | undefined) =>
    account?.data === undefined ? undefined : (parseLookupTable(account.data)?.length ?? 0) / 32
  await until('it is loaded, and once more when it is followed', () => accounts.length === 2)
  assert.deepEqual(accounts.map(addressesOf), [2, 2])
  const askedBefore = asked
  await extend(3)
  await until('the extension has arrived', () => addressesOf(accounts.at(-1)) === 5)
  assert.equal(asked, askedBefore, 'no table was read for it')
})
