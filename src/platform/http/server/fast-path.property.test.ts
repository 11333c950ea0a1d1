import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, mutate, repeatsOf, seedOf } from '../../../../test/support/process/property.ts'
import { systemClock } from '../../process/clock.ts'
import { type ReadRequest, startHttpReaders } from './test-readers.ts'

/**
 * The fast path reads the same requests as node:http from any bytes in any pieces, or refuses them in the same way. Requests are made from parts that are
 * usual, unusual, or used for request smuggling, and then mutated.
 */
type Random = (below: number) => number
type Choices = readonly [string, ...string[]]

const METHODS: Choices = [
  'POST',
  'POST',
  'POST',
  'POST',
  'POST',
  'POST',
  'GET',
  'OPTIONS',
  'HEAD',
  'PUT',
  'post',
  'POST\t',
  'PRI',
]
const TARGETS: Choices = [
  '/',
  '/',
  '/',
  '/',
  '/?api-key=slc_x',
  '/?a=%2f&b=+',
  '/?',
  '/?a#b',
  '/v1',
  '//',
  '*',
  'http://h/',
  '/?a b',
  '/?\x80',
]
const VERSIONS: Choices = [
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/2.0',
  'http/1.1',
  'HTTP/1.1 ',
  'HTTP/1.10',
]
const BODIES: Choices = [
  '',
  '{}',
  '{"jsonrpc":"2.0","id":1,"method":"getSlot"}',
  '\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: h\r\n\r\n',
  '0\r\n\r\n',
  'x'.repeat(3000),
]
const FIELDS: Choices = [
  'Host: localhost:8899',
  'host: h',
  'Content-Type: application/json',
  'content-type: application/json; charset=utf-8',
  'Accept: */*',
  'accept-encoding: br,gzip,deflate',
  'X-Token: slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2',
  'x-token: other',
  'x_token: ignored',
  'Authorization: Bearer slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2',
  'x-api-key: k',
  'Connection: keep-alive',
  'Connection: Keep-Alive',
  'Connection: close',
  'Connection: keep-alive\r\nConnection: keep-alive',
  'Connection: upgrade',
  'Connection: keep-alive, x-token',
  'Upgrade: h2c',
  'Expect: 100-continue',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: identity',
  'transfer-encoding:\tchunked',
  'Transfer-Encoding : chunked',
  'Content-Length : 3',
  'TE: trailers',
  'Trailer: x-token',
  'x-empty:',
  'x-spaces:   a  ',
  'x-tab:\ta',
  'x-high: \xe4\xf6',
  'x-nul: \0',
  'x-folded: a\r\n b',
  'x-bare: a\rb',
  'x-lf: a\nContent-Length: 5',
  ': no-name',
  'no-colon',
  ' leading: a',
  'x-long: '.padEnd(5000, 'y'),
]

const pick = (random: Random, from: Choices): string => from[random(from.length)] ?? from[0]

function makeRequest(random: Random): string {
  const isTame = random(6) > 0
  const body = pick(random, BODIES)
  const fields = ['Host: h', 'Content-Type: application/json', 'x-token: t']
  if (random(8) > 0 || isTame) fields.push(`Content-Length: ${lengthOf(random, body.length, isTame)}`)
  if (!isTame && random(6) === 0) fields.push(`Content-Length: ${lengthOf(random, body.length, false)}`)
  for (let more = random(isTame ? (random(4) === 0 ? 2 : 1) : 5); more > 0; more--)
    fields.splice(random(fields.length + 1), 0, pick(random, FIELDS))
  if (!isTame && random(4) === 0) fields.splice(random(fields.length), 1)
  const line = isTame
    ? `POST ${pick(random, ['/', '/?api-key=slc_x'])} HTTP/1.1`
    : `${pick(random, METHODS)} ${pick(random, TARGETS)} ${pick(random, VERSIONS)}`
  const isChunked = fields.some((field) => /^transfer-encoding/i.test(field)) && random(2) === 0
  const end = !isTame && random(10) === 0 ? '\n' : '\r\n'
  return (
    [line, ...fields, '', ''].join(end) + (isChunked ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body)
  )
}

function lengthOf(random: Random, length: number, isTame: boolean): string {
  if (isTame) return String(length)
  return pick(random, [
    String(length),
    String(length),
    `0${length}`,
    `+${length}`,
    `${length}, ${length}`,
    '-1',
    '0x5',
    '1e1',
    String(length + 1),
    String(Math.max(0, length - 1)),
    '99999999',
    '18446744073709551617',
  ])
}

/** Splits the bytes at some offsets, at none, or behind each of the first ones. */
function split(random: Random, bytes: Buffer): Buffer[] {
  const cuts = new Set<number>()
  const way = random(4)
  if (way === 1) for (let left = 1 + random(4); left > 0; left--) cuts.add(random(bytes.length + 1))
  if (way === 2) for (let at = 0; at < Math.min(bytes.length, 40); at++) cuts.add(at)
  const positions = [...cuts, bytes.length].toSorted((a, b) => a - b)
  let from = 0
  const chunks: Buffer[] = []
  for (const to of positions) {
    if (to > from) chunks.push(bytes.subarray(from, to))
    from = to
  }
  return chunks
}

