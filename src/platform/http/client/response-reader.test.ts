import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../../core/test-seed.ts'
import {
  type ReadResult,
  type ResponseEvents,
  type ResponseHead,
  ResponseReader,
  type ResponseReaderOptions,
} from './response-reader.ts'

type Read = { result: ReadResult; head: ResponseHead | undefined; body: string; fault: string }

/** Reads the chunks like a connection: each is in the same buffer, which is overwritten afterwards. */
function read(pieces: readonly string[], options: ResponseReaderOptions & { end?: boolean } = {}): Read {
  const shared = Buffer.alloc(Math.max(1, ...pieces.map((piece) => piece.length)))
  let head: ResponseHead | undefined
  let body = ''
  const events: ResponseEvents = {
    onHead(given) {
      assert.equal(head, undefined, 'one head')
      head = given
    },
    onBody(bytes) {
      assert.ok(bytes.length > 0)
      body += bytes.toString('latin1')
    },
  }
  const reader = new ResponseReader(events, options)
  reader.begin()
  let result: ReadResult = 'more'
  for (const piece of pieces) {
    shared.fill(0xff)
    shared.write(piece, 'latin1')
    result = reader.push(shared.subarray(0, piece.length))
    if (result === 'fault' || result === 'surplus') break
  }
  if (options.end === true && result === 'more') result = reader.end()
  return { result, head, body, fault: reader.fault }
}

const OK = 'HTTP/1.1 200 OK\r\n'
const chunked = `${OK}Transfer-Encoding: chunked\r\n\r\n`

