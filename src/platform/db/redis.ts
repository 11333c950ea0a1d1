import { createHash } from 'node:crypto'
import { createBackoff } from '../../core/backoff.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import { messageOf, ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import { resolveSecret, type Secret, type SecretSources } from '../config/secret-ref.ts'
import type { Logger } from '../telemetry/logger.ts'
import { parseRedisUrl, type RedisLocation } from './redis-url.ts'

export type RedisOptions = {
  /** As `parseRedisUrl` reads it, without a password. */
  readonly url: string
  readonly password?: Secret | undefined
  /** For the connection and the replies to its first commands together. */
  readonly connectTimeoutMs?: number
  /** The server counts as down when a command gets no reply for this long. */
  readonly responseTimeoutMs?: number
  /** Commands in flight; another one gets `busy`. */
  readonly commandsMax?: number
}

export type RedisDeps = { readonly clock: Clock; readonly log: Logger; readonly random: Random }

export type RedisReply = string | number | null | readonly RedisReply[]

/** An unreachable server is an expected outcome, for which callers have a fallback. `refused` is an error reply of the server. */
export type RedisOutcome =
  | { readonly ok: true; readonly reply: RedisReply }
  | { readonly ok: false; readonly reason: 'down' | 'busy' | 'refused'; readonly message: string }

export type RedisScript = { readonly text: string; readonly sha1: string }

/** One connection to Redis or Valkey that reconnects. While it is down every command fails at once. */
export type RedisLink = AsyncDisposable & {
  isUp(): boolean
  /** Runs an atomic script by its hash, sending its text only when the server does not know it. Never rejects. */
  run(script: RedisScript, keys: readonly string[], args: readonly string[]): Promise<RedisOutcome>
  /** Resolves when the first attempt to connect has succeeded or failed. */
  readonly tried: Promise<void>
}

const DEFAULTS = { connectTimeoutMs: 2000, responseTimeoutMs: 1000, commandsMax: 4096 }
const RETRY = { firstMs: 50, maxMs: 2000 }

export function createRedisScript(text: string): RedisScript {
  return { text, sha1: createHash('sha1').update(text).digest('hex') }
}

type ClientOptions = Pick<RedisOptions, 'password' | 'connectTimeoutMs' | 'commandsMax'>

/** The used part of the library's client. */
type Client = {
  readonly isOpen: boolean
  connect(): Promise<unknown>
  destroy(): void
  sendCommand(command: readonly string[]): Promise<unknown>
  on(event: 'error' | 'end' | 'connect', listener: (error: unknown) => void): unknown
  removeAllListeners(event: 'error' | 'end'): unknown
}

/**
 * The library does not reconnect: this module replaces a lost connection and decides when. It is loaded with the first connection: it takes a quarter of
 * a second of CPU time, and most processes have no Redis.
 */
async function makeClient({ host, port, tls, user, database }: RedisLocation, options: ClientOptions): Promise<Client> {
  const { createClient } = await import('@redis/client')
  const { password, connectTimeoutMs = DEFAULTS.connectTimeoutMs, commandsMax = DEFAULTS.commandsMax } = options
  return createClient({
    // Not as one `url`: from one with a user name the library takes the password too, and uses no other.
    ...(user === undefined ? {} : { username: user }),
    ...(password === undefined ? {} : { password: password.reveal() }),
    database,
    socket: { host, port, ...(tls ? { tls } : {}), connectTimeout: connectTimeoutMs, reconnectStrategy: false },
    disableOfflineQueue: true,
    // The commands in flight are limited here; the library's own commands of a new connection come on top.
    commandsQueueMaxLength: commandsMax + 16,
  }) as unknown as Client
}

/** The error of a server that has become a replica. Scripts put their own words around it in older versions. */
const IS_REPLICA = /\bREADONLY\b/

type Pending = { readonly sentAtMs: number; settle(outcome: RedisOutcome): void }

