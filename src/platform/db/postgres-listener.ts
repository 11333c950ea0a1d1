import pg from 'pg'
import { createBackoff } from '../../core/backoff.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import type { Logger } from '../telemetry/logger.ts'
import { closePostgres } from './postgres-close.ts'

const RECONNECT = { firstMs: 100, maxMs: 5000 }

export type ListenerOptions = {
  readonly config: pg.ClientConfig
  readonly channel: string
  readonly onNotice: () => void
}

/** Listens on a channel with a dedicated connection that is reopened with backoff when it is lost. */
export async function startPostgresListener(
  { config, channel, onNotice }: ListenerOptions,
  { clock, random, log }: { readonly clock: Clock; readonly random: Random; readonly log: Logger },
): Promise<AsyncDisposable> {
  const backoff = createBackoff(RECONNECT, random)
  let current: pg.Client | undefined
  let retry: Timer | undefined
  let closed = false

  async function connect(): Promise<void> {
    const client = new pg.Client(config)
    current = client
    client.on('notification', onNotice)
    client.on('error', (error) => lose(client, error))
    client.on('end', () => lose(client, new Error('the server closed the connection')))
    try {
      await client.connect()
      await client.query(`LISTEN ${channel}`)
      backoff.reset()
      // A notification may have been missed while disconnected.
      onNotice()
    } catch (error) {
      lose(client, error)
    }
  }

  function lose(client: pg.Client, error: unknown): void {
    if (closed || client !== current) return
    current = undefined
    if (backoff.attempts() === 0)
      log.warn({ reason: messageOf(error) }, 'lost the connection for change notifications; polling instead')
    void client.end().catch(() => {})
    retry = clock.setTimer(backoff.nextMs(), () => void connect())
  }

  await connect()
  return {
    async [Symbol.asyncDispose]() {
      closed = true
      retry?.cancel()
      const client = current
      if (client !== undefined) await closePostgres([client], clock, () => client.end().catch(() => {}))
    },
  }
}
