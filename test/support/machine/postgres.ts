import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chown, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { freePort } from './free-ports.ts'

const run = promisify(execFile)

/** Debian's path of the server programs. */
const BIN = '/usr/lib/postgresql/15/bin'
/** The server refuses to run as root; Debian's package creates this user. */
const USER = 'postgres'
const READY_MS_MAX = 30_000
/** A cluster as initdb leaves it, without a password. Making one takes a second of CPU time, copying it a tenth. */
const TEMPLATE = new URL('../../../node_modules/.cache/sluice-tests/postgres-15', import.meta.url).pathname

export type PostgresTestOptions = {
  /** Enables fsync. The server is faster without it. */
  readonly durable?: boolean
  /** Without a password every loopback connection is trusted. */
  readonly password?: string
}

export type TestPostgres = AsyncDisposable & {
  readonly port: number
  /** The URL of the default database, for the store's options. */
  readonly url: string
  /** Creates another database and returns its URL. */
  createDatabase(name: string): Promise<string>
  /** Runs statements as the superuser. */
  query(database: string, sql: string): Promise<unknown[][]>
  stop(signal?: 'SIGINT' | 'SIGQUIT'): Promise<void>
  start(): Promise<void>
}

/** A temporary PostgreSQL cluster on a free loopback port. */
export async function startPostgres(options: PostgresTestOptions = {}): Promise<TestPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-postgres-'))
  const isRoot = process.getuid?.() === 0
  if (isRoot) await chown(folder, await idOf('-u'), await idOf('-g'))
  const asUser = (program: string, args: string[]): [string, string[]] => {
    const path = join(BIN, program)
    return isRoot ? ['setpriv', ['--reuid', USER, '--regid', USER, '--init-groups', path, ...args]] : [path, args]
  }
  const data = join(folder, 'data')
  const passwordFile = join(folder, 'password')
  const { password } = options
  if (password !== undefined) await writeFile(passwordFile, password)
  const trust = password === undefined ? ['-A', 'trust'] : ['-A', 'scram-sha-256', '--pwfile', passwordFile]
  const initdb = ['-D', data, '-U', 'sluice', ...trust, '-E', 'UTF8', '--no-locale', '--no-sync']
  const isCopied = password === undefined && (await copyFolder(TEMPLATE, data))
  if (!isCopied) await run(...asUser('initdb', initdb), { cwd: folder })
  if (!isCopied && password === undefined) await keepTemplate(data)
  const port = await freePort()
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    'max_connections=50',
    ...(options.durable === true ? [] : ['fsync=off', 'full_page_writes=off']),
  ]
  const urlOf = (database: string) => `postgres://sluice@127.0.0.1:${port}/${database}`
  let server: ChildProcess | undefined

  const connect = async <T>(database: string, work: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'sluice', password, database })
    client.on('error', () => {})
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }

  const cluster: TestPostgres = {
    port,
    url: urlOf('sluice'),
    async createDatabase(name) {
      await cluster.query('postgres', `CREATE DATABASE ${name}`)
      return urlOf(name)
    },
    query: (database, sql) =>
      connect(database, async (client) => {
        const results = [await client.query<unknown[]>({ text: sql, rowMode: 'array' })].flat()
        return results.at(-1)?.rows ?? []
      }),
    async start() {
      const [program, args] = asUser('postgres', ['-D', data, ...settings.flatMap((setting) => ['-c', setting])])
      server = spawn(program, args, { cwd: folder, stdio: 'ignore' })
      const untilMs = performance.now() + READY_MS_MAX
      for (;;) {
        try {
          return await connect('postgres', async () => {})
        } catch (error) {
          if (performance.now() > untilMs || server.exitCode !== null) throw error
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      }
    },
    async stop(signal = 'SIGINT') {
      const running = server
      server = undefined
      if (!running || running.exitCode !== null) return
      const ended = new Promise((resolve) => running.once('exit', resolve))
      running.kill(signal)
      await ended
    },
    async [Symbol.asyncDispose]() {
      await cluster.stop('SIGQUIT')
      await rm(folder, { recursive: true, force: true })
    },
  }
  await cluster.start()
  await cluster.createDatabase('sluice')
  return cluster
}

/** With the owner of the files. False when there is none, or it belongs to another user. */
async function copyFolder(from: string, to: string): Promise<boolean> {
  try {
    await run('cp', ['-a', from, to])
    return true
  } catch {
    await rm(to, { recursive: true, force: true })
    return false
  }
}

/** Complete under its name or not there at all: several tests may do this at once, and one that is killed leaves no half of it. */
async function keepTemplate(data: string): Promise<void> {
  await mkdir(dirname(TEMPLATE), { recursive: true })
  const candidate = await mkdtemp(`${TEMPLATE}-`)
  if (await copyFolder(data, join(candidate, 'data'))) await rename(join(candidate, 'data'), TEMPLATE).catch(() => {})
  await rm(candidate, { recursive: true, force: true })
}

async function idOf(flag: '-u' | '-g'): Promise<number> {
  return Number((await run('id', [flag, USER])).stdout)
}
