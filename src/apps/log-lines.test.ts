import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Subscription } from '../access/model.ts'
import type { AccessSnapshot } from '../access/snapshot.ts'
import { isServiceError } from '../core/service-error.ts'
import { createLogTap } from '../host/log-tap.ts'
import { createLogger } from '../host/logger.ts'
import { readableLine } from './commands/run/logs.ts'
import { type LogRequest, logLines, parseLogRequest } from './log-lines.ts'

const acme = { id: 'sub_1', name: 'acme' } as Subscription
const snapshot = {
  subscription: (id: string) => (id === acme.id ? acme : undefined),
  subscriptions: () => [acme],
} as unknown as AccessSnapshot

function open() {
  const tap = createLogTap({ write() {} })
  const log = createLogger({ level: 'debug', destination: tap })
  const leave = new AbortController()
  const lines = (request: Partial<LogRequest>) =>
    logLines(tap, { lines: 100, follow: false, ...request }, { snapshot, signal: leave.signal })
  const said = async (request: Partial<LogRequest>) =>
    (await Array.fromAsync(lines(request))).map((line) => (JSON.parse(line) as { msg: string }).msg)
  return { log, tap, leave, lines, said }
}

test('lines of one subscription by its name or id, of a level and above, the newest', async () => {
  const { log, said } = open()
  log.info({ subscription: 'sub_1' }, 'one')
  log.warn({ subscription: 'sub_1' }, 'two')
  log.warn({ subscription: 'sub_2' }, 'of another')
  log.debug('small')
  assert.deepEqual(await said({}), ['one', 'two', 'of another', 'small'])
  assert.deepEqual(await said({ sub: 'acme' }), ['one', 'two'])
  assert.deepEqual(await said({ sub: 'sub_1', level: 'warn' }), ['two'])
  assert.deepEqual(await said({ level: 'info', lines: 1 }), ['of another'])
  assert.deepEqual(await said({ lines: 0 }), [])
  await assert.rejects(said({ sub: 'nobody' }), (error) => isServiceError(error, 'not-found'))
})

test('a follower gets the past, then what comes, and no line twice', async () => {
  const { log, leave, lines } = open()
  log.info('past')
  const following = lines({ follow: true })
  assert.match((await following.next()).value as string, /past/)
  log.info('came')
  assert.match((await following.next()).value as string, /came/)
  leave.abort()
  assert.equal((await following.next()).done, true)
})

test('a follower that fell behind is told so, whatever it asked for', async () => {
  const { log, tap, leave, lines } = open()
  const following = lines({ follow: true, lines: 0, sub: 'acme' })
  const first = following.next()
  log.info({ subscription: 'sub_1' }, 'first')
  await first
  for (let n = 0; n < 10_010; n++) tap.write(`{"level":"info","subscription":"sub_1","n":${n}}\n`)
  assert.match((await following.next()).value as string, /"lost":10,/)
  leave.abort()
  await following.return(undefined)
})

test('a request that makes no sense asks for nothing', () => {
  const nothing = { sub: undefined, level: undefined, lines: 0, follow: false }
  for (const params of [undefined, null, { lines: -1, level: 'loud', sub: 3, follow: 'yes' }])
    assert.deepEqual(parseLogRequest(params), nothing)
})

test('a record is one readable line, and cannot steer the terminal', () => {
  const record = {
    level: 'warn',
    time: '2027-01-01T10:00:00.000Z',
    part: 'shreds',
    reason: 'a\u001b[2J b',
    n: 3,
    msg: 'lost',
  }
  const line = readableLine(JSON.stringify(record))
  assert.equal(line, '2027-01-01 10:00:00.000  WARN   shreds      lost  reason="a\\u001b[2J b"  n=3')
  assert.ok(!line.includes('\u001b'))
})
