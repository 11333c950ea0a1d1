import { createHash } from 'node:crypto'
import type { Access } from '../../access/call-access.ts'
import type { IndexerCredential } from '../../access/store/model.ts'
import { setBounded } from '../../core/bounded-map.ts'
import type { Clock } from '../../core/clock.ts'
import { createHttpClient } from '../../platform/http/client/client.ts'
import { createSlicedChecks } from '../../platform/process/sliced-checks.ts'
import { createLimitedLog } from '../../platform/telemetry/limited-log.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { QueryError } from '../query/error.ts'
import { RETRY_SECONDS } from '../query/permits.ts'
import type { QueryLimits } from '../query/request.ts'
import { PUBLISHED_NAMES } from '../schema.ts'
import { CATALOGUE_VIEWS } from './catalogue-views.ts'
import { type ClickHouseAccount, type ClickHouseLink, ClickHouseRefusal, createClickHouseLink } from './link.ts'
import { type ProvisionedPlan, planStatements, revokeStatements, userStatements } from './provision.ts'

export type ClickHouseAccountsOptions = {
  /** Addresses and networks of the gateways: accounts can log in from there only. */
  readonly hosts: readonly string[]
  /** Limits of every plan. */
  readonly limits: Omit<ProvisionedPlan, 'plan'>
}

/** The account that creates accounts, and the limits of those. */
export type ClickHouseAccountsSource = ClickHouseAccount &
  Pick<ProvisionedPlan, 'memoryBytesMax' | 'readRowsMax' | 'queriesPerHour'> & { readonly gateways: readonly string[] }

export type ClickHouseAccountsDeps = {
  /** With the account that may create accounts. */
  readonly link: ClickHouseLink
  readonly log: Logger
  readonly clock: Clock
  /** The state of this user's credential; undefined for a user that the store has never had. */
  stateOf(username: string): IndexerCredential['state'] | undefined
  /** Registers a listener for changes of subscriptions. */
  onChange(listener: () => void): Disposable
}

/** A login that the gateway has authenticated. */
export type ValidLogin = { readonly username: string; readonly password: string; readonly plan: string }

/** Customers' accounts on the server: created when they are first needed, dropped when their credential is no longer active. */
export type ClickHouseAccounts = Disposable & {
  /** Resolves when the server has the account. Rejects with QueryError, or HttpCallFailed when there is no response. */
  ensure(login: ValidLogin): Promise<void>
  /**
   * For a login that the server refused in a query that was sent at `sentMs`: it may have lost the account. Makes `ensure` create it again; false if that
   * was tried shortly before.
   */
  prepareRecreation(login: ValidLogin, sentMs: number): boolean
}

const LIST_USERS = "SELECT name FROM system.users WHERE startsWith(name, 'u_')"

/** A server whose own configuration refuses the login must not get the statements of an account with every query. */
const CREATE_AGAIN_MS = 60_000

/** Accounts remembered as created. Creating one again changes nothing. */
const REMEMBERED_MAX = 10_000

