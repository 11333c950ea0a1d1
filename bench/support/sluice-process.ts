import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { sluice } from '../../test/support/cli/run.ts'
import { type PinnedProcess, startPinned } from './pinned-process.ts'

export type SluiceProcess = PinnedProcess & {
  readonly token: string
  /** The database login, where the products include the indexer. */
  readonly login: { readonly username: string; readonly password: string } | undefined
  readonly state: string
  /** The port of a listener. */
  port(service: string): number
}

export type SluiceProcessOptions = {
  readonly command: 'serve' | 'gateway'
  /** An empty folder for its configuration and state. */
  readonly folder: string
  readonly cores: number | string
  readonly config: string
  readonly products?: string
  /** Another checkout of the project, to compare with. */
  readonly checkout?: string
}

const ROOT = join(import.meta.dirname, '../..')

const UNLIMITED = ['units-per-second', 'sends-per-second', 'ws-connections', 'ws-subscriptions', 'grpc-streams']

/** Sluice as an operator runs it, with one customer without limits. */
export async function startSluiceProcess(options: SluiceProcessOptions): Promise<SluiceProcess> {
  const { command, folder, cores, config, products = 'bundle', checkout = ROOT } = options
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'sluice.toml'), config)
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await sluice(words, { cwd: folder, cli: join(checkout, 'src/cli/main.ts') })
    if (code !== 0) throw new Error(`sluice ${words.join(' ')}: ${stderr}`)
    return stdout
  }
  await run('customer', 'add', 'acme')
  const limits = UNLIMITED.flatMap((limit) => [`--${limit}`, 'unlimited'])
  const made = JSON.parse(
    await run(
      'sub',
      'create',
      'bench',
      '--customer',
      'acme',
      '--products',
      products,
      ...limits,
      '--print-token',
      '--json',
    ),
  ) as { token: string; indexer?: SluiceProcess['login'] }
  const launcher = join(checkout, 'sluice')
  const started = startPinned(cores, 'env', ['-C', folder, launcher, command, '--log', 'json'])
  const ports = new Map<string, number>()
  for await (const line of createInterface({ input: started.child.stdout as NodeJS.ReadableStream })) {
    const { msg, service, address } = JSON.parse(line) as { msg: string; service?: string; address?: string }
    if (msg === 'listening' && service !== undefined) ports.set(service, Number(address?.split(':').at(-1)))
    if (msg === 'started') break
  }
  if (ports.size === 0) throw new Error(`sluice ${command} ended before it was started`)
  started.child.stdout?.resume()
  return {
    ...started,
    token: made.token,
    login: made.indexer,
    state: join(folder, '.sluice'),
    port: (service) => ports.get(service) ?? 0,
  }
}
