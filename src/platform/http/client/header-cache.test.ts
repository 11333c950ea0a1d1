import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../../core/test-seed.ts'
import { HeaderCache } from './header-cache.ts'
import { type ResponseHead, ResponseReader } from './response-reader.ts'

const head = (length: string, name = 'Content-Length') =>
  `POST / HTTP/1.1\r\nHost: h\r\n${name}: ${length}\r\nx-token: t\r\n\r\n`

function remembered(text: string, length: number): HeaderCache<string> {
  const cache = new HeaderCache<string>()
  cache.remember(Buffer.from(text, 'latin1'), { from: 0, to: text.length }, length, 'value')
  return cache
}

describe('header cache', () => {
  test('matches the cache head at any offset and with any other length', () => {
    const cache = remembered(head('12'), 12)
    for (const [before, length] of [
      ['', '12'],
      ['xyz', '12'],
      ['', '7'],
      ['..', '1234567'],
      ['', '99'],
    ] as const) {
      const bytes = Buffer.from(`${before}${head(length)}body`)
      assert(cache.matches(bytes, before.length), length)
      assert.equal(cache.length, Number(length))
      assert.equal(bytes.toString('latin1', cache.bodyAt), 'body')
      assert.equal(cache.value, 'value')
    }
  })

  test('does not match a different byte, a missing byte or a length in another form', () => {
    const cache = remembered(head('12'), 12)
    const text = head('12')
    const from = text.indexOf('12')
    for (let at = 0; at < text.length; at++) {
      const isDigit = at === from || at === from + 1
      const bytes = Buffer.from(text)
      bytes[at] = isDigit ? 0x78 : (bytes[at] as number) ^ 1
      assert(!cache.matches(bytes, 0), `byte ${at}`)
      assert(!cache.matches(Buffer.from(text.slice(0, at)), 0), `cut at ${at}`)
    }
    for (const length of ['', '0', '012', '+12', ' 12', '12 ', '12,12', '1 2', '12345678', '0x12', '1e1']) {
      assert(!cache.matches(Buffer.from(head(length)), 0), length)
    }
  })

  test('caches only a head with one Content-Length in its usual form', () => {
    for (const [text, length] of [
      [head('12').replace(': 12', ':12'), 12],
      [head('12', 'CONTENT-length'), 12],
    ] as const) {
      assert(remembered(text, length).matches(Buffer.from(text), 0), text)
    }
    for (const [text, length] of [
      [head(' 12'), 12],
      [head('012'), 12],
      [head('12 '), 12],
      [head('0'), 0],
      [head('12345678'), 12345678],
      [head('12', 'x-content-length'), 12],
      [head('13'), 12],
      ['POST / HTTP/1.1\r\n\r\n', 12],
    ] as const) {
      assert(!remembered(text, length).matches(Buffer.from(text), 0), text)
    }
  })

  test('matches nothing before remember and after clear', () => {
    const cache = new HeaderCache<string>()
    assert(!cache.matches(Buffer.from(head('12')), 0))
    cache.remember(Buffer.from(head('12')), { from: 0, to: head('12').length }, 12, 'value')
    cache.clear()
    assert(!cache.matches(Buffer.from(head('12')), 0))
    assert.equal(cache.value, undefined)
  })
})

/** What a reader returns for consecutive responses. */
function read(
  responses: readonly string[],
  readerFor: () => ResponseReader,
  reported: (ResponseHead | string)[],
): void {
  let reader = readerFor()
  for (const response of responses) {
    reader.begin()
    const result = reader.push(Buffer.from(response, 'latin1'))
    reported.push(result === 'fault' ? reader.fault : result)
    // Like a connection: an unexpected result ends it.
    if (result !== 'done') reader = readerFor()
  }
}

test('property: a reader of many responses returns for each what a new reader would', () => {
  const fields = [
    'Connection: keep-alive',
    'connection: close',
    'Keep-Alive: timeout=5',
    'Date: today',
    'Transfer-Encoding: chunked',
  ]
  const response = fc
    .tuple(
      fc.constantFrom('200 OK', '200 OK', '200 OK', '204 No Content', '503 No'),
      fc.subarray(fields),
      fc.constantFrom('3', '3', '12', '0', '03', ' 3', '3\r\nContent-Length: 3', 'x'),
      fc.constantFrom('abc', 'abc', 'abcdefghijkl', ''),
    )
    .map(([status, some, length, body]) =>
      [`HTTP/1.1 ${status}`, ...some, `Content-Length: ${length}`, '', body].join('\r\n'),
    )
  fc.assert(
    fc.property(fc.array(response, { minLength: 2, maxLength: 8 }), (responses) => {
      const fresh: (ResponseHead | string)[] = []
      const kept: (ResponseHead | string)[] = []
      const eventsOf = (reported: (ResponseHead | string)[]) => ({
        onHead: (one: ResponseHead) => void reported.push(one),
        onBody: (bytes: Buffer) => void reported.push(bytes.toString('latin1')),
      })
      for (const one of responses) read([one], () => new ResponseReader(eventsOf(fresh)), fresh)
      read(responses, () => new ResponseReader(eventsOf(kept)), kept)
      assert.deepEqual(kept, fresh)
    }),
    seedFor('responses of one connection', 500),
  )
})
