import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { CHECK_MS, memoryFile, nodeDown, setUpNotices } from '../../../test/support/admin/notices.ts'
import { until } from '../../platform/process/test-wait.ts'
import { type Logger, silentLogger } from '../../platform/telemetry/logger.ts'
import { noticeHandlers } from './handlers.ts'
import type { Receiver, SendResult } from './receivers.ts'
import type { Notices } from './service.ts'

const CHECKS_PER_HOUR = 3_600_000 / CHECK_MS

/** Notices with one receiver, which responds as `respond` says and records the ids of its attempts. */
function setUp(log: Logger = silentLogger) {
  const on = { sent: [] as string[], respond: (): SendResult => ({ ok: true }) }
  const receiver: Receiver = {
    name: 'ops',
    accepts: () => true,
    async send({ id }) {
      on.sent.push(id)
      return on.respond()
    },
    [Symbol.dispose]() {},
  }
  return { on, ...setUpNotices(() => [receiver], memoryFile(), log) }
}

const stateOf = (notices: Notices) => notices.list().map(({ deliveries }) => deliveries[0]?.state)
const failed = (): SendResult => ({ ok: false, reason: 'refused' })

test('a receiver that fails is called less and less often; a test is sent to it at once', async () => {
  const { on, clock, start, set } = setUp()
  await using notices = await start()
  on.respond = failed
  set([nodeDown('a')])
  for (let checks = 0; checks < CHECKS_PER_HOUR - 1; checks++) {
    await clock.advanceAsync(CHECK_MS)
    for (let turns = 0; turns < 5; turns++) await nextTurn()
  }
  assert.ok(on.sent.length >= 2 && on.sent.length < 16, `${on.sent.length} attempts in an hour of checks`)
  on.respond = () => ({ ok: true })
  const attempts = on.sent.length
  await notices.test()
  await until('the one that waits and the test are sent', () => on.sent.length === attempts + 2)
  await until('they are settled', () => !stateOf(notices).includes('waiting'))
  // After a success the delays begin anew.
  on.respond = failed
  set([nodeDown('a'), nodeDown('b')])
  const failures = () => notices.list()[0]?.deliveries[0]?.attempts
  for (const expected of [1, 2]) {
    await clock.advanceAsync(CHECK_MS)
    await until('it is tried at every check', () => failures() === expected)
    for (let turns = 0; turns < 5; turns++) await nextTurn()
  }
})

test('a notice that was given up does not keep the next one waiting', async () => {
  const { on, clock, start, set } = setUp()
  await using notices = await start()
  on.respond = () => (on.sent.length === 1 ? { ok: false, reason: 'gone', isFinal: true } : { ok: true })
  set([nodeDown('a'), nodeDown('b')])
  await clock.advanceAsync(CHECK_MS)
  await until('both are settled', () => !stateOf(notices).includes('waiting'))
  assert.deepEqual(stateOf(notices), ['delivered', 'given-up'])
})

test('a condition that is gone is forgotten on the disk too: after a restart it causes a notice again', async () => {
  const { on, clock, file, start, set } = setUp()
  {
    await using _notices = await start()
    set([nodeDown('a')])
    await clock.advanceAsync(CHECK_MS)
    await until('it is delivered', () => file.text?.includes('"delivered"') === true)
    assert.match(file.text ?? '', /"active":\["node.down a"\]/)
    set([])
    await clock.advanceAsync(CHECK_MS)
    await until('the condition is forgotten', () => file.text?.includes('"active":[]') === true)
  }
  await using _notices = await start()
  set([nodeDown('a')])
  await clock.advanceAsync(CHECK_MS)
  await until('there are two notices', () => new Set(on.sent).size === 2)
})

test('what waits for a receiver that was removed is given up at the next start', async () => {
  const names = ['old', 'stays']
  const receiver = (name: string): Receiver => {
    return { name, accepts: () => true, send: async () => failed(), [Symbol.dispose]() {} }
  }
  const { clock, file, start, set } = setUpNotices(() => names.map(receiver))
  {
    await using _notices = await start()
    set([nodeDown('a')])
    await clock.advanceAsync(CHECK_MS)
    await until('both have failed', () => file.text?.split('"refused"').length === 3)
  }
  names[0] = 'new'
  await using notices = await start()
  assert.deepEqual(
    notices.list()[0]?.deliveries.map(({ receiver, state, lastFailure }) => [receiver, state, lastFailure]),
    [
      ['old', 'given-up', 'the receiver was removed'],
      ['stays', 'waiting', 'refused'],
    ],
  )
})

test('nothing is written while nothing changes', async () => {
  const { clock, file, start, set } = setUp()
  await using _notices = await start()
  set([nodeDown('a')])
  await clock.advanceAsync(CHECK_MS)
  await until('it is delivered', () => file.text?.includes('"delivered"') === true)
  file.text = 'not written'
  await clock.advanceAsync(CHECK_MS)
  for (let turns = 0; turns < 5; turns++) await nextTurn()
  assert.equal(file.text, 'not written')
})

test('a file of another form begins anew, and the log has why', async () => {
  for (const text of [
    '{"version":2,"sinceMs":1,"active":[],"notices":[]}',
    '{"version":1,"sinceMs":1,"active":{},"notices":[]}',
    '{"version":1,"sinceMs":1,"active":[]}',
    'null',
  ]) {
    const warned: unknown[] = []
    const log: Logger = { ...silentLogger, child: () => log, warn: (_fields: unknown, why) => void warned.push(why) }
    const { file, start } = setUp(log)
    file.text = text
    await using notices = await start()
    assert.deepEqual(notices.list(), [], text)
    assert.deepEqual(warned, ['the file of notices cannot be read and begins anew'], text)
    await notices.test()
    assert.match(file.text, /"version":1,/)
  }
})

test('the route refuses a limit that is no whole number; after a notice that is gone nothing follows', async () => {
  const { start } = setUp()
  await using notices = await start()
  for (let at = 0; at < 3; at++) await notices.test()
  const { notices: handler, noticeTest } = noticeHandlers(notices)
  const page = async (query: string) => {
    const reply = await handler({ query: new URLSearchParams(query) } as never)
    return reply.body as { items: object[]; next_cursor: string | null; enabled: boolean }
  }
  for (const limit of ['0', '-1', '1.5', 'x', '']) await assert.rejects(page(`limit=${limit}`), /whole number/, limit)
  assert.equal((await page('limit=999999999')).items.length, 3)
  assert.deepEqual(await page('cursor=ntc_gone'), { enabled: true, items: [], next_cursor: null })
  assert.deepEqual((await noticeTest({ isDryRun: true } as never)).body, { kind: 'test', done: false })
  assert.equal(notices.list().length, 3, 'a dry run sends nothing')
  assert.equal((await noticeTest({ isDryRun: false } as never)).status, 201)
  const none = noticeHandlers(undefined)
  await assert.rejects(none.noticeTest({} as never), { code: 'wrong-state', message: /no receiver/ })
})
