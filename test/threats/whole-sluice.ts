import assert from 'node:assert/strict'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type ServedGateway, startServedGateway } from '../support/gateway/served.ts'

/** A customer of the bundle and the indexer. */
export type SluiceCustomer = {
  readonly token: string
  /** Token and database login, as headers. */
  readonly indexer: Readonly<Record<string, string>>
}

/** `sluice serve` with every service enabled, over a node whose responses the test sets. */
export type RunningSluice = AsyncDisposable & {
  readonly node: FakeNode
  readonly gateway: ServedGateway
  /** Address of every HTTP server. */
  readonly servers: Readonly<Record<'rpc' | 'sender' | 'execution' | 'indexer' | 'operator', string>>
  subscribe(name: string): Promise<SluiceCustomer>
}

/** The node ends every gRPC call with this message; the indexer, which retries, logs it. */
export async function startSluice({
  nodeMessage,
  env = {},
}: {
  nodeMessage: string
  env?: Record<string, string>
}): Promise<RunningSluice> {
  await using opening = new AsyncDisposableStack()
  const node = opening.use(await startFakeNode())
  node.onGrpcCall = (call) => call.end({ code: 12, message: nodeMessage })
  const gateway = opening.use(
    await startServedGateway([{ name: 'a', rpc: node.rpc, ws: node.ws, grpc: node.grpc }], {
      config: '[log]\nlevel = "debug"\n',
      env: {
        SLUICE_EXECUTION__ENABLED: 'true',
        SLUICE_EXECUTION__SIMULATED: 'true',
        SLUICE_INDEXER__ENABLED: 'true',
        ...env,
      },
    }),
  )
  const { running } = gateway
  const at = async (service: string) => `http://${await running.address(service)}`
  const servers = {
    rpc: gateway.url,
    sender: await at('sender'),
    execution: await at('execution'),
    indexer: await at('indexer'),
    operator: gateway.metrics,
  }
  const opened = opening.move()
  return {
    node,
    gateway,
    servers,
    async subscribe(name) {
      const words = ['--customer', 'acme', '--plan', 'free', '--products', 'bundle,indexer', '--print-token', '--json']
      const { code, stdout, stderr } = await gateway.sluice('sub', 'create', name, ...words)
      assert.equal(code, 0, stderr)
      const token = /slc_[0-9A-Za-z]{38}/.exec(stdout)?.[0] ?? ''
      const { indexer } = JSON.parse(stdout) as { indexer: { username: string; password: string } }
      const basic = Buffer.from(`${indexer.username}:${indexer.password}`).toString('base64')
      const headers = { 'x-token': token }
      await until('the subscription is known', async () => {
        return (await fetch(`${servers.rpc}/v1/whoami`, { headers })).status === 200
      })
      return { token, indexer: { ...headers, authorization: `Basic ${basic}` } }
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
