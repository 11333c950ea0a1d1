import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { type ClickHouseUser, startClickHouse } from '../indexer/clickhouse.ts'
import { SWITCH_ADDRESS } from './namespaces.ts'
import { startPostgres } from './postgres.ts'
import { startRedis } from './redis.ts'

export const DATA_PORTS = { postgres: 5432, redis: 6379, clickhouse: 8123 }
export const DATA_PASSWORDS = { postgres: 'of the store', redis: 'of the budget' }

type Part = 'redis' | 'postgres'

/** The database machine: PostgreSQL, Redis and ClickHouse on its loopback, each reachable at its usual port on the machine's network address. */
export async function startDataMachine() {
  await using opening = new AsyncDisposableStack()
  const postgres = opening.use(await startPostgres({ password: DATA_PASSWORDS.postgres }))
  const redis = opening.use(await startRedis({ password: DATA_PASSWORDS.redis }))
  const clickhouse = opening.use(await startClickHouse())
  opening.use(await startForwarder(DATA_PORTS.postgres, postgres.port))
  opening.use(await startForwarder(DATA_PORTS.redis, redis.port))
  opening.use(await startForwarder(DATA_PORTS.clickhouse, Number(new URL(clickhouse.url).port)))
  const opened = opening.move()
  return {
    calls: {
      /** Units recorded, by subscription name. */
      async booked(): Promise<Record<string, number>> {
        const rows = await postgres.query(
          'sluice',
          `SELECT s.name, SUM(u.units) FROM sluice.usage_hours u JOIN sluice.subscriptions s ON s.id = u.subscription_id GROUP BY s.name`,
        )
        return Object.fromEntries(rows.map(([name, units]) => [String(name), Number(units)]))
      },
      /** Runs a statement as the gateway's ClickHouse user. */
      clickhouse: (statement: string) => clickhouse.run(statement),
      setReaders: (readers: ClickHouseUser[]) => clickhouse.setReaders(readers),
      /** Kills Redis, or shuts PostgreSQL down with SIGINT. */
      stop: (part: Part) => (part === 'redis' ? redis.kill() : postgres.stop('SIGINT')),
      start: (part: Part) => (part === 'redis' ? redis.start() : postgres.start()),
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

export type DataMachine = Awaited<ReturnType<typeof startDataMachine>>['calls']

/** Forwards from the network address to the loopback, where the servers listen. */
async function startForwarder(port: number, to: number): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(to, '127.0.0.1')
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket.setNoDelay()
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  server.listen(port, SWITCH_ADDRESS)
  await once(server, 'listening')
  return {
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}
