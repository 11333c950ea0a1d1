import { spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findInPath } from '../../../scripts/needs.ts'
import { createSigningKey } from '../../../src/solana/crypto/ed25519.ts'
import { tpuCertificate } from '../../../src/solana/crypto/tpu-certificate.ts'
import { freePort } from '../machine/free-ports.ts'

const SERVER_KEY = createSigningKey(new Uint8Array(32).fill(43))
const PROGRAM = findInPath('caddy')

export const hasCaddy = PROGRAM !== undefined

/** It serves only HTTP/3; as a QUIC server it acknowledges streams and never reads them. */
export const CADDY = { alpn: 'h3', serverName: 'localhost' } as const

export type CaddyPeer = AsyncDisposable & {
  readonly port: number
  readonly publicKey: Uint8Array
  kill(): Promise<void>
}

/**
 * Caddy as a QUIC server on quic-go and Go's TLS, in its own process and with a certificate like a validator's. It requires a client
 * certificate with proof of possession of its key.
 */
export async function startCaddyPeer(): Promise<CaddyPeer> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-quic-'))
  const [cert, key, config] = [join(folder, 'cert.pem'), join(folder, 'key.pem'), join(folder, 'caddy.json')]
  writeFileSync(cert, new X509Certificate(tpuCertificate(SERVER_KEY.publicKey)).toString())
  writeFileSync(key, SERVER_KEY.privateKey.export({ format: 'pem', type: 'pkcs8' }))
  // Caddy cannot use port 0 for both of its sockets.
  const port = await freePort()
  const server = {
    listen: [`127.0.0.1:${port}`],
    protocols: ['h1', 'h2', 'h3'],
    automatic_https: { disable: true },
    tls_connection_policies: [{ client_authentication: { mode: 'require' } }],
    routes: [{ handle: [{ handler: 'static_response', status_code: 200 }] }],
  }
  const apps = {
    http: { servers: { quic: server } },
    tls: { certificates: { load_files: [{ certificate: cert, key }] } },
  }
  writeFileSync(config, JSON.stringify({ admin: { disabled: true, config: { persist: false } }, apps }))
  const child = spawn(PROGRAM ?? 'caddy', ['run', '--config', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  })
  const ended = once(child, 'close')
  let printed = ''
  const ready = new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk) => {
      printed += String(chunk)
      if (printed.includes('serving initial configuration')) resolve()
    })
    void ended.then(() => reject(new Error(`caddy ended:\n${printed}`)))
  })
  const kill = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
  }
  await ready
  return {
    port,
    publicKey: SERVER_KEY.publicKey,
    kill,
    async [Symbol.asyncDispose]() {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
