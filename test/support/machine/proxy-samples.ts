import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findInPath } from '../../../scripts/needs.ts'
import type { TestCert } from '../../../src/platform/net/test-cert.ts'
import { until } from '../../../src/platform/process/test-wait.ts'
import { isListening } from '../gateway/front-proxies.ts'
import { freePort } from './free-ports.ts'

export type FrontKind = 'nginx' | 'haproxy' | 'caddy'

/** Ports of Sluice's listeners in the samples. */
export const LISTENER_PORTS = {
  rpc: 8899,
  ws: 8900,
  grpc: 10010,
  sender: 8901,
  indexer: 8123,
  execution: 8443,
} as const
export type Server = keyof typeof LISTENER_PORTS

export type Front = AsyncDisposable & {
  /** The proxy's port for each listener. */
  readonly ports: Readonly<Record<Server, number>>
  /** The proxy's log so far. */
  log(): string
}

const SAMPLES = join(import.meta.dirname, '../../../ops/front')
const FILES = { nginx: 'nginx.conf', haproxy: 'haproxy.cfg', caddy: 'Caddyfile' } as const
const PUBLIC_ADDRESS = '203.0.113.10'

/** The shipped sample in a real proxy, with this machine's addresses and certificate. */
export async function startFrontSample(
  kind: FrontKind,
  behind: Readonly<Record<Server, number>>,
  cert: TestCert,
): Promise<Front> {
  await using opening = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-front-'))
  opening.defer(() => rmSync(folder, { recursive: true, force: true }))
  const ports = { ...LISTENER_PORTS } as Record<Server, number>
  for (const server of Object.keys(ports) as Server[]) ports[server] = await freePort()

  const file = join(folder, FILES[kind])
  writeFileSync(file, fitted(readFileSync(join(SAMPLES, FILES[kind]), 'utf8'), { folder, ports, behind }))
  mkdirSync(join(folder, 'tls'))
  const [chain, key] = [readFileSync(cert.cert), readFileSync(cert.key)]
  for (const [name, bytes] of [
    ['fullchain.pem', chain],
    ['privkey.pem', key],
    ['front.pem', Buffer.concat([chain, key])],
  ] as const)
    writeFileSync(join(folder, 'tls', name), bytes, { mode: 0o600 })

  const program = findInPath(kind) ?? kind
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const [check, run] = {
    nginx: [
      ['-t', '-c', file],
      ['-c', file, '-g', 'daemon off;'],
    ],
    haproxy: [
      ['-c', '-f', file],
      ['-db', '-f', file],
    ],
    caddy: [
      ['validate', '--config', file, '--adapter', 'caddyfile'],
      ['run', '--config', file, '--adapter', 'caddyfile'],
    ],
  }[kind] as [string[], string[]]
  execFileSync(program, check, { env, stdio: 'pipe' })
  const child = spawn(program, run, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const exited = once(child, 'exit')
  opening.defer(async () => {
    child.kill('SIGTERM')
    await exited
  })
  for (const port of Object.values(ports)) {
    await until(`${kind} listens`, () => {
      if (child.exitCode !== null) throw new Error(`${kind} ended: ${output}`)
      return isListening(port)
    })
  }
  const opened = opening.move()
  return {
    ports,
    log: () => `${output}${logFiles(folder)}`,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** nginx logs to files, the others to standard output. */
function logFiles(folder: string): string {
  return readdirSync(join(folder, 'log'))
    .map((name) => readFileSync(join(folder, 'log', name), 'utf8'))
    .join('')
}

function fitted(
  sample: string,
  {
    folder,
    ports,
    behind,
  }: { folder: string; ports: Record<Server, number>; behind: Readonly<Record<Server, number>> },
): string {
  let text = sample
    .replaceAll('/etc/sluice/tls', join(folder, 'tls'))
    .replaceAll('/var/log/nginx', join(folder, 'log'))
    .replace('/run/nginx.pid', join(folder, 'nginx.pid'))
    .replace('http {\n', `http {\n${temporaryPaths(folder)}`)
    .replaceAll('rpc.example.net', 'localhost')
    // The user of the tests may have a lower descriptor limit than a service.
    .replace('maxconn 16384', 'maxconn 1000')
    .replace('worker_connections 16384', 'worker_connections 1000')
  mkdirSync(join(folder, 'log'))
  for (const [server, port] of Object.entries(LISTENER_PORTS) as [Server, number][]) {
    text = text
      .replaceAll(`${PUBLIC_ADDRESS}:${port}`, `127.0.0.1:${ports[server]}`)
      .replaceAll(`localhost:${port} {`, `localhost:${ports[server]} {`)
      .replaceAll(new RegExp(`127\\.0\\.0\\.1:${port}\\b`, 'g'), `127.0.0.1:${behind[server]}`)
  }
  return text.replaceAll(PUBLIC_ADDRESS, '127.0.0.1')
}

/** By default nginx stores large bodies in folders that only root can create. */
function temporaryPaths(folder: string): string {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return kinds.map((kind) => `  ${kind}_temp_path ${join(folder, kind)};\n`).join('')
}