export function openRedis(given: RedisOptions, deps: RedisDeps): RedisLink {
  const options = { ...DEFAULTS, ...given }
  const location = parseRedisUrl(options.url)
  const { clock, log, random } = deps
  const backoff = createBackoff(RETRY, random)
  // In the order they were sent, which is the order of the replies.
  const pending = new Set<Pending>()
  const tried = Promise.withResolvers<void>()
  let client: Client | undefined
  let connecting: Client | undefined
  let retry: Timer | undefined
  let isClosed = false
  let isReported = false
  /** The last server was a replica, and no command has had another result since. */
  let wasReplica = false

  async function connect(): Promise<void> {
    const candidate = await makeClient(location, options)
    if (isClosed) return tried.resolve()
    let cause = 'connection closed'
    candidate.on('error', (error: unknown) => {
      cause = messageOf(error)
      lose(candidate, cause)
    })
    candidate.on('end', () => lose(candidate, cause))
    connecting = candidate
    try {
      await repliedWithin(candidate.connect(), options.connectTimeoutMs, clock)
    } catch (error) {
      discard(candidate)
      reportGone(messageOf(error))
      again()
      return
    } finally {
      connecting = undefined
      tried.resolve()
    }
    if (isClosed) return discard(candidate)
    client = candidate
    if (!wasReplica) reportBack()
  }

  function reportBack(): void {
    backoff.reset()
    if (isReported) log.info({ url: options.url }, 'redis is reachable again')
    isReported = false
  }

  function again(): void {
    if (isClosed) return
    retry = clock.setTimer(backoff.nextMs(), () => void connect())
  }

  function lose(lost: Client, cause: string): void {
    if (client !== lost) return
    client = undefined
    discard(lost)
    for (const { settle } of [...pending]) settle({ ok: false, reason: 'down', message: cause })
    reportGone(cause)
    again()
  }

  function reportGone(cause: string): void {
    if (isReported || isClosed) return
    isReported = true
    log.warn({ url: options.url, err: cause }, 'redis cannot be reached; retrying')
  }

  // One timer per connection, for its oldest command, instead of one per command.
  const watch = clock.setRepeating(options.responseTimeoutMs / 4, () => {
    const [oldest] = pending
    if (client === undefined || oldest === undefined) return
    if (clock.monotonicMs() - oldest.sentAtMs > options.responseTimeoutMs) lose(client, 'no reply in time')
  })
  watch.unref?.()

  function send(command: readonly string[]): Promise<RedisOutcome> {
    const to = client
    if (to === undefined) return Promise.resolve({ ok: false, reason: 'down', message: 'not connected' })
    if (pending.size >= options.commandsMax) {
      return Promise.resolve({
        ok: false,
        reason: 'busy',
        message: `${options.commandsMax} commands wait for a reply`,
      })
    }
    return new Promise((resolve) => {
      const entry: Pending = {
        sentAtMs: clock.monotonicMs(),
        settle(outcome) {
          pending.delete(entry)
          resolve(outcome)
        },
      }
      pending.add(entry)
      to.sendCommand(command).then(
        (reply) => {
          if (wasReplica) reportBack()
          wasReplica = false
          entry.settle({ ok: true, reply: reply as RedisReply })
        },
        (error: unknown) => {
          const message = messageOf(error)
          // After a failover the address may belong to another server, which only a new connection reaches.
          if (IS_REPLICA.test(message) && client === to) {
            wasReplica = true
            lose(to, message)
          }
          entry.settle({ ok: false, reason: client === to ? 'refused' : 'down', message })
        },
      )
    })
  }

  void connect()

  return {
    isUp: () => client !== undefined,
    tried: tried.promise,
    async run({ text, sha1 }, keys, args) {
      const rest = [String(keys.length), ...keys, ...args]
      const outcome = await send(['EVALSHA', sha1, ...rest])
      if (outcome.ok || outcome.reason !== 'refused' || !outcome.message.startsWith('NOSCRIPT')) return outcome
      return send(['EVAL', text, ...rest])
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      watch.cancel()
      retry?.cancel()
      const last = client ?? connecting
      client = undefined
      for (const { settle } of [...pending]) settle({ ok: false, reason: 'down', message: 'closing' })
      if (last !== undefined) discard(last)
      await Promise.resolve()
    },
  }
}

/** Connects and authenticates once; returns the error if that fails. */
export async function pingRedis(
  position: { readonly url: string; readonly password?: string | undefined },
  sources: SecretSources,
  clock: Clock,
): Promise<void> {
  const password = position.password === undefined ? undefined : await resolveSecret(position.password, sources)
  const client = await makeClient(parseRedisUrl(position.url), { password })
  client.on('error', () => {})
  try {
    const pinged = client.connect().then(() => client.sendCommand(['PING']))
    await repliedWithin(pinged, DEFAULTS.connectTimeoutMs, clock)
  } catch (error) {
    throw new ServiceError('store-unavailable', messageOf(error), { fields: { url: position.url }, cause: error })
  } finally {
    discard(client)
  }
}

/** The library limits only the time until a connection is accepted; a server that then never replies would be waited for without end. */
async function repliedWithin(replied: Promise<unknown>, timeoutMs: number, clock: Clock): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  using _timer = clock.setTimer(timeoutMs, () => reject(new Error(`no reply in ${timeoutMs} ms`)))
  await Promise.race([replied, late])
}

/** Closes a client in any state, also one whose socket is still to be connected; its later errors are ignored. */
function discard(client: Client): void {
  // Before the others are removed: without any listener left, the library's client would no longer share those that are added with its inner one.
  client.on('connect', () => client.destroy())
  client.removeAllListeners('end')
  client.removeAllListeners('error')
  client.on('error', () => {})
  if (client.isOpen) client.destroy()
}
