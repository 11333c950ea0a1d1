import { readFile } from 'node:fs/promises'
import { messageOf, ServiceError } from '../../core/error.ts'

/** The address of a PostgreSQL database, without its password. */
export type PostgresLocation = {
  /** Host name, address, or the folder of a Unix socket. */
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
  readonly tls: 'disable' | 'require' | 'verify-full'
  readonly caFile: string | undefined
}

const LOCAL = /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|\/.*)$/
const DEFAULT_PORT = 5432

/**
 * Reads `postgres://USER@HOST:PORT/DATABASE?sslmode=…&sslrootcert=FILE`; a Unix socket is `postgres://USER@/DATABASE?host=/FOLDER`. A password in
 * the address is refused: it would end up in process lists and backups of the config. Over a network the server's certificate is verified unless
 * the address sets another sslmode; on the same machine there is no TLS by default.
 */
export function parsePostgresUrl(text: string): PostgresLocation {
  const invalid = (what: string) =>
    new ServiceError('config-invalid', `the address of the PostgreSQL store ${what}`, {
      fix: 'Write it as postgres://USER@HOST:PORT/DATABASE and give the password as a secret reference.',
    })
  if (isList(authorityHost(text))) throw severalHosts()
  // A URL needs a host; that of a socket comes as a parameter.
  const url = URL.parse(text.replace(/^(postgres(?:ql)?:\/\/[^/@]*@)\//, '$1socket/'))
  if (!url || !/^postgres(ql)?:$/.test(url.protocol))
    throw invalid('is not a postgres:// address, or its port is no number up to 65535')
  if (url.password !== '') throw invalid('contains a password')
  const decode = (part: string) => {
    try {
      return decodeURIComponent(part)
    } catch {
      throw invalid('has a % that begins no character in the user or the database')
    }
  }
  const user = decode(url.username)
  const database = decode(url.pathname.slice(1))
  if (user === '' || database === '') throw invalid('names no user or no database')
  for (const name of url.searchParams.keys()) {
    if (!['host', 'sslmode', 'sslrootcert'].includes(name)) throw invalid(`has an unknown parameter "${name}"`)
  }
  const host = url.searchParams.get('host') ?? url.hostname.replace(/^\[|\]$/g, '')
  if (isList(host)) throw severalHosts()
  const tls = url.searchParams.get('sslmode') ?? (LOCAL.test(host) ? 'disable' : 'verify-full')
  if (tls !== 'disable' && tls !== 'require' && tls !== 'verify-full') {
    throw invalid('has an sslmode other than disable, require and verify-full')
  }
  const port = url.port === '' ? DEFAULT_PORT : Number(url.port)
  return { host, port, user, database, tls, caFile: url.searchParams.get('sslrootcert') ?? undefined }
}

/** The hosts of the address, with their ports: with several ports it is no URL. */
function authorityHost(text: string): string {
  const [authority = ''] = text.slice(text.indexOf('://') + 3).split(/[/?#]/)
  return authority.slice(authority.lastIndexOf('@') + 1)
}

/** As libpq reads several hosts; the driver takes such a list for one name. */
function isList(host: string): boolean {
  return host.includes(',') && !host.startsWith('/')
}

function severalHosts(): ServiceError {
  return new ServiceError('config-invalid', 'the address of the PostgreSQL store names several hosts', {
    fix: 'Give one host: one that always leads to the primary server, such as a virtual address, a DNS name or a proxy (HAProxy, PgBouncer).',
  })
}

/** The name of the database in messages. */
export function printPostgresLocation({ host, port, database }: PostgresLocation): string {
  return `postgres://${host.includes(':') ? `[${host}]` : host}:${port}/${database}`
}

export async function tlsOptions(
  position: PostgresLocation,
): Promise<false | { rejectUnauthorized: boolean; ca?: string; servername?: string }> {
  if (position.tls === 'disable') return false
  if (position.tls === 'require') return { rejectUnauthorized: false }
  if (position.caFile === undefined) return { rejectUnauthorized: true }
  try {
    return { rejectUnauthorized: true, ca: await readFile(position.caFile, 'utf8') }
  } catch (error) {
    throw new ServiceError('config-invalid', `sslrootcert cannot be read: ${messageOf(error)}`, { cause: error })
  }
}
