import { addCustomer } from '../../../src/access/provisioning/customers.ts'
import { createSubscription } from '../../../src/access/provisioning/subscriptions.ts'
import type { ClickHouseStoreOptions } from '../../../src/indexer/clickhouse/store.ts'
import { type IndexerOptionsInput, parseIndexerOptions } from '../../../src/indexer/options.ts'
import { type Indexer, type IndexerDeps, startIndexer } from '../../../src/indexer/service.ts'
import type { Localnet } from '../../../src/localnet/service.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { until } from '../../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { AMPLE_HELD_BYTES } from '../gateway/held-bytes.ts'
import { type Gateway, startGateway } from '../gateway/start.ts'
import { startQuickLocalnet } from '../solana/localnet.ts'

export type IndexerRig = AsyncDisposable & {
  readonly indexer: Indexer
  readonly url: string
  readonly node: Localnet
  readonly gateway: Gateway
  /** Creates a subscription that may query. */
  subscribe(name: string): Promise<IndexerAccount>
}

export type IndexerAccount = {
  readonly token: string
  readonly username: string
  readonly password: string
  /** Login and token as headers. */
  readonly headers: Readonly<Record<string, string>>
}

/** The indexer over a localnet with traffic, with its own access store; on the embedded engine or on ClickHouse. */
export async function startIndexerRig(
  input: IndexerOptionsInput = {},
  clickhouse?: ClickHouseStoreOptions,
  { dataFile, lifecycle }: { dataFile?: string; lifecycle?: IndexerDeps['lifecycle'] } = {},
): Promise<IndexerRig> {
  await using opening = new AsyncDisposableStack()
  const node = opening.use(await startQuickLocalnet({ traffic: { enabled: true, tps: 100 } }))
  const at = (scheme: string, { port }: { port: number }) => `${scheme}://127.0.0.1:${port}`
  const gateway = opening.use(
    await startGateway([{ name: 'localnet', rpc: at('http', node.rpc), grpc: at('http', node.grpc) }]),
  )
  const {
    enabled: _enabled,
    listen: _listen,
    tls: _tls,
    plaintext: _plaintext,
    ...options
  } = parseIndexerOptions({
    ingest: { batchMs: 100, batchBlocks: 4 },
    ...input,
  })
  const indexer = opening.use(
    await startIndexer(
      options,
      {
        listener: { host: '127.0.0.1', port: 0 },
        dataFile: dataFile ?? `${gateway.folder}/chain.duckdb`,
        clickhouse,
        displayName: 'test',
      },
      {
        access: gateway.access,
        upstream: gateway.upstreams.shared,
        log: silentLogger,
        clock: systemClock,
        random: secureRandom,
        registry: createMetricsRegistry(),
        heldBytes: AMPLE_HELD_BYTES,
        listenerMetrics: { onRefused() {}, onNotAfter() {} },
        ...(lifecycle === undefined ? {} : { lifecycle }),
      },
    ),
  )
  const opened = opening.move()
  return {
    indexer,
    url: `http://127.0.0.1:${indexer.address.port}`,
    node,
    gateway,
    subscribe: (name) => subscribeIndexer(gateway, name),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Creates a subscription that may query. Resolves when the gateway's snapshot has it. */
export async function subscribeIndexer(gateway: Gateway, name: string): Promise<IndexerAccount> {
  const { on } = gateway
  await addCustomer(on, { name, contact: '' })
  const { token, credential, subscription } = await createSubscription(on, {
    customer: name,
    name,
    plan: 'professional',
    products: ['bundle', 'indexer'],
    overrides: {},
    validUntil: null,
  })
  if (token === undefined || credential === undefined) throw new Error('no credentials were made')
  await until('the snapshot has the subscription', () => {
    const known = gateway.access.snapshot()
    return (
      known.subscription(subscription.id) !== undefined &&
      known.indexerCredential(credential.record.username) !== undefined
    )
  })
  const basic = Buffer.from(`${credential.record.username}:${credential.password}`).toString('base64')
  return {
    token: token.secret,
    username: credential.record.username,
    password: credential.password,
    headers: { authorization: `Basic ${basic}`, 'x-token': token.secret },
  }
}
