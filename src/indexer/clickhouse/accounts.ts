import { createHash } from 'node:crypto'
import type { Access } from '../../access/service.ts'
import { createHttpClient } from '../../platform/http/client/client.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { QueryLimits } from '../duckdb/run-query.ts'
import { QueryError } from '../query/error.ts'
import { RETRY_SECONDS } from '../query/permits.ts'
import { TABLES } from '../schema.ts'
import { type ClickHouseAccount, type ClickHouseLink, ClickHouseRefusal, createClickHouseLink } from './link.ts'
import { type ProvisionedPlan, planStatements, revokeStatements, userStatements } from './provision.ts'

export type ClickHouseAccountsOptions = {
  /** Addresses and networks of the gateways. */
  readonly hosts: readonly string[]
  /** What the subscriptions of every plan may do. */
  readonly limits: Omit<ProvisionedPlan, 'plan'>
}

/** Who makes the accounts, and what they may do. */
export type ClickHouseAccountsSource = ClickHouseAccount &
  Pick<ProvisionedPlan, 'memoryBytesMax' | 'readRowsMax' | 'queriesPerHour'> & { readonly gateways: readonly string[] }

export type ClickHouseAccountsDeps = {
  /** As the account that may make accounts. */
  readonly link: ClickHouseLink
  readonly log: Logger
  /** Whether the gateway still knows this user. */
  isLive(username: string): boolean
  /** Called when something about subscriptions has changed. */
  onChange(listener: () => void): Disposable
}

/** A login that the gateway has found good. */
export type GoodLogin = { readonly username: string; readonly password: string; readonly plan: string }

/** Accounts of customers on the server, made when they are first needed and ended when the gateway no longer knows them. */
export type ClickHouseAccounts = Disposable & {
  /** Resolves when the server knows the login. Rejects with QueryError, or HttpCallFailed when there is no answer. */
  ensure(login: GoodLogin): Promise<void>
}

/** Remembered as made by this process; one that is forgotten is made again, which changes nothing. */
const REMEMBERED_MAX = 10_000

export function createClickHouseAccounts(
  { hosts, limits }: ClickHouseAccountsOptions,
  { link, log, isLive, onChange }: ClickHouseAccountsDeps,
): ClickHouseAccounts {
  const plans = new Map<string, Promise<void>>()
  const users = new Map<string, { readonly sha256: string; readonly plan: string; readonly made: Promise<void> }>()

  async function runAll(statements: readonly string[]): Promise<void> {
    for (const statement of statements) await link.run(statement)
  }

  function ensurePlan(plan: string): Promise<void> {
    const known = plans.get(plan)
    if (known !== undefined) return known
    const made = runAll(planStatements({ ...limits, plan }))
    plans.set(plan, made)
    made.catch(() => plans.delete(plan))
    return made
  }

  async function make(username: string, sha256: string, plan: string): Promise<void> {
    await ensurePlan(plan)
    await runAll(userStatements({ username, sha256, hosts, plan, database: limits.database }))
  }

  const watch = onChange(() => {
    for (const username of users.keys()) {
      if (isLive(username)) continue
      users.delete(username)
      runAll(revokeStatements(username)).catch((error: unknown) => {
        // It is bound to the addresses of the gateways, and those refuse it.
        log.warn({ err: error, username }, 'an account could not be ended at the server')
      })
    }
  })

  return {
    async ensure({ username, password, plan }) {
      const sha256 = createHash('sha256').update(password).digest('hex')
      let user = users.get(username)
      if (user?.sha256 !== sha256 || user.plan !== plan) {
        if (users.size >= REMEMBERED_MAX) users.clear()
        const made = make(username, sha256, plan)
        user = { sha256, plan, made }
        users.set(username, user)
        made.catch(() => {
          if (users.get(username)?.made === made) users.delete(username)
        })
      }
      try {
        await user.made
      } catch (error) {
        if (!(error instanceof ClickHouseRefusal)) throw error
        log.error({ err: error, username }, 'an account could not be made at the server')
        throw new QueryError(
          'SOCKET_TIMEOUT',
          'The database is not ready for this login. Try again shortly.',
          RETRY_SECONDS,
        )
      }
    },
    [Symbol.dispose]: () => watch[Symbol.dispose](),
  }
}

const CONNECTIONS_MAX = 4
const CONNECT_MS = 3_000

/** The same for all plans: the limits of queries, of which the gateway holds the first line. */
export function openClickHouseAccounts(
  source: ClickHouseAccountsSource,
  given: { readonly database: string; readonly limits: QueryLimits; readonly concurrent: number },
  { access, log }: { readonly access: Pick<Access, 'snapshot' | 'onChange'>; readonly log: Logger },
): ClickHouseAccounts {
  const client = createHttpClient({ url: source.url, connectionsMax: CONNECTIONS_MAX, connectMs: CONNECT_MS })
  const { memoryBytesMax, readRowsMax, queriesPerHour } = source
  const { secondsMax, rowsMax, bytesMax } = given.limits
  const accounts = createClickHouseAccounts(
    {
      hosts: source.gateways,
      limits: {
        database: given.database,
        tables: [...TABLES.map(({ name }) => name), 'coverage'],
        secondsMax,
        rowsMax,
        bytesMax,
        memoryBytesMax,
        readRowsMax,
        concurrent: given.concurrent,
        queriesPerHour,
      },
    },
    {
      link: createClickHouseLink(client, source),
      log,
      isLive: (username) => access.snapshot().indexerCredential(username)?.state === 'active',
      onChange: (listener) => access.onChange(listener),
    },
  )
  return {
    ensure: accounts.ensure,
    [Symbol.dispose]() {
      accounts[Symbol.dispose]()
      client[Symbol.dispose]()
    },
  }
}
