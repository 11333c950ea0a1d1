import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { until } from '../src/platform/process/test-wait.ts'
import { readFences } from './markdown.ts'
import { temporaryFolder } from './support/cli.ts'
import { sluiceHere } from './support/cli-in-process.ts'
import { type Served, serve } from './support/serve.ts'

/** Every line and program of the pages for customers, as written, against a whole `sluice serve` with its embedded chain. */

const ROOT = join(import.meta.dirname, '..')
const RUNS_MS_MAX = 90_000

const pages = globSync('docs/customers/*.md', { cwd: ROOT }).toSorted()
const snippets = pages.flatMap((page) =>
  readFences(readFileSync(join(ROOT, page), 'utf8'))
    .filter(({ info }) => info === 'sh run' || info === 'js run')
    .map(({ info, text, line }) => ({ name: `${page}:${line}`, kind: info.slice(0, 2), text })),
)

describe('the pages for customers', () => {
  let running: Served
  let home: Awaited<ReturnType<typeof temporaryFolder>>
  let env: Record<string, string>

  before(async () => {
    home = await temporaryFolder()
    const state = home.file('.sluice')
    const sluice = async (...words: string[]) => {
      const done = await sluiceHere([...words, '--state', state], {})
      assert.equal(done.code, 0, done.stderr)
      return done.stdout
    }
    await sluice('customer', 'add', 'acme')
    const card = await sluice(
      ...['sub', 'create', 'acme-prod', '--customer', 'acme', '--plan', 'build'],
      ...['--products', 'bundle,indexer', '--print-token'],
    )
    const [, user = '', password = ''] = /user +(\S+)\s+password (\S+)/.exec(card) ?? []
    running = serve({
      cwd: home.path,
      args: ['--no-demo'],
      env: {
        SLUICE_LOCALNET__ENABLED: 'true',
        SLUICE_INDEXER__ENABLED: 'true',
        SLUICE_EXECUTION__ENABLED: 'true',
      },
    })
    await running.line(/"msg":"started"/)
    const at = async (server: string, scheme: string) => `${scheme}://${await running.address(server)}`
    env = {
      SLUICE_RPC: await at('rpc', 'http'),
      SLUICE_WS: await at('ws', 'ws'),
      SLUICE_GRPC: await at('grpc', 'http'),
      SLUICE_SEND: await at('sender', 'http'),
      SLUICE_SQL: await at('indexer', 'http'),
      SLUICE_SQL_USER: user,
      SLUICE_SQL_PASSWORD: password,
      SLUICE_STREAM: await at('execution', 'http'),
      SLUICE_TOKEN: /slc_[0-9A-Za-z]{38}/.exec(card)?.[0] ?? '',
    }
    symlinkSync(join(ROOT, 'node_modules'), home.file('node_modules'))
    await until(
      'the chain moves and its calls are served',
      async () => {
        const response = await fetch(env['SLUICE_RPC'] as string, {
          method: 'POST',
          headers: { 'x-token': env['SLUICE_TOKEN'] as string, 'content-type': 'application/json' },
          body: '{"jsonrpc":"2.0","id":1,"method":"getBlockHeight"}',
        })
        return Number(((await response.json()) as { result?: number }).result) > 2
      },
      60_000,
    )
  })
  after(async () => {
    await running[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
  })

  test('there are snippets for every product', () => {
    assert.equal(pages.length, 6)
    assert.ok(snippets.length >= 15, `${snippets.length}`)
  })

  test('a sluice in the same shell does not read the variables of a customer as configuration', async () => {
    const readme = readFileSync(join(ROOT, 'docs/customers/README.md'), 'utf8')
    const named = [...readme.matchAll(/^export (SLUICE_\w+)=/gm)].map(([, name]) => name)
    assert.deepEqual(new Set(named), new Set(Object.keys(env)))
    const done = await sluiceHere(['config', 'check'], env)
    assert.equal(done.code, 0, done.stderr)
  })

  for (const { name, kind, text } of snippets) {
    test(`${name} works as written`, async () => {
      const file = home.file(kind === 'js' ? `${name.replaceAll(/\W/g, '-')}.mjs` : 'lines.sh')
      writeFileSync(file, kind === 'js' ? text : `set -eu -o pipefail\n${text}`)
      const child = spawn(kind === 'js' ? process.execPath : 'bash', [file], {
        cwd: home.path,
        env: { PATH: process.env['PATH'] ?? '', HOME: home.path, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: RUNS_MS_MAX,
        killSignal: 'SIGKILL',
      })
      let message = ''
      child.stdout.on('data', (chunk: Buffer) => (message += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => (message += chunk.toString()))
      const [code] = (await once(child, 'close')) as [number | null]
      assert.equal(code, 0, message)
      assert.ok(message.trim() !== '' || text.includes('-sfO'), 'it printed nothing')
    })
  }
})