const essence = ({ method, target, headers }: ReadRequest) => ({ method, target, headers })

test('the fast path and node:http read the same requests, or refuse them in the same way', async (t) => {
  await using readers = await startHttpReaders(systemClock)
  const random = createRandom(seedOf(t))
  const cases = repeatsOf({ short: 4000, full: 100_000 })
  const seen = { fastPath: 0, handedOver: 0, refused: 0 }
  for (let done = 0; done < cases; done++) {
    const requests = Array.from({ length: 1 + random(3) }, () => makeRequest(random))
    const joined = Buffer.from(requests.join(''), 'latin1')
    const bytes = random(3) > 0 ? joined : Buffer.from(mutate(joined, random))
    const chunks = split(random, bytes)
    const [fastPath, node] = [await readers.fastPath(chunks), await readers.node(chunks)]
    const message = JSON.stringify(chunks.map((chunk) => chunk.toString('latin1')))
    // The head of a POST whose body is refused is validated where no request is before it, and not where one is. For the fallback of the fast path more
    // requests are the first of their connection.
    const isInterrupted = node.refusal !== undefined && fastPath.requests.length === node.requests.length + 1
    if (isInterrupted) assert.equal(fastPath.requests.pop()?.body, undefined, message)
    assert.deepEqual(fastPath.requests.map(essence), node.requests.map(essence), message)
    // node:http responds 417 to an unknown expectation after the earlier responses; the refusal of what follows may come first.
    const hasExpectation = /expect *:/i.test(bytes.toString('latin1'))
    const isOvertaken =
      hasExpectation && fastPath.refusal?.startsWith('417') === true && node.refusal?.startsWith('400') === true
    // Where the response to a request with an expectation begins early, node:http writes no 100 Continue and closes the connection after it.
    const isEnded = hasExpectation && node.refusal === undefined && fastPath.refusal === '400 malformed-request'
    if (!isOvertaken && !isEnded) assert.equal(fastPath.refusal, node.refusal, message)
    // A refusal of what follows may discard a body that node:http had read; the fast path never discards one.
    fastPath.requests.forEach(({ body }, at) => {
      const other = node.requests[at]?.body
      if (other !== undefined) assert.equal(body, other, message)
      else if (node.refusal === undefined) assert.equal(body, undefined, message)
    })
    if (fastPath.refusal !== undefined) seen.refused += 1
    if (fastPath.handedOver) seen.handedOver += 1
    else seen.fastPath += fastPath.requests.length
  }
  t.diagnostic(JSON.stringify(seen))
  assert(seen.fastPath > cases / 4 && seen.handedOver > cases / 10 && seen.refused > cases / 20, JSON.stringify(seen))
})

test('a request may be split at every byte, alone and behind another', async () => {
  await using readers = await startHttpReaders(systemClock)
  const head = 'POST /?api-key=a HTTP/1.1\r\nHost: h\r\nx-token: t\r\nContent-Length: 5\r\n\r\n'
  const single = Buffer.from(`${head}hello`)
  const chunked = 'POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'
  const several = Buffer.from(`${head}hello${head}world${chunked}${head}again`)
  for (const bytes of [single, several]) {
    const expected = (await readers.node([bytes])).requests
    assert(expected.every(({ body }) => body !== undefined))
    for (let at = 0; at <= bytes.length; at++) {
      const { requests, refusal } = await readers.fastPath([bytes.subarray(0, at), bytes.subarray(at)])
      assert.equal(refusal, undefined)
      assert.deepEqual(requests, expected, `split at ${at}`)
    }
  }
})

/** Fields that change the framing or the connection, and spellings of usual ones that parsers read differently. */
const NEVER_ON_THE_FAST_PATH = [
  'TE: trailers',
  'te: x',
  'Trailer: x-token',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: identity',
  'Expect: 100-continue',
  'Upgrade: h2c',
  'Keep-Alive: 5',
  'Proxy-Connection: keep-alive',
  'HTTP2-Settings: AAMAAABkAAQAAP__',
  'Connection: close',
  'Connection: keep-alive\r\nConnection: keep-alive',
  'Connection: keep-alive, te',
  'Content-Length: 2',
  'Content-Length: 02',
  'Content-Length: +2',
  'Host: other',
  'x-empty:',
  'x-tab:\ta',
]

test('fields that change the framing leave the fast path, first on a connection or behind another request', async () => {
  await using readers = await startHttpReaders(systemClock)
  const request = (field: string) => Buffer.from(`POST / HTTP/1.1\r\nHost: h\r\n${field}Content-Length: 2\r\n\r\n{}`)
  const usual = request('')
  assert.equal((await readers.fastPath([usual, usual, usual])).handedOver, false)
  for (const field of NEVER_ON_THE_FAST_PATH) {
    const unusual = request(`${field}\r\n`)
    assert.equal((await readers.fastPath([unusual])).handedOver, true, field)
    assert.equal((await readers.fastPath([usual, usual, unusual])).handedOver, true, field)
  }
})
