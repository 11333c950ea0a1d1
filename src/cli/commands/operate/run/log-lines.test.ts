import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AccessSnapshot } from '../../../../access/snapshot/snapshot.ts'
import type { Subscription } from '../../../../access/store/model.ts'
import { createManualClock } from '../../../../core/clock.ts'
import { isServiceError } from '../../../../core/error.ts'
import { createLogTap } from '../../../../platform/telemetry/log-tap.ts'
import { createLogger } from '../../../../platform/telemetry/logger.ts'
import { type LogRequest, logLines, parseLogRequest } from '../../../../processes/compose/process/log-lines.ts'
import { readableLine } from './logs.ts'

const acme = { id: 'sub_1', name: 'acme', customerId: 'cus_1' } as Subscription
let ownNodes: { subscriptionId: string }[] = []
const snapshot = {
  subscription: (id: string) => (id === acme.id ? acme : undefined),
  subscriptions: () => [acme],
  nodes: () => ownNodes.values(),
} as unknown as AccessSnapshot

function open() {
  ownNodes = []
  const clock = createManualClock()
  const used = { calls: 0, units: 0, refused: 0, streams: 0 }
  const tap = createLogTap({ write() {} })
  const log = createLogger({ level: 'debug', destination: tap })
  const leave = new AbortController()
  const lines = (request: Partial<LogRequest>) =>
    logLines(
      tap,
      { lines: 100, follow: false, ...request },
      { snapshot, signal: leave.signal, clock, ratesOf: () => ({ ...used }) },
    )
  const message = async (request: Partial<LogRequest>) =>
    (await Array.fromAsync(lines(request))).map((line) => (JSON.parse(line) as { msg: string }).msg)
  return { log, tap, leave, lines, printed: message, clock, used }
}

test('filters by subscription name or id and by level, and returns the newest lines', async () => {
  const { log, printed: message } = open()
  log.info({ subscription: 'sub_1' }, 'one')
  log.warn({ subscription: 'sub_1' }, 'two')
  log.warn({ subscription: 'sub_2' }, 'of another')
  log.debug('small')
  assert.deepEqual(await message({}), ['one', 'two', 'of another', 'small'])
  assert.deepEqual(await message({ sub: 'acme' }), ['one', 'two'])
  assert.deepEqual(await message({ sub: 'sub_1', level: 'warn' }), ['two'])
  assert.deepEqual(await message({ level: 'info', lines: 1 }), ['of another'])
  assert.deepEqual(await message({ lines: 0 }), [])
  await assert.rejects(message({ sub: 'nobody' }), (error) => isServiceError(error, 'not-found'))
})

test('a subscription filter includes its customer and its nodes, and no others', async () => {
  const { log, printed: message } = open()
  log.info({ customer: 'cus_1' }, 'its customer was suspended')
  log.info({ customer: 'cus_2' }, 'another customer')
  log.info({ part: 'upstreams', upstream: 'a' }, 'a shared node fails')
  log.info({ part: 'upstreams', upstream: 'b', subscription: 'sub_2' }, 'a node of another')
  log.info({ part: 'upstreams', upstream: 'c', subscription: 'sub_1' }, 'a node of its own')
  log.info({ part: 'shreds', reason: 'sub_1' }, 'names it by accident')
  assert.deepEqual(await message({ sub: 'acme' }), [
    'its customer was suspended',
    'a shared node fails',
    'a node of its own',
  ])
  ownNodes = [{ subscriptionId: 'sub_1' }]
  assert.deepEqual(await message({ sub: 'acme' }), ['its customer was suspended', 'a node of its own'])
})

test('following one subscription prints its rates while it is active', async () => {
  const { log, clock, used, leave, lines } = open()
  const following = lines({ follow: true, lines: 0, sub: 'acme' })
  const first = following.next()
  await new Promise(setImmediate)
  await clock.advanceAsync(20_000)
  Object.assign(used, { calls: 125, units: 300, refused: 5, streams: 2 })
  await clock.advanceAsync(10_000)
  const { msg, subscription, calls, units, refused, streams } = JSON.parse((await first).value as string) as never
  assert.deepEqual(
    { msg, subscription, calls, units, refused, streams },
    { msg: 'rates per second', subscription: 'sub_1', calls: 12.5, units: 30, refused: 0.5, streams: 2 },
  )
  log.info({ subscription: 'sub_1' }, 'still heard')
  assert.match((await following.next()).value as string, /still heard/)
  leave.abort()
  assert.equal((await following.next()).done, true)
  assert.equal(clock.pendingTimers(), 0)
})

test('following prints past lines, then new ones, and no line twice', async () => {
  const { log, leave, lines } = open()
  log.info('past')
  const following = lines({ follow: true })
  assert.match((await following.next()).value as string, /past/)
  log.info('came')
  assert.match((await following.next()).value as string, /came/)
  leave.abort()
  assert.equal((await following.next()).done, true)
})

test('a slow follower gets the number of lost lines, whatever its filter', async () => {
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

test('an invalid request selects nothing', () => {
  const nothing = { sub: undefined, level: undefined, lines: 0, follow: false }
  for (const params of [undefined, null, { lines: -1, level: 'loud', sub: 3, follow: 'yes' }])
    assert.deepEqual(parseLogRequest(params), nothing)
})

test('a record is one readable line without control characters', () => {
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