export function createClickHouseAccounts(
  { hosts, limits }: ClickHouseAccountsOptions,
  { link, log, clock, stateOf, onChange }: ClickHouseAccountsDeps,
): ClickHouseAccounts {
  const plans = new Map<string, Promise<void>>()
  type MadeUser = { readonly sha256: string; readonly plan: string; readonly made: Promise<void> }
  const users = new Map<string, MadeUser>()
  /** When the accounts that the server refused were created again, and their plans. */
  const createdAgainMs = new Map<string, number>()
  const plansAgainMs = new Map<string, number>()
  /** Users of the store that have an account at the server, whichever process created it. */
  const atServer = new Set<string>()
  let listing: Promise<void> | undefined
  let isListFailing = false
  let dropping: Promise<void> = Promise.resolve()
  let isDropFailing = false
  let isClosed = false
  const refusalLog = createLimitedLog(clock)

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
    try {
      await runAll(userStatements({ username, sha256, hosts, plan, database: limits.database }))
    } catch (error) {
      // What the account depends on may have been lost.
      plans.delete(plan)
      throw error
    } finally {
      // Revoked meanwhile: it may have been dropped before it was created.
      if (stateOf(username) !== 'active') {
        atServer.add(username)
        checks.check([username])
      }
    }
  }

  const checks = createSlicedChecks((username: string) => {
    if (!atServer.has(username) || stateOf(username) === 'active') return
    atServer.delete(username)
    users.delete(username)
    dropping = dropping.then(() => drop(username))
  })

  /** One account at a time: logins of customers use the same connections. One that fails is tried again at the next change of the store. */
  async function drop(username: string): Promise<void> {
    if (isClosed) return
    // It has a credential again.
    if (stateOf(username) === 'active') return void atServer.add(username)
    try {
      await runAll(revokeStatements(username))
      isDropFailing = false
    } catch (error) {
      atServer.add(username)
      // The account can log in from the gateways only, and they refuse it.
      if (!isDropFailing) log.warn({ err: error, username }, 'an account could not be dropped at the server')
      isDropFailing = true
    }
  }

  /** An account of another installation on the same server is in its store only, and is left alone. */
  async function list(): Promise<void> {
    for (const [name] of await link.rows(LIST_USERS))
      if (typeof name === 'string' && stateOf(name) !== undefined) atServer.add(name)
    checks.check(atServer)
  }

  /** Tried again with each change of the store until it succeeds. */
  function listOnce(): void {
    listing ??= list().catch((error: unknown) => {
      listing = undefined
      const message = 'the accounts at the server could not be listed, so those that earlier processes created stay'
      if (!isListFailing) log.warn({ err: error }, message)
      isListFailing = true
    })
  }

  function refuseRevoked(username: string): void {
    if (stateOf(username) !== 'active') throw new QueryError('AUTHENTICATION_FAILED', 'This login was revoked.')
  }

  listOnce()
  const listening = onChange(() => {
    listOnce()
    checks.check(atServer)
  })

  return {
    async ensure({ username, password, plan }) {
      refuseRevoked(username)
      const sha256 = createHash('sha256').update(password).digest('hex')
      let user = users.get(username)
      if (user?.sha256 !== sha256 || user.plan !== plan) {
        if (users.size >= REMEMBERED_MAX) users.clear()
        const made = make(username, sha256, plan)
        user = { sha256, plan, made }
        users.set(username, user)
        atServer.add(username)
        made.catch(() => {
          if (users.get(username)?.made === made) users.delete(username)
        })
      }
      try {
        await user.made
        refuseRevoked(username)
      } catch (error) {
        if (!(error instanceof ClickHouseRefusal)) throw error
        refusalLog(
          (left) => log.error({ err: error, username, ...left }, 'an account could not be created at the server'),
          username,
        )
        throw new QueryError(
          'SOCKET_TIMEOUT',
          'The database is not ready for this login. Try again shortly.',
          RETRY_SECONDS,
        )
      }
    },
    prepareRecreation({ username, plan }, sentMs) {
      if (stateOf(username) !== 'active') return false
      const nowMs = clock.monotonicMs()
      const againMs = createdAgainMs.get(username) ?? Number.NEGATIVE_INFINITY
      // Another query of the same login has noticed it.
      if (againMs >= sentMs) return true
      if (nowMs - againMs < CREATE_AGAIN_MS) return false
      createdAgainMs.delete(username)
      setBounded(createdAgainMs, username, nowMs, REMEMBERED_MAX)
      users.delete(username)
      // What the account depends on was lost with it. Other accounts of the plan are lost at the same time.
      if (nowMs - (plansAgainMs.get(plan) ?? Number.NEGATIVE_INFINITY) < CREATE_AGAIN_MS) return true
      plansAgainMs.set(plan, nowMs)
      plans.delete(plan)
      return true
    },
    [Symbol.dispose]() {
      isClosed = true
      listening[Symbol.dispose]()
      checks[Symbol.dispose]()
    },
  }
}

const CONNECTIONS_MAX = 4
const CONNECT_MS = 3_000

/** All plans have the same limits, which the gateway enforces first. */
export function openClickHouseAccounts(
  source: ClickHouseAccountsSource,
  granted: { readonly database: string; readonly limits: QueryLimits; readonly concurrent: number },
  {
    access,
    log,
    clock,
  }: Pick<ClickHouseAccountsDeps, 'log' | 'clock'> & { readonly access: Pick<Access, 'snapshot' | 'onChange'> },
): ClickHouseAccounts {
  const client = createHttpClient({ url: source.url, connectionsMax: CONNECTIONS_MAX, connectMs: CONNECT_MS })
  const { memoryBytesMax, readRowsMax, queriesPerHour } = source
  const { secondsMax, rowsMax, bytesMax } = granted.limits
  const accounts = createClickHouseAccounts(
    {
      hosts: source.gateways,
      limits: {
        database: granted.database,
        tables: [...PUBLISHED_NAMES, ...CATALOGUE_VIEWS],
        secondsMax,
        rowsMax,
        bytesMax,
        memoryBytesMax,
        readRowsMax,
        concurrent: granted.concurrent,
        queriesPerHour,
      },
    },
    {
      link: createClickHouseLink(client, source),
      log,
      clock,
      stateOf: (username) => access.snapshot().indexerCredential(username)?.state,
      onChange: (listener) => access.onChange(listener),
    },
  )
  return {
    ensure: accounts.ensure,
    prepareRecreation: accounts.prepareRecreation,
    [Symbol.dispose]() {
      accounts[Symbol.dispose]()
      client[Symbol.dispose]()
    },
  }
}
