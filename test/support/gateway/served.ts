import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { sluiceHere } from '../cli/in-process.ts'
import { temporaryFolder } from '../cli/run.ts'
import { type Served, serve } from '../process/serve.ts'

export type ServedGateway = AsyncDisposable & {
  readonly running: Served
  readonly url: string
  readonly ws: string
  readonly grpc: string
  readonly metrics: string
  readonly token: string
  readonly configFile: string
  /** The operator's command line on the same state. */
  sluice(...words: string[]): Promise<{ code: number | null; stdout: string; stderr: string }>
}

/** Everything that holds for one thread has to hold for two. */
const WORKERS = 2

/** Without limits that would be in the way of a load. */
export const FREE_PLAN = `
[plans.free]
unitsPerSecond = "unlimited"
sendsPerSecond = "unlimited"
wsConnections = "unlimited"
wsSubscriptions = "unlimited"
grpcStreams = "unlimited"
grpcAccountsPerStream = "unlimited"
`

/** A `sluice serve` process over the given nodes, with one subscription without limits. */
export async function startServedGateway(
  nodes: readonly { readonly name: string; readonly rpc?: string; readonly ws?: string; readonly grpc?: string }[],
  given: {
    config?: string
    env?: Record<string, string>
    tls?: { cert: string; key: string }
    /** Threads of the gateway. */
    workers?: number
    /** The launcher, for figures that its settings of Node affect; by default Node itself with the source. */
    program?: string
    /** Its customer, and the beginning of the name of its subscription: several gateways may share a store. */
    customer?: string
  } = {},
): Promise<ServedGateway> {
  await using opening = new AsyncDisposableStack()
  const home = opening.use(await temporaryFolder())
  const configFile = home.file('sluice.toml')
  const positions = nodes.map((node) => `[[upstreams.nodes]]\n${tableOf(node)}`)
  writeFileSync(configFile, `${given.config ?? ''}\n${positions.join('\n')}\n${FREE_PLAN}`)
  const sluice = (...words: string[]) =>
    sluiceHere([...words, '--state', home.file('.sluice'), '--config', configFile], given.env ?? {})
  const { customer = 'acme' } = given
  assert.equal((await sluice('customer', 'add', customer)).code, 0)
  const words = ['--customer', customer, '--plan', 'free', '--print-token']
  const made = await sluice('sub', 'create', `${customer}-prod`, ...words)
  assert.equal(made.code, 0, made.stderr)
  const running = opening.use(
    serve({
      cwd: home.path,
      args: ['--no-demo'],
      workers: given.workers ?? WORKERS,
      ...(given.program === undefined ? {} : { program: given.program }),
      env: { SLUICE_UPSTREAMS__ALLOW_PRIVATE: 'true', ...given.env },
    }),
  )
  await running.line(/"msg":"started"/)
  const opened = opening.move()
  const [http, ws] = given.tls === undefined ? ['http', 'ws'] : ['https', 'wss']
  return {
    running,
    url: `${http}://${await running.address('rpc')}`,
    ws: `${ws}://${await running.address('ws')}`,
    grpc: await running.address('grpc'),
    metrics: `http://${await running.address('metrics')}`,
    token: /slc_[0-9A-Za-z]{38}/.exec(made.stdout)?.[0] ?? '',
    configFile,
    sluice,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function tableOf(values: object): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`)
    .join('')
}
