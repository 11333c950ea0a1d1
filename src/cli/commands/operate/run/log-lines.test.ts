import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AccessSnapshot } from '../../../../access/snapshot/snapshot.ts'
import type { Subscription } from '../../../../access/store/model.ts'
import { createManualClock } from '../../../../core/clock.ts'
import { isServiceError } from '../../../../core/error.ts'
import { createLogTap } from '../../../../platform/telemetry/log-tap.ts'
import { createLogger } from '../../../../platform/telemetry/logger.ts'
import { createRefusalLog } from '../../../../platform/telemetry/refusal-log.ts'
import { type LogRequest, logLines, parseLogRequest } from '../../../../processes/compose/process/log-lines.ts'
import { readableLine } from '../../../output/log-line.ts'

const acme = { id: 'sub_1', name: 'acme', customerId: 'cus_1' } as Subscription
let ownNodes: { subscriptionId: string }[] = []
const snapshot = {
  subscription: (id: string) => (id === acme.id ? acme : undefined),
  subscriptions: () => [acme],
  customer: (id: string) => (id === 'cus_1' ? { id, name: 'acme-corp' } : undefined),
  nodes: () => ownNodes.values(),
} as unknown as AccessSnapshot

/** After every line of the logger. */
const LATER_MS = Date.UTC(2100, 0, 1)

function open() {
  ownNodes = []
  const clock = createManualClock()
  const used = { calls: 0, units: 0, refused: 0, streams: 0 }
  const tap = createLogTap({ write() {} })
  const refusals = createRefusalLog({ clock: { nowMs: () => LATER_MS } })
  const log = createLogger({ level: 'debug', destination: tap })
  const leave = new AbortController()
  const lines = (request: Partial<LogRequest>) =>
    logLines(
      { log: tap, refusals },
      { lines: 100, follow: false, ...request },
      { snapshot: () => snapshot, signal: leave.signal, clock, ratesOf: () => ({ ...used }) },
    )
  const message = async (request: Partial<LogRequest>) =>
    (await Array.fromAsync(lines(request))).map((line) => (JSON.parse(line) as { msg: string }).msg)
  return { log, tap, refusals, leave, lines, printed: message, clock, used }
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

test('the search for a name yields to the event loop', async () => {
  const all = Array.from({ length: 20 }, (_, n) => ({ ...acme, id: `sub_${n}`, name: `acme-${n}` }))
  let turns = 0
  const lines = logLines(
    { log: createLogTap({ write() {} }) },
    { lines: 1, follow: false, sub: 'acme-19' },
    {
      snapshot: () => ({ ...snapshot, subscriptions: () => all }),
      signal: new AbortController().signal,
      clock: createManualClock(),
      ratesOf: () => ({ calls: 0, units: 0, refused: 0, streams: 0 }),
      slices: () => ({ isSpent: () => true, yield: async () => void (turns += 1) }),
    },
  )
  assert.deepEqual(await Array.fromAsync(lines), [])
  assert.equal(turns, 19)
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

test('lines have the names of their subscription and customer, and keep what was logged', async () => {
  const { log, lines } = open()
  log.info({ subscription: 'sub_1' }, 'of a subscription')
  log.info({ customer: 'cus_1' }, 'of a customer')
  log.info({ subscription: 'sub_unknown' }, 'of an unknown one')
  const found = (await Array.fromAsync(lines({}))).map((line) => JSON.parse(line) as Record<string, unknown>)
  assert.deepEqual(
    found.map(({ subscription, subscription_name, customer_name }) => [subscription, subscription_name, customer_name]),
    [
      ['sub_1', 'acme', 'acme-corp'],
      [undefined, undefined, 'acme-corp'],
      ['sub_unknown', undefined, undefined],
    ],
  )
  const [line] = await Array.fromAsync(lines({ lines: 3 }))
  assert.match(readableLine(line as string), /of a subscription  subscription="acme \(sub_1\)"  customer=acme-corp$/)
})

test('a request id finds its refusals and log lines, past and coming, and no others', async () => {
  const { log, refusals, leave, lines } = open()
  const refused = { interface: 'rpc', subscription: 'sub_1', error: 'rate-limited', limit: 'unitsPerSecond' } as const
  refusals.record({ ...refused, requestId: 'req-1', message: 'limit reached' })
  refusals.record({ ...refused, requestId: 'req-2' })
  log.error({ request_id: 'req-1' }, 'request handler failed')
  log.info('something else')
  const following = lines({ request: 'req-1', follow: true })
  const next = async () => JSON.parse((await following.next()).value as string) as Record<string, unknown>
  const past = [await next(), await next()]
  assert.deepEqual(
    past.map(({ msg }) => msg),
    // In the order of their time.
    ['request handler failed', 'refused'],
  )
  const refusal = past[1]
  assert.equal(refusal?.['limit'], 'unitsPerSecond')
  assert.equal(refusal?.['subscription_name'], 'acme')
  refusals.record({ ...refused, requestId: 'req-2' })
  refusals.record({ ...refused, requestId: 'req-1', message: 'the same limit again, in one batch' })
  refusals.record({ requestId: 'req-1', interface: 'ws', message: 'token slc_0123456789abcdefghijk' })
  const came = await next()
  assert.equal(came['interface'], 'ws')
  assert.doesNotMatch(JSON.stringify(came), /slc_0123456789/)
  leave.abort()
  assert.equal((await following.next()).done, true)
})

test('refusals are bounded, and those without a token do not push out those of subscriptions', () => {
  const refusals = createRefusalLog({ clock: createManualClock() })
  refusals.record({ requestId: 'mine', interface: 'rpc', subscription: 'sub_1' })
  for (let n = 0; n < 50_000; n++) refusals.record({ requestId: `guess-${n}`, interface: 'rpc' })
  assert.equal(refusals.of('mine').recent().length, 1)
  assert.equal(refusals.of('guess-0').recent().length, 0)
  assert.equal(refusals.of('guess-49999').recent().length, 1)
  refusals.record({ requestId: 'long', interface: 'indexer', subscription: 'sub_1', message: 'x'.repeat(100_000) })
  assert.ok((refusals.of('long').recent()[0] ?? '').length < 500)
  for (let n = 0; n < 10_000; n++) refusals.record({ requestId: `n-${n}`, interface: 'rpc', subscription: 'sub_1' })
  assert.equal(refusals.of('mine').recent().length, 0)
})

test('an invalid request selects nothing', () => {
  const nothing = { sub: undefined, level: undefined, request: undefined, lines: 0, follow: false }
  for (const params of [undefined, null, { lines: -1, level: 'loud', sub: 3, request: {}, follow: 'yes' }])
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
