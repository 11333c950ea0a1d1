import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { ServiceError } from '../../core/error.ts'
import { seedFor } from '../../core/test-seed.ts'
import { createLogger, silentLogger } from './logger.ts'

const TOKEN = 'slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2'
const BODY = TOKEN.slice(4, 36)

function capture(level = 'trace') {
  let text = ''
  const destination = new Writable({
    write(chunk, _encoding, done) {
      text += String(chunk)
      done()
    },
  })
  const log = createLogger({ level, destination })
  return {
    log,
    text: () => text,
    records: () =>
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>),
  }
}

test('one JSON record a line, with level, time, fields and message', () => {
  const { log, records } = capture()
  log.info({ slot: 7n, ok: true, at: new Date(0), bytes: Buffer.alloc(3), list: [1, undefined] }, 'hello')
  log.warn('only text')
  const [first, second] = records()
  assert.match(String(first?.['time']), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  assert.deepEqual(
    { ...first, time: 0 },
    {
      level: 'info',
      time: 0,
      slot: '7',
      ok: true,
      at: '1970-01-01T00:00:00.000Z',
      bytes: '[3 bytes]',
      list: [1, null],
      msg: 'hello',
    },
  )
  assert.equal(second?.['msg'], 'only text')
  assert.equal(second?.['level'], 'warn')
})

test('levels: below is not written; children follow the parent; an unknown level counts as info', () => {
  const { log, text } = capture('info')
  const child = log.child({ part: 'shreds' })
  child.debug('no')
  assert.equal(text(), '')
  log.level = 'debug'
  child.debug('yes')
  assert.match(text(), /"part":"shreds".*"yes"/)
  log.level = 'nonsense'
  child.debug('again no')
  child.info('again yes')
  assert.equal(text().split('\n').length, 3)
})

test('fields with secret names are masked at any depth, in header lists and in child loggers', () => {
  const { log, text, records } = capture()
  const secrets = {
    'x-token': TOKEN,
    authorization: ['Bearer zzzzzzzzzzzzzzzzzz99'],
    'x-api-key': 'hunter22',
    api_key: 'hunter22',
  }
  log
    .child({ headers: secrets })
    .info({ request: { headers: secrets, deep: { password: 12345, ticket: { a: 'hunter22' } } } }, 'x')
  log.info({ rawHeaders: ['Host', 'h', 'x-token', 'hunter22'], map: new Map([['password', 'hunter22']]) }, 'y')
  assert(!/hunter22|zzzzzzzz|12345\D/.test(text().replaceAll(/"time":"[^"]*"/g, '')), text())
  assert(!text().includes(BODY), text())
  assert.deepEqual(records()[0]?.['headers'], {
    'x-token': '[redacted:gkA2]',
    authorization: ['[redacted:zz99]'],
    'x-api-key': '[redacted]',
    api_key: '[redacted]',
  })
})

test('errors keep code, fields, fix and cause; their texts are masked', () => {
  const { log, text, records } = capture()
  const cause = new Error(`connect postgres://u:hunter22@h/?password=hunter22 ${TOKEN}`)
  log.error(
    { err: new ServiceError('tls-invalid', `no ${TOKEN}`, { fields: { path: '/a' }, fix: 'chmod', cause }) },
    'failed',
  )
  log.error(new TypeError('bare'))
  const [first, second] = records() as { err: Record<string, unknown> }[]
  assert.equal(first?.err['code'], 'tls-invalid')
  assert.deepEqual(first?.err['fields'], { path: '/a' })
  assert.equal(first?.err['fix'], 'chmod')
  assert.deepEqual((first?.err['cause'] as { type: string } | undefined)?.type, 'Error')
  assert.equal(second?.err['message'], 'bare')
  assert(!/hunter22/.test(text()) && !text().includes(BODY), text())
})

test('query strings are not logged', () => {
  const { log, text } = capture()
  log.info({ url: '/v1/x?api-key=hunter22&z=visible', href: new URL('http://h/p?visible=1') }, 'GET /p?visible')
  assert(!/visible|hunter22/.test(text()), text())
})

test('size is bounded: long text, wide and deep objects, cycles', () => {
  const { log, text } = capture()
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`k${n}`, 'v'.repeat(10)]))
  log.info(
    { cycle, wide, long: 'x'.repeat(1_000_000), list: Array.from({ length: 10_000 }, () => 1) },
    'm'.repeat(100_000),
  )
  assert(text().length < 40_000, String(text().length))
  assert.match(text(), /too deep/)
})

test('logs an object with a getter that throws and a field named __proto__', () => {
  const { log, records } = capture()
  const odd = JSON.parse('{"__proto__": {"polluted": 1}}') as object
  Object.defineProperty(odd, 'bad', { enumerable: true, get: () => assert.fail('read') })
  log.info({ odd }, 'x')
  assert.equal((records()[0]?.['odd'] as { bad: string } | undefined)?.bad, '[unreadable]')
  assert.equal(({} as { polluted?: number }).polluted, undefined)
})

test('no text can break a record or imitate one', () => {
  const { log, text, records } = capture()
  const hostile = 'a\n{"level":"fatal","msg":"fake"}\r\n\u2028\u0000\u001b[31m\u009b2J'
  log.child({ [hostile]: hostile }).info({ method: hostile, [hostile]: 1 }, hostile)
  assert.equal(records().length, 1)
  for (const char of ['\u2028', '\u0000', '\u001b', '\u009b', '\r'])
    assert(!text().includes(char), JSON.stringify(char))
})

test('for any logged value, no token appears and each record is one line of JSON', () => {
  const secret = fc.stringMatching(/^[0-9A-Za-z]{38}$/).map((body) => `slc_${body}`)
  const position = fc.constantFrom('message', 'key', 'value', 'nested', 'error', 'bearer', 'query', 'array', 'child')
  fc.assert(
    fc.property(secret, fc.string({ unit: 'binary' }), position, (token, noise, where) => {
      const { log, text, records } = capture()
      const value = `${noise}${token}${noise}`
      if (where === 'message') log.info(value)
      if (where === 'key') log.info({ [value]: 1 }, 'x')
      if (where === 'value') log.info({ noise: value }, noise)
      if (where === 'nested') log.info({ a: { b: [{ c: value }] } }, 'x')
      if (where === 'error') log.error({ err: new Error(value, { cause: value }) }, 'x')
      if (where === 'bearer') log.info({ h: `Bearer ${token}` }, 'x')
      if (where === 'query') log.info({ url: `/?api-key=${token}` }, `/?api_key=${token}`)
      if (where === 'array') log.info({ list: [noise, value] }, 'x')
      if (where === 'child') log.child({ sub: value }).info('x')
      assert(!text().includes(token.slice(4, 38)), text())
      assert.equal(records().length, 1)
      assert.equal(text().split('\n').length, 2)
    }),
    seedFor('logger', 500),
  )
})

test('the silent logger writes nothing', () => {
  silentLogger.child({ a: 1 }).error('x')
  assert.equal(silentLogger.level, 'silent')
})
