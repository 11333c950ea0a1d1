import { readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { freePort } from '../../test/support/machine/free-ports.ts'
import { type PinnedProcess, startPinned } from './pinned-process.ts'

export const BENCH_TOKEN = 'slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2'

/** nginx or haproxy from Debian with a configuration of `bench/reference`, pinned to a core. */
export async function startReferenceProxy(
  program: 'nginx' | 'haproxy',
  options: {
    readonly config: string
    readonly folder: string
    readonly core: number | string
    readonly upstreamPort: number
    /** Processes of nginx; 1 unless given. */
    readonly workers?: number
    /** A free one unless given. */
    readonly port?: number
    /** Further values of the configuration. */
    readonly values?: Readonly<Record<string, string>>
  },
): Promise<PinnedProcess & { readonly port: number; readonly token: string }> {
  const { config, folder, core, upstreamPort, workers = 1 } = options
  const port = options.port ?? (await freePort())
  const values: Record<string, string | number> = { folder, port, upstreamPort, token: BENCH_TOKEN, ...options.values }
  const text = await readFile(join(import.meta.dirname, '../reference', config), 'utf8')
  const file = join(folder, config)
  await writeFile(
    file,
    text
      .replaceAll(/\{\{(\w+)\}\}/g, (_all, key: string) => String(values[key]))
      .replace('worker_processes 1;', `worker_processes ${workers};`),
  )
  await writeFile(join(folder, 'tokens.map'), `${BENCH_TOKEN} 1\n`)
  const started = startPinned(core, program, program === 'nginx' ? ['-c', file] : ['-db', '-f', file])
  await listens(port)
  return { ...started, port, token: BENCH_TOKEN }
}

async function listens(port: number): Promise<void> {
  const endMs = performance.now() + 10_000
  while (performance.now() < endMs) {
    const isUp = await new Promise<boolean>((resolve) => {
      const socket = connect({ port, host: '127.0.0.1' })
      socket.on('connect', () => resolve(true))
      socket.on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (isUp) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`no listener on port ${port}`)
}
