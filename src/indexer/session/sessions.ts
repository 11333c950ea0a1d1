import type { Clock } from '../../core/clock.ts'
import { QueryError } from '../query/error.ts'
import type { SessionChange } from './session-statement.ts'

/** Fields of a request that name a session, as ClickHouse's HTTP interface has them. */
export type SessionFields = {
  readonly id: string
  /** Time after its last statement for which a session is kept. */
  readonly timeoutSeconds: number
  /** Whether the session must exist. */
  readonly mustExist: boolean
}

export type SessionsOptions = {
  readonly sessionsPerSubscription: number
  readonly sessionsMax: number
}

/** What a session holds for its statements. */
export type SessionState = {
  readonly settings: Readonly<Record<string, string>>
  readonly database: string | undefined
}

/** A statement runs in a session until this is disposed of. */
export type OpenSession = Disposable & SessionState & { apply(change: SessionChange): void }

/** Sessions of all subscriptions, each visible to its own subscription only. */
export type Sessions = {
  /** Throws QueryError when the session does not exist, is in use, or would be one too many. */
  open(subscriptionId: string, fields: SessionFields): OpenSession
  readonly size: number
}

type Session = { state: SessionState; isInUse: boolean; endsAtMs: number }

export function createSessions(options: SessionsOptions, clock: Pick<Clock, 'monotonicMs'>): Sessions {
  const bySubscription = new Map<string, Map<string, Session>>()
  let size = 0

  /** Removes sessions that have ended. Each look-up removes those of its subscription, and all of them when there is no space. */
  function sweep(subscriptionId: string): void {
    const nowMs = clock.monotonicMs()
    const sessions = bySubscription.get(subscriptionId)
    for (const [id, session] of sessions ?? []) {
      if (session.isInUse || session.endsAtMs > nowMs) continue
      sessions?.delete(id)
      size--
    }
    if (sessions?.size === 0) bySubscription.delete(subscriptionId)
  }

  /** Ends the oldest session that holds nothing. Some libraries begin one with every connection, and never set anything in it. */
  function evictEmpty(sessions: Map<string, Session> | undefined): void {
    for (const [id, { isInUse, state }] of sessions ?? []) {
      if (isInUse || state.database !== undefined || Object.keys(state.settings).length > 0) continue
      sessions?.delete(id)
      size--
      return
    }
  }

  function create(subscriptionId: string): Session {
    if (size >= options.sessionsMax) for (const each of bySubscription.keys()) sweep(each)
    const own = bySubscription.get(subscriptionId)
    if ((own?.size ?? 0) >= options.sessionsPerSubscription) evictEmpty(own)
    if ((own?.size ?? 0) >= options.sessionsPerSubscription)
      throw tooMany('sessionsPerSubscription', options.sessionsPerSubscription)
    if (size >= options.sessionsMax) throw tooMany('sessionsMax', options.sessionsMax)
    if (own === undefined) bySubscription.set(subscriptionId, new Map())
    size++
    return { state: { settings: {}, database: undefined }, isInUse: false, endsAtMs: 0 }
  }

  return {
    get size() {
      return size
    },
    open(subscriptionId, { id, timeoutSeconds, mustExist }) {
      sweep(subscriptionId)
      let session = bySubscription.get(subscriptionId)?.get(id)
      if (session === undefined) {
        if (mustExist) throw new QueryError('SESSION_NOT_FOUND', 'Session not found: it has ended, or was never begun.')
        session = create(subscriptionId)
        bySubscription.get(subscriptionId)?.set(id, session)
      }
      if (session.isInUse)
        throw new QueryError('SESSION_IS_LOCKED', 'Session is locked by a concurrent client: one statement at a time.')
      session.isInUse = true
      const opened = session
      return {
        ...opened.state,
        apply({ settings, database }) {
          opened.state = {
            settings: { ...opened.state.settings, ...settings },
            database: database ?? opened.state.database,
          }
        },
        [Symbol.dispose]() {
          opened.isInUse = false
          opened.endsAtMs = clock.monotonicMs() + timeoutSeconds * 1000
        },
      }
    },
  }
}

function tooMany(limit: keyof SessionsOptions, size: number): QueryError {
  return new QueryError(
    'USER_SESSION_LIMIT_EXCEEDED',
    `Too many sessions: indexer.query.${limit} is ${size}. Reuse a session_id, or give a shorter session_timeout.`,
    RETRY_SECONDS,
  )
}

const RETRY_SECONDS = 10
