import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSessions } from './sessions.ts'

function open(options = { sessionsPerSubscription: 2, sessionsMax: 3 }) {
  let nowMs = 0
  const sessions = createSessions(options, { monotonicMs: () => nowMs })
  return {
    sessions,
    pass: (ms: number) => {
      nowMs += ms
    },
    enter: (subscription: string, id: string, given: { timeoutSeconds?: number; mustExist?: boolean } = {}) =>
      sessions.open(subscription, { id, timeoutSeconds: 60, mustExist: false, ...given }),
  }
}

test('a session keeps settings and database for its own subscription, until its time is over', () => {
  const { enter, pass, sessions } = open()
  {
    using session = enter('a', 's')
    session.apply({ settings: { max_threads: '1', log_comment: 'x' }, database: 'system' })
    session.apply({ settings: { max_threads: '2' }, database: undefined })
  }
  {
    using same = enter('a', 's', { timeoutSeconds: 10 })
    assert.deepEqual([same.settings, same.database], [{ max_threads: '2', log_comment: 'x' }, 'system'])
    using other = enter('b', 's')
    assert.deepEqual([other.settings, other.database], [{}, undefined])
  }
  pass(9_999)
  enter('a', 's', { mustExist: true, timeoutSeconds: 10 })[Symbol.dispose]()
  pass(10_000)
  assert.throws(() => enter('a', 's', { mustExist: true }), { type: 'SESSION_NOT_FOUND' })
  using fresh = enter('a', 's')
  assert.deepEqual(fresh.settings, {})
  pass(100_000)
  enter('c', 's')[Symbol.dispose]()
  assert.ok(sessions.size <= 3)
})

test('one statement at a time; a session in use does not end', () => {
  const { enter, pass } = open()
  const session = enter('a', 's', { timeoutSeconds: 1 })
  assert.throws(() => enter('a', 's'), { type: 'SESSION_IS_LOCKED' })
  pass(5_000)
  assert.throws(() => enter('a', 's'), { type: 'SESSION_IS_LOCKED' })
  session[Symbol.dispose]()
  enter('a', 's', { mustExist: true })[Symbol.dispose]()
})

test('the number of sessions is limited, and the refusal names the limit', () => {
  const { enter, pass, sessions } = open()
  const fill = (subscription: string, id: string) => {
    using session = enter(subscription, id)
    session.apply({ settings: { max_threads: '1' }, database: undefined })
  }
  for (const id of ['1', '2']) fill('a', id)
  assert.throws(() => enter('a', '3'), {
    type: 'USER_SESSION_LIMIT_EXCEEDED',
    message: /^Too many sessions: indexer\.query\.sessionsPerSubscription is 2\./,
  })
  fill('b', '1')
  assert.throws(() => enter('c', '1'), { message: /indexer\.query\.sessionsMax is 3\./ })
  assert.throws(() => enter('c', '1', { mustExist: true }), { type: 'SESSION_NOT_FOUND' })
  assert.equal(sessions.size, 3)
  // Sessions of others that have ended make space.
  pass(60_000)
  enter('c', '1')[Symbol.dispose]()
  assert.equal(sessions.size, 1)
})

test('a session that holds nothing makes space for a new one of its subscription, the oldest first', () => {
  const { enter, sessions } = open({ sessionsPerSubscription: 3, sessionsMax: 10 })
  {
    using kept = enter('a', 'kept')
    kept.apply({ settings: {}, database: 'system' })
  }
  using _used = enter('a', 'used')
  for (let id = 0; id < 100; id++) enter('a', `of-connection-${id}`)[Symbol.dispose]()
  assert.equal(sessions.size, 3)
  using again = enter('a', 'kept', { mustExist: true })
  assert.equal(again.database, 'system')
  assert.throws(() => enter('a', 'of-connection-98', { mustExist: true }), { type: 'SESSION_NOT_FOUND' })
})
