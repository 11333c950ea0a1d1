import { ServiceError } from '../../core/error.ts'

/** The address of a Redis or Valkey server, without its password. */
export type RedisLocation = {
  readonly host: string
  readonly port: number
  readonly tls: boolean
  /** A user of the access control list of the server; undefined is its default user. */
  readonly user: string | undefined
  readonly database: number
}

const DEFAULT_PORT = 6379
/** No server has more databases than this: SELECT takes a number of 32 bits. */
const DATABASE = /^\/?(\d{0,9})$/

/** What other clients read from parameters, and this address has elsewhere. */
const ELSEWHERE = ['db', 'database', 'user', 'username', 'password']

/** Reads `redis://USER@HOST:PORT/NUMBER`, with `rediss` for TLS; other parameters have no effect, and without a host it is this machine. A password in the address is refused: it would end up in process lists and backups of the config. */
export function parseRedisUrl(text: string): RedisLocation {
  const url = URL.parse(text)
  if (url === null) throw invalid('is not a redis:// address, or its port is no number up to 65535')
  if (!/^rediss?:$/.test(url.protocol)) throw invalid('is not a redis:// address')
  if (url.password !== '') throw invalid('contains a password')
  if (url.port === '0') throw invalid('has the port 0')
  const elsewhere = ELSEWHERE.find((name) => url.searchParams.has(name))
  if (elsewhere !== undefined) throw invalid(`has the parameter ${elsewhere}, which is not read`)
  const database = DATABASE.exec(url.pathname)?.[1]
  if (database === undefined) throw invalid('names a database that is no number')
  return {
    host: url.hostname.replace(/^\[|\]$/g, '') || 'localhost',
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
    tls: url.protocol === 'rediss:',
    user: url.username === '' ? undefined : decode(url.username),
    database: Number(database),
  }
}

function decode(user: string): string {
  try {
    return decodeURIComponent(user)
  } catch {
    throw invalid('has a user name with a % that begins no character')
  }
}

function invalid(what: string): ServiceError {
  return new ServiceError('config-invalid', `the address of Redis ${what}`, {
    fix: 'Write it as redis://USER@HOST:PORT/NUMBER, where user and number may be left out, and give the password as a secret reference.',
  })
}
