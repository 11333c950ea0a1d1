import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { until } from '../../../src/platform/process/test-wait.ts'
import { createSigningKey } from '../../../src/solana/crypto/ed25519.ts'
import { tpuCertificate } from '../../../src/solana/crypto/tpu-certificate.ts'

export type PeerKind = 'deno' | 'bun'
export type PeerEvent = {
  readonly event?: string
  readonly port?: number
  readonly code?: number
  readonly reason?: string
  readonly certificate?: string
  readonly streams?: number
  readonly distinct?: number
  readonly bytes?: number
  readonly times?: readonly (readonly [number, number])[]
}

export type QuicPeer = AsyncDisposable & {
  readonly port: number
  readonly publicKey: Uint8Array
  readonly events: readonly PeerEvent[]
  write(word: 'close'): void
  /** The streams received completely so far. */
  report(): Promise<{ streams: number; distinct: number; bytes: number }>
  /** When each stream began to arrive, in unix milliseconds, by its first four bytes; reported only by Deno. */
  times(): Promise<ReadonlyMap<number, number>>
  kill(): Promise<void>
}

const root = join(import.meta.dirname, '../../..')
const arch = process.arch === 'arm64' ? { deno: 'arm64', bun: 'aarch64' } : { deno: 'x64', bun: 'x64' }
const PROGRAMS: Record<PeerKind, string> = {
  deno: join(root, `test/node_modules/@deno/linux-${arch.deno}-glibc/deno`),
  bun: join(root, `test/node_modules/@oven/bun-linux-${arch.bun}/bin/bun`),
}
const SERVER_KEY = createSigningKey(new Uint8Array(32).fill(42))

export const hasPeer = (kind: PeerKind) => existsSync(PROGRAMS[kind])

/** A third-party QUIC server in its own process, with a certificate like a validator's. */
export async function startQuicPeer(kind: PeerKind, options: object = {}): Promise<QuicPeer> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-quic-'))
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  writeFileSync(cert, new X509Certificate(tpuCertificate(SERVER_KEY.publicKey)).toString())
  writeFileSync(key, SERVER_KEY.privateKey.export({ format: 'pem', type: 'pkcs8' }))
  const script = join(import.meta.dirname, 'quic-peers', `${kind}-peer.mjs`)
  const run =
    kind === 'deno'
      ? ['run', '--quiet', '--no-config', '--unstable-net', '--allow-net', '--allow-read', script]
      : [script]
  const child: ChildProcess = spawn(PROGRAMS[kind], [...run, cert, key, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, DENO_DIR: folder, DENO_NO_UPDATE_CHECK: '1' },
  })
  const ended = once(child, 'close')
  const events: PeerEvent[] = []
  if (child.stdout === null || child.stdin === null) throw new Error('the peer has no pipes')
  const { stdin } = child
  createInterface({ input: child.stdout }).on('line', (line) => events.push(JSON.parse(line) as PeerEvent))
  const kill = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
  }
  try {
    await until(`the ${kind} peer listens`, () => events.some(({ port }) => port !== undefined), 30_000)
  } catch (error) {
    await kill()
    throw error
  }
  const ask = async (word: string) => {
    const before = events.length
    stdin.write(`${word}\n`)
    const find = () => events.slice(before).find(({ event }) => event === word)
    await until(`the peer responds to ${word}`, () => find() !== undefined)
    return find() ?? {}
  }
  return {
    port: events.find(({ port }) => port !== undefined)?.port ?? 0,
    publicKey: SERVER_KEY.publicKey,
    events,
    write: (word) => void stdin.write(`${word}\n`),
    async report() {
      const { streams = 0, distinct = 0, bytes = 0 } = await ask('report')
      return { streams, distinct, bytes }
    },
    times: async () => new Map((await ask('times')).times),
    kill,
    async [Symbol.asyncDispose]() {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A self-signed certificate that a strict server trusts as its own authority. */
export function makeClientCertificate(): {
  readonly der: Uint8Array
  readonly pem: string
  readonly privateKey: ReturnType<typeof createPrivateKey>
} {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-quic-'))
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  try {
    execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', key], { stdio: 'ignore' })
    execFileSync('openssl', ['req', '-x509', '-key', key, '-subj', '/CN=client', '-days', '30', '-out', cert], {
      stdio: 'ignore',
    })
    const pem = readFileSync(cert, 'utf8')
    return { pem, der: new Uint8Array(new X509Certificate(pem).raw), privateKey: createPrivateKey(readFileSync(key)) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
