import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../../src/platform/process/test-wait.ts'
import { readFences } from '../../markdown.ts'
import { freePort } from '../machine/free-ports.ts'
import { serve } from '../process/serve.ts'
import { sluiceHere } from './in-process.ts'
import { temporaryFolder } from './run.ts'

const ROOT = join(import.meta.dirname, '../../..')
const RUNS_MS_MAX = 90_000

/** A line or program of a page. */
export type Snippet = { readonly name: string; readonly kind: 'sh' | 'js'; readonly text: string }

export type CustomerPage = {
  readonly path: string
  /** Packages of its `npm install` lines, with the version. */
  readonly packages: ReadonlyMap<string, string>
  /** In order: a later one may use the files of an earlier one. */
  readonly snippets: readonly Snippet[]
}

export function readCustomerPages(): CustomerPage[] {
  return globSync('docs/customers/*.md', { cwd: ROOT })
    .toSorted()
    .map((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8')
      const snippets = readFences(text)
        .filter(({ info }) => info === 'sh run' || info === 'js run')
        .map((fence): Snippet => {
          const kind = fence.info === 'js run' ? 'js' : 'sh'
          return { name: `${path}:${fence.line}`, kind, text: fence.text }
        })
      return { path, packages: packagesOf(text), snippets }
    })
}

function packagesOf(text: string): Map<string, string> {
  const installs = [...text.matchAll(/npm install ([^`\n]+)/g)].flatMap(([, words = '']) => words.trim().split(' '))
  return new Map(
    installs.map((word) => {
      const at = word.lastIndexOf('@')
      assert.ok(at > 0, `npm install ${word} names no version`)
      return [word.slice(0, at), word.slice(at + 1)]
    }),
  )
}

export type CustomerService = AsyncDisposable & {
  /** The variables of the customer's handover card. */
  readonly env: Readonly<Record<string, string>>
  /** The UDP port to which shreds are sent; the pages have 20001. */
  readonly shredPort: number
}

/** A whole `sluice serve` with its embedded chain, and a customer with all products. The variables come from the card. */
export async function startCustomerService(): Promise<CustomerService> {
  await using opening = new AsyncDisposableStack()
  const home = opening.use(await temporaryFolder())
  const running = opening.use(
    serve({
      cwd: home.path,
      args: ['--no-demo'],
      env: {
        SLUICE_LOCALNET__ENABLED: 'true',
        SLUICE_INDEXER__ENABLED: 'true',
        SLUICE_EXECUTION__ENABLED: 'true',
      },
    }),
  )
  await running.line(/"msg":"started"/)
  const shredPort = await freePort()
  const sluice = async (...words: string[]) => {
    const done = await sluiceHere([...words, '--state', home.file('.sluice')], {})
    assert.equal(done.code, 0, done.stderr)
    return done.stdout
  }
  await sluice('customer', 'add', 'acme')
  const card = await sluice(
    ...[
      'sub',
      'create',
      'acme-prod',
      '--customer',
      'acme',
      '--plan',
      'build',
      '--products',
      'bundle,indexer,shreds-raw',
    ],
    ...['--destination', `127.0.0.1:${shredPort}`, '--vouched', '--print-token'],
  )
  const env = Object.fromEntries([...card.matchAll(/^ +export (\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]))
  await until('the chain moves and its calls are served', () => hasBlocks(env), 60_000)
  const opened = opening.move()
  return { env, shredPort, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

async function hasBlocks(env: Readonly<Record<string, string>>): Promise<boolean> {
  const response = await fetch(env['SLUICE_RPC'] ?? '', {
    method: 'POST',
    headers: { 'x-token': env['SLUICE_TOKEN'] ?? '', 'content-type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":1,"method":"getBlockHeight"}',
  })
  return Number(((await response.json()) as { result?: number }).result) > 2
}

/** Runs a snippet in a folder as a customer would; returns what it printed. */
export async function runSnippet(
  { name, kind, text }: Snippet,
  { folder, service }: { readonly folder: string; readonly service: CustomerService },
): Promise<{ readonly code: number | null; readonly printed: string }> {
  const file = join(folder, kind === 'js' ? `${name.replaceAll(/\W/g, '-')}.mjs` : 'lines.sh')
  const written = text.replaceAll('20001', String(service.shredPort))
  writeFileSync(file, kind === 'js' ? written : `set -eu -o pipefail\n${written}`)
  const child = spawn(kind === 'js' ? process.execPath : 'bash', [file], {
    cwd: folder,
    // `node` in a line is the Node of this run.
    env: { PATH: `${join(process.execPath, '..')}:${process.env['PATH'] ?? ''}`, HOME: folder, ...service.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: RUNS_MS_MAX,
    killSignal: 'SIGKILL',
  })
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, printed }
}
