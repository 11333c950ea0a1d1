import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CHECK_MS, nodeDown, setUpNotices } from '../../../test/support/notices.ts'
import { until } from '../../platform/process/test-wait.ts'
import { noticeHandlers } from './handlers.ts'
import type { Receiver, SendResult } from './receivers.ts'

const HOUR_MS = 3_600_000

/** Notices with one receiver, which responds as `respond` says and records the ids of its attempts. */
function setUp() {
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
  return { on, ...setUpNotices(() => [receiver]) }
}

const failed = (): SendResult => ({ ok: false, reason: 'refused' })

test('a receiver that fails is called less and less often; a test is sent to it at once', async () => {
  const { on, clock, start, set } = setUp()
  await using notices = await start()
  on.respond = failed
  set([nodeDown('a')])
  for (let checks = 0; checks < (HOUR_MS - CHECK_MS) / CHECK_MS; checks++) await clock.advanceAsync(CHECK_MS)
  assert.ok(on.sent.length >= 5 && on.sent.length < 16, `${on.sent.length} attempts in 240 checks`)
  on.respond = () => ({ ok: true })
  const attempts = on.sent.length
  await notices.test()
  await clock.advanceAsync(0)
  assert.equal(on.sent.length, attempts + 2, 'the one that waits, then the test')
  // After a success the delays begin anew.
  on.respond = failed
  set([nodeDown('a'), nodeDown('b')])
  await clock.advanceAsync(CHECK_MS)
  await clock.advanceAsync(CHECK_MS)
  assert.equal(on.sent.length, attempts + 4)
})

test('a notice that was given up does not keep the next one waiting', async () => {
  const { on, clock, start, set } = setUp()
  await using notices = await start()
  on.respond = () => (on.sent.length === 1 ? { ok: false, reason: 'gone', isFinal: true } : { ok: true })
  set([nodeDown('a'), nodeDown('b')])
  await clock.advanceAsync(CHECK_MS)
  const states = () => notices.list().map(({ deliveries }) => deliveries[0]?.state)
  await until('both are settled', () => !states().includes('waiting'))
  assert.deepEqual(states(), ['delivered', 'given-up'])
})

test('a condition that is gone is forgotten on the disk too: after a restart it causes a notice again', async () => {
  const { on, clock, file, start, set } = setUp()
  {
    await using _notices = await start()
    set([nodeDown('a')])
    await clock.advanceAsync(CHECK_MS)
    set([])
    await clock.advanceAsync(CHECK_MS)
    assert.match(file.text ?? '', /"active":\[\]/)
  }
  await using _notices = await start()
  set([nodeDown('a')])
  await clock.advanceAsync(CHECK_MS)
  assert.equal(new Set(on.sent).size, 2)
})

test('nothing is written while nothing changes', async () => {
  const { clock, file, start, set } = setUp()
  await using _notices = await start()
  set([nodeDown('a')])
  await clock.advanceAsync(CHECK_MS)
  file.text = 'not written'
  await clock.advanceAsync(CHECK_MS)
  assert.equal(file.text, 'not written')
})

test('a file of another form begins anew, and the log has why', async () => {
  for (const text of [
    '{"version":2,"sinceMs":1,"active":[],"notices":[]}',
    '{"version":1,"sinceMs":1,"active":{},"notices":[]}',
    '{"version":1,"sinceMs":1,"active":[]}',
    'null',
  ]) {
    const { file, start } = setUp()
    file.text = text
    await using notices = await start()
    assert.deepEqual(notices.list(), [], text)
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
  assert.equal((await noticeTest({} as never)).status, 201)
  const none = noticeHandlers(undefined)
  await assert.rejects(none.noticeTest({} as never), { code: 'wrong-state', message: /no receiver/ })
})
