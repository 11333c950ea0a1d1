import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { until } from '../../../src/platform/process/test-wait.ts'
import { sluiceHere } from '../../support/cli/in-process.ts'
import { temporaryFolder } from '../../support/cli/run.ts'
import { FREE_PLAN } from '../../support/gateway/served.ts'
import { type Served, serve } from '../../support/process/serve.ts'

const LISTENERS = ['rpc', 'ws', 'grpc', 'sender', 'indexer', 'execution', 'localnet rpc'] as const

const SLOW_NODE = /"msg":"(upstream is failing|degraded)"/

/** A `sluice serve` with all products on its own chain, which begins with the old consensus and slots of 400 ms. */
export type ServedChain = AsyncDisposable & {
  readonly at: Readonly<Record<(typeof LISTENERS)[number], string>>
  readonly token: string
  /** Headers of a customer of the SQL endpoint. */
  readonly sqlHeaders: Readonly<Record<string, string>>
  /** The operator's command line; fails unless the command succeeds. */
  run(...words: string[]): Promise<string>
  /** A call at the chain itself, which costs no units. */
  chain<Result>(method: string, ...params: unknown[]): Promise<Result>
  /** Lines of the log with an error or a warning since the start, without those about a node that was slow to respond: the machine may be busy. */
  complaints(): readonly string[]
  stop(): Promise<number | null>
}

export async function startServedChain(): Promise<ServedChain> {
  await using opening = new AsyncDisposableStack()
  const home = opening.use(await temporaryFolder())
  const configFile = home.file('sluice.toml')
  writeFileSync(configFile, `${FREE_PLAN}[products.shreds-decoded]\nstatus = "preview"\n`)
  const commandEnv = { SLUICE_SHREDS__DESTINATIONS__ALLOW_LOOPBACK: 'true' }
  const run = async (...words: string[]): Promise<string> => {
    const done = await sluiceHere([...words, '--state', home.file('.sluice'), '--config', configFile], commandEnv)
    assert.equal(done.code, 0, `sluice ${words.join(' ')}: ${done.stderr}`)
    return done.stdout
  }
  await run('customer', 'add', 'acme')
  const products = 'bundle,indexer,shreds-raw,shreds-decoded'
  const made = await run(
    ...['sub', 'create', 'acme-prod', '--customer', 'acme', '--plan', 'free'],
    ...['--products', products, '--print-token', '--json'],
  )
  const { token } = JSON.parse(made) as { token: string }
  const granted = await run('indexer', 'rotate', 'acme-prod', '--yes', '--print-token', '--json')
  const { username, password } = JSON.parse(granted) as { username: string; password: string }
  const login = Buffer.from(`${username}:${password}`).toString('base64')

  const running: Served = opening.use(
    serve({
      cwd: home.path,
      args: ['--no-demo'],
      workers: 2,
      env: {
        SLUICE_LOCALNET__ENABLED: 'true',
        SLUICE_LOCALNET__CONSENSUS: 'tower',
        SLUICE_LOCALNET__SLOT_MS: '400',
        SLUICE_LOCALNET__TRAFFIC__TPS: '20',
        // All blocks are compared at the end.
        SLUICE_LOCALNET__LIMITS__LEDGER_BYTES_MAX: String(2 ** 30),
        ...commandEnv,
        SLUICE_INDEXER__ENABLED: 'true',
        SLUICE_INDEXER__INCLUDE_VOTES: 'true',
        SLUICE_EXECUTION__ENABLED: 'true',
        SLUICE_EXECUTION__SIMULATED: 'true',
      },
    }),
  )
  await running.line(/"msg":"started"/)
  const found = await Promise.all(LISTENERS.map(async (name) => [name, await running.address(name)]))
  const at = Object.fromEntries(found) as ServedChain['at']
  const sqlHeaders = { authorization: `Basic ${login}`, 'x-token': token }
  await until('the customer may query', async () => {
    const response = await fetch(`http://${at.indexer}/?query=select%201`, { headers: sqlHeaders })
    return response.ok
  })
  const beforeLoad = running.stdout().length
  const opened = opening.move()
  return {
    at,
    token,
    sqlHeaders,
    run,
    async chain<Result>(method: string, ...params: unknown[]) {
      const response = await fetch(`http://${at['localnet rpc']}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      })
      const { result, error } = (await response.json()) as { result: Result; error?: object }
      assert.equal(error, undefined, `${method}: ${JSON.stringify(error)}`)
      return result
    },
    complaints: () =>
      running
        .stdout()
        .slice(beforeLoad)
        .split('\n')
        .filter((line) => /"level":"(warn|error|fatal)"/.test(line) && !SLOW_NODE.test(line)),
    stop: () => running.stop(),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
