import assert from 'node:assert/strict'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FaultProxy, startFaultProxy } from '../faults/fault-proxy.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { FREE_PLAN } from '../support/gateway/served.ts'
import { freePorts } from '../support/machine/free-ports.ts'
import { type Served, serve } from '../support/process/serve.ts'
import { type SoakNode, startSoakNode } from './node.ts'

const LISTENERS = ['rpc', 'ws', 'grpc', 'execution', 'metrics'] as const
export type Addresses = Readonly<Record<(typeof LISTENERS)[number], string>>

/** Two nodes with the same chain, each behind a fault proxy per listener, and a `sluice serve` process in front of them. */
export type SoakService = AsyncDisposable & {
  readonly at: Addresses
  readonly token: string
  readonly nodes: readonly SoakNode[]
  /** The fault proxies of each node. */
  readonly proxies: readonly Readonly<Record<'rpc' | 'ws' | 'grpc', FaultProxy>>[]
  readonly pid: number
  /** The number of starts; streams and cursors of an earlier epoch cannot be compared with those of this one. */
  readonly epoch: number
  restart(how: 'SIGTERM' | 'SIGKILL', onGone?: () => void): Promise<void>
  /** Writes an invalid configuration, requests a reload and waits until it is refused. */
  reloadBadConfig(): Promise<void>
  rotateToken(): Promise<void>
  stop(): Promise<void>
  /** Units recorded for the customer's calls. */
  booked(): Promise<number>
}

const GRACE = '10m'
const RELOAD_MS_MAX = 20_000
/** The launcher that operators use: its settings for Node and the allocator are part of the test. */
const LAUNCHER = join(import.meta.dirname, '../../sluice')
const REFUSED_RELOAD = 'reload failed; nothing changed'

export async function startSoakService(): Promise<SoakService> {
  await using opening = new AsyncDisposableStack()
  const home = opening.use(await temporaryFolder())
  const nodes: SoakNode[] = []
  const proxies: Record<'rpc' | 'ws' | 'grpc', FaultProxy>[] = []
  for (let at = 0; at < 2; at++) {
    const node = opening.use(await startSoakNode())
    nodes.push(node)
    const proxy = async (port: number) => opening.use(await startFaultProxy({ target: { host: '127.0.0.1', port } }))
    proxies.push({
      rpc: await proxy(node.ports.rpc),
      ws: await proxy(node.ports.ws),
      grpc: await proxy(node.ports.grpc),
    })
  }
  const upstreams = proxies.map(
    ({ rpc, ws, grpc }, at) =>
      `[[upstreams.nodes]]\nname = "n${at}"\nrpc = "http://127.0.0.1:${rpc.port}"\nws = "ws://127.0.0.1:${ws.port}"\ngrpc = "http://127.0.0.1:${grpc.port}"\n`,
  )
  const config = `${upstreams.join('\n')}${FREE_PLAN}`
  const configFile = home.file('sluice.toml')
  /** Replaces the file atomically, as an editor does. */
  const putConfig = (text: string): void => {
    writeFileSync(`${configFile}.new`, text)
    renameSync(`${configFile}.new`, configFile)
  }
  putConfig(config)
  const ports = await freePorts(LISTENERS.length)
  const at = Object.fromEntries(LISTENERS.map((server, n) => [server, `127.0.0.1:${ports[n]}`])) as Addresses
  const env = {
    SLUICE_UPSTREAMS__ALLOW_PRIVATE: 'true',
    SLUICE_BUNDLE__RPC__LISTEN: at.rpc,
    SLUICE_BUNDLE__WS__LISTEN: at.ws,
    SLUICE_BUNDLE__GRPC__LISTEN: at.grpc,
    SLUICE_EXECUTION__LISTEN: at.execution,
    SLUICE_EXECUTION__ENABLED: 'true',
    SLUICE_EXECUTION__SIMULATED: 'true',
    // Full within a minute, so that its planned growth does not look like a leak.
    SLUICE_EXECUTION__RESUME__BYTES_MAX: String(2 ** 21),
    SLUICE_METRICS__LISTEN: at.metrics,
  }
  const sluice = async (...words: string[]): Promise<string> => {
    const done = await sluiceHere([...words, '--state', home.file('.sluice'), '--config', configFile], env)
    assert.equal(done.code, 0, `sluice ${words.join(' ')}: ${done.stderr}`)
    return done.stdout
  }
  await sluice('customer', 'add', 'acme')
  let token = tokenIn(
    await sluice('sub', 'create', 'acme-prod', '--customer', 'acme', '--plan', 'free', '--print-token'),
  )
  let epoch = 0
  let running: Served = await begin()

  const refusals = (): number => running.stdout().split(REFUSED_RELOAD).length
  async function begin(): Promise<Served> {
    epoch += 1
    const served = serve({ program: LAUNCHER, cwd: home.path, args: ['--no-demo'], env })
    await served.line(/"msg":"started"/)
    return served
  }

  opening.defer(() => running[Symbol.asyncDispose]())
  const opened = opening.move()
  return {
    at,
    nodes,
    proxies,
    get token() {
      return token
    },
    get pid() {
      return running.child.pid as number
    },
    get epoch() {
      return epoch
    },
    async restart(how, onGone) {
      const code = await running.stop(how)
      onGone?.()
      if (how === 'SIGTERM') assert.equal(code, 0, `exit code after SIGTERM is ${code}\n${running.stderr()}`)
      running = await begin()
    },
    async reloadBadConfig() {
      putConfig('[bundle\n')
      const before = refusals()
      running.child.kill('SIGHUP')
      await until('the invalid file is refused', () => refusals() > before, RELOAD_MS_MAX)
      putConfig(config)
    },
    async rotateToken() {
      token = tokenIn(await sluice('token', 'rotate', 'acme-prod', '--grace', GRACE, '--yes', '--print-token'))
    },
    async stop() {
      assert.equal(await running.stop('SIGTERM'), 0, running.stderr())
    },
    async booked() {
      const rows = JSON.parse(await sluice('usage', '--sub', 'acme-prod', '-o', 'json')) as {
        interface: string
        units: number
      }[]
      return rows.filter((row) => row.interface === 'rpc').reduce((sum, { units }) => sum + units, 0)
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function tokenIn(text: string): string {
  const token = /slc_[0-9A-Za-z]{38}/.exec(text)?.[0]
  assert.ok(token !== undefined, 'no token was printed')
  return token
}