describe('responses that are accepted', () => {
  const table: [name: string, text: string, body: string, end?: boolean][] = [
    ['a length', `${OK}Content-Length: 5\r\n\r\nhello`, 'hello'],
    ['a length of zero', `${OK}Content-Length: 0\r\n\r\n`, ''],
    ['chunks', `${chunked}5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n`, 'hello!'],
    ['chunks with extensions and trailers', `${chunked}5;a=b\r\nhello\r\n0 ; x\r\nX-A: 1\r\nX-B: 2\r\n\r\n`, 'hello'],
    ['chunk sizes in both cases', `${chunked}a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n`, '01234567890123456789'],
    ['a body that ends with the connection', `${OK}\r\nhello`, 'hello', true],
    ['an empty body that ends with the connection', `${OK}\r\n`, '', true],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi', 'hi'],
    ['no reason', 'HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi', 'hi'],
    [
      'interim responses',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n${OK}Content-Length: 1\r\n\r\nx`,
      'x',
    ],
    ['no content', 'HTTP/1.1 204 No Content\r\n\r\n', ''],
    ['odd spacing and case', `${OK}CONTENT-length:\t 5 \t\r\nx-y:\r\n\r\nhello`, 'hello'],
  ]
  for (const [name, text, body, end = false] of table) {
    test(name, () => {
      const whole = read([text], { end })
      assert.deepEqual([whole.result, whole.body, whole.fault], ['done', body, ''])
    })
    test(`${name}, split at every byte and byte by byte`, () => {
      const whole = read([text], { end })
      for (let at = 1; at < text.length; at++) {
        assert.deepEqual(read([text.slice(0, at), text.slice(at)], { end }), whole, `split at ${at}`)
      }
      assert.deepEqual(read(text.split(''), { end }), whole)
    })
  }

  test('parses the head', () => {
    const { head } = read([
      `HTTP/1.1 429 Slow\r\nContent-Type: application/json\r\nRetry-After: 3\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5, max=3\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n`,
    ])
    assert.deepEqual(head, {
      status: 429,
      bodyBytes: 0,
      keepsAlive: true,
      idleHintMs: 5000,
    })
  })

  test('determines whether the connection can be reused', () => {
    const keeps = (head: string) => read([`${head}Content-Length: 0\r\n\r\n`]).head?.keepsAlive
    assert.equal(keeps(OK), true)
    assert.equal(keeps(`${OK}Connection: Close\r\n`), false)
    assert.equal(keeps(`${OK}Connection: x\r\nConnection: foo, close\r\n`), false)
    assert.equal(keeps('HTTP/1.0 200 OK\r\n'), false)
    assert.equal(keeps('HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n'), true)
    assert.equal(keeps('HTTP/1.1 204 None\r\n'), false)
    assert.equal(read([`${OK}\r\n`]).head?.keepsAlive, false)
  })

  test('bytes after a response are surplus', () => {
    for (const text of [
      `${OK}Content-Length: 1\r\n\r\nx`,
      `${chunked}1\r\nx\r\n0\r\n\r\n`,
      'HTTP/1.1 204 None\r\n\r\n',
    ]) {
      assert.equal(read([`${text}H`]).result, 'surplus', text)
      assert.equal(read([text, 'H']).result, 'surplus', text)
    }
  })
})

describe('responses that are refused', () => {
  const table: [name: string, text: string][] = [
    ['two lengths', `${OK}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx`],
    ['a list of lengths', `${OK}Content-Length: 1, 1\r\n\r\nx`],
    ['length and chunks', `${OK}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`],
    ['a coding that is not chunked', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n`],
    ['two codings', `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`],
    ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['a negative length', `${OK}Content-Length: -1\r\n\r\n`],
    ['a length in hex', `${OK}Content-Length: 0x5\r\n\r\n`],
    ['a length with a sign', `${OK}Content-Length: +5\r\n\r\n`],
    ['an enormous length', `${OK}Content-Length: 9999999999999999\r\n\r\n`],
    ['a folded line', `${OK}X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n`],
    ['a bare line feed', `${OK}X-A: b\nContent-Length: 0\r\n\r\n`],
    ['a bare carriage return', `${OK}X-A: b\rContent-Length: 0\r\n\r\n`],
    ['a NUL', `${OK}X-A: \0\r\n\r\n`],
    ['a space before the colon', `${OK}Content-Length : 0\r\n\r\n`],
    ['an empty name', `${OK}: 0\r\n\r\n`],
    ['no colon', `${OK}Content-Length\r\n\r\n`],
    ['HTTP/2', 'HTTP/2 200 OK\r\n\r\n'],
    ['HTTP/1.2', 'HTTP/1.2 200 OK\r\n\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a status of the six hundreds', 'HTTP/1.1 600 OK\r\n\r\n'],
    ['another protocol', 'SSH-2.0-x\r\n\r\n'],
    ['switching protocols', 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n'],
    ['interim responses without end', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(9)],
    ['a chunk without size', `${chunked}\r\n`],
    ['a chunk size that is none', `${chunked}wait\r\n`],
    ['a chunk size with a sign', `${chunked}+5\r\n`],
    ['a chunk size that is too long', `${chunked}00000000000005\r\n`],
    ['a chunk line that ends in a bare line feed', `${chunked}5\nhello\r\n`],
    ['a chunk longer than its length', `${chunked}2\r\nhello\r\n`],
    ['a bad trailer', `${chunked}0\r\nbad trailer\r\n\r\n`],
    ['a chunk extension without end', `${chunked}5;${'x'.repeat(300)}`],
    ['a head without end', `${OK}X-A: ${'x'.repeat(20_000)}`],
    ['too many headers', `${OK}${'X-A: b\r\n'.repeat(101)}\r\n`],
    ['trailers without end', `${chunked}0\r\nX-A: ${'x'.repeat(20_000)}`],
  ]
  for (const [name, text] of table) {
    test(name, () => {
      const whole = read([text])
      assert.equal(whole.result, 'fault')
      assert.notEqual(whole.fault, '')
      for (let at = 1; at < Math.min(text.length, 400); at++) {
        assert.equal(read([text.slice(0, at), text.slice(at)]).result, 'fault', `split at ${at}`)
      }
    })
  }

  test('a response that is truncated anywhere', () => {
    for (const text of [`${OK}Content-Length: 5\r\n\r\nhello`, `${chunked}5\r\nhello\r\n0\r\n\r\n`]) {
      for (let at = 0; at < text.length; at++) {
        const reader = new ResponseReader({ onHead() {}, onBody() {} })
        reader.begin()
        assert.equal(reader.push(Buffer.from(text.slice(0, at))), 'more')
        assert.equal(reader.end(), 'fault', `cut at ${at}`)
      }
    }
  })

  test('a body over the limit, in every framing', () => {
    const options = { bodyBytesMax: 4 }
    assert.equal(read([`${OK}Content-Length: 5\r\n\r\n`], options).result, 'fault')
    assert.equal(read([`${chunked}2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n`], options).result, 'fault')
    assert.equal(read([`${OK}\r\nabcde`], options).result, 'fault')
    assert.equal(read([`${OK}Content-Length: 4\r\n\r\nabcd`], options).result, 'done')
  })
})

test('property: bodies in any framing and any split are unchanged', () => {
  const piecesOf = (text: string, cuts: readonly number[]) => {
    const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].toSorted((a, b) => a - b)
    return [0, ...at].map((from, index) => text.slice(from, at[index] ?? text.length)).filter((piece) => piece !== '')
  }
  const latin1 = fc.string({
    unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
    maxLength: 400,
  })
  fc.assert(
    fc.property(
      fc.constantFrom('length', 'chunked', 'close'),
      fc.array(
        latin1.filter((text) => text !== ''),
        { maxLength: 8 },
      ),
      fc.array(fc.nat(), { maxLength: 12 }),
      (framing, parts, cuts) => {
        const body = parts.join('')
        const text =
          framing === 'length'
            ? `${OK}Content-Length: ${body.length}\r\n\r\n${body}`
            : framing === 'close'
              ? `${OK}\r\n${body}`
              : `${chunked}${parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`
        const found = read(piecesOf(text, cuts), { end: framing === 'close' })
        assert.deepEqual([found.result, found.body], ['done', body])
      },
    ),
    seedFor('response reader', 400),
  )
})

test('property: never throws, and a fault stays a fault', () => {
  const words = [
    'HTTP/1.1 200 OK',
    '\r\n',
    '\r',
    '\n',
    'Content-Length: ',
    'Transfer-Encoding: chunked',
    '5',
    '0',
    ';',
    ':',
    ' ',
    'x',
    '\0',
  ]
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...words), { maxLength: 40 }),
      fc.array(fc.nat(), { maxLength: 6 }),
      (parts, cuts) => {
        const text = `HTTP/1.1 200 OK\r\n${parts.join('')}`
        const at = cuts.map((cut) => cut % text.length).toSorted((a, b) => a - b)
        const pieces = [0, ...at]
          .map((from, index) => text.slice(from, at[index] ?? text.length))
          .filter((piece) => piece !== '')
        const whole = read([text])
        const split = read(pieces)
        assert.deepEqual([split.result, split.body], [whole.result, whole.body])
      },
    ),
    seedFor('response reader, hostile', 2000),
  )
})
