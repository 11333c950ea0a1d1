import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../../src/platform/process/test-wait.ts'
import { freePorts } from '../machine/free-ports.ts'
import { crash } from '../process/crash.ts'

/** The gateway's own account on the server. */
export const CLICKHOUSE_ADMIN = { user: 'sluice_gateway', password: 'password of the gateway' }

export type ClickHouseUser = { readonly user: string; readonly password: string }

export type ClickHouseServer = AsyncDisposable & {
  readonly url: string
  /** Runs a statement with the gateway's account. Rejects with the server's error message. */
  run(statement: string): Promise<string>
  /** Sets the accounts that may read. This old server has no users in SQL, so they are written into its users file. */
  setReaders(readers: readonly ClickHouseUser[]): Promise<void>
  /** Kills the process, as a crash would. */
  kill(): Promise<void>
  /** Restarts it with the same data on the same port. */
  start(): Promise<void>
}

const READY_MS = 60_000

/** Starts Debian's clickhouse-server (18.16) on free loopback ports, with its data in a temporary folder. */
export async function startClickHouse(): Promise<ClickHouseServer> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-clickhouse-'))
  const [http, tcp, interserver] = await freePorts(3)
  const url = `http://127.0.0.1:${http}`
  let child: ChildProcess | undefined
  let changes = 0

  const setReaders = async (readers: readonly ClickHouseUser[]): Promise<void> => {
    const file = join(folder, 'users.xml')
    await writeFile(file, usersFile(readers))
    // The server checks the file every two seconds and compares its modification time in seconds.
    const seconds = Date.now() / 1000 + 2 * ++changes
    await utimes(file, seconds, seconds)
    for (const reader of readers)
      await until(
        `the server has the account ${reader.user}`,
        async () => (await ask(url, reader, 'SELECT 1')).ok,
        30_000,
      )
  }

  async function start(): Promise<void> {
    const started = spawn('clickhouse-server', [`--config-file=${join(folder, 'config.xml')}`], { stdio: 'ignore' })
    child = started
    const failed = new Promise<never>((_, reject) => started.once('error', reject))
    const ready = until(
      'the server responds',
      async () => (await fetch(`${url}/ping`).catch(() => undefined))?.ok === true,
      READY_MS,
    )
    await Promise.race([ready, failed])
  }

  async function kill(): Promise<void> {
    await crash(child)
    child = undefined
  }

  await writeFile(join(folder, 'config.xml'), configFile(folder, { http, tcp, interserver }))
  await writeFile(join(folder, 'users.xml'), usersFile([]))
  await start()
  return {
    url,
    async run(statement) {
      const response = await ask(url, CLICKHOUSE_ADMIN, statement)
      const text = await response.text()
      if (!response.ok) throw new Error(text)
      return text
    },
    setReaders,
    kill,
    start,
    async [Symbol.asyncDispose]() {
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function ask(url: string, { user, password }: ClickHouseUser, body: string): Promise<Response> {
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  return fetch(url, { method: 'POST', headers: { authorization }, body })
}

function configFile(folder: string, ports: Record<'http' | 'tcp' | 'interserver', number | undefined>): string {
  return `<?xml version="1.0"?>
<yandex>
  <logger><level>error</level><log>${folder}/server.log</log><errorlog>${folder}/error.log</errorlog></logger>
  <http_port>${ports.http}</http_port>
  <tcp_port>${ports.tcp}</tcp_port>
  <interserver_http_port>${ports.interserver}</interserver_http_port>
  <listen_host>127.0.0.1</listen_host>
  <keep_alive_timeout>10</keep_alive_timeout>
  <mark_cache_size>16777216</mark_cache_size>
  <uncompressed_cache_size>0</uncompressed_cache_size>
  <path>${folder}/data/</path>
  <tmp_path>${folder}/tmp/</tmp_path>
  <user_files_path>${folder}/files/</user_files_path>
  <users_config>users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <timezone>UTC</timezone>
</yandex>
`
}

function usersFile(readers: readonly ClickHouseUser[]): string {
  const user = ({ user, password }: ClickHouseUser, profile: string): string => `
    <${user}>
      <password_sha256_hex>${createHash('sha256').update(password).digest('hex')}</password_sha256_hex>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>${profile}</profile>
      <quota>default</quota>
    </${user}>`
  return `<?xml version="1.0"?>
<yandex>
  <profiles>
    <default><max_memory_usage>1000000000</max_memory_usage></default>
    <reader><readonly>2</readonly><max_memory_usage>500000000</max_memory_usage></reader>
  </profiles>
  <users>
    ${user(CLICKHOUSE_ADMIN, 'default')}${readers.map((reader) => user(reader, 'reader')).join('')}
  </users>
  <quotas><default></default></quotas>
</yandex>
`
}
