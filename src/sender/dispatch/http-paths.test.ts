import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { Secret } from '../../platform/config/secret-ref.ts'
import { parseSenderOptions } from '../options.ts'
import { createHttpPath, createUpstreamPath } from './http-paths.ts'

const JOB = { signature: 's', wire: new Uint8Array(1), body: '{}' }

test('an HTTP path keeps half of its rate and half of its calls for new transactions', async () => {
  // Takes requests and never responds.
  const silent = createServer(() => {})
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  using _closing = { [Symbol.dispose]: () => silent.close().closeAllConnections() }
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  for (const [limits, sends] of [
    [{ perSecond: 4, inFlightMax: 100 }, 3],
    [{ perSecond: 100, inFlightMax: 4 }, 2],
  ] as const) {
    const [options] = parseSenderOptions({ relays: [{ name: 'relay', url, allowPrivate: true, ...limits }] }).relays
    assert.ok(options !== undefined)
    const clock = createManualClock()
    using path = createHttpPath(options, { clock, random: createSeededRandom(1), credential: undefined })
    for (let sent = 0; sent < sends; sent++) {
      assert.equal(path.hasSpare, true, `after ${sent}`)
      path.send(JOB, () => {})
    }
    assert.equal(path.hasSpare, false)
  }
})

test('the URL of a path may be a reference to one with a query, which is sent', async () => {
  const targets: string[] = []
  const server = createServer((request, response) => {
    targets.push(request.url ?? '')
    response.end('{"jsonrpc":"2.0","result":"s","id":1}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  using _closing = { [Symbol.dispose]: () => server.close().closeAllConnections() }
  const relay = (url: string) => parseSenderOptions({ relays: [{ name: 'relay', url, allowPrivate: true }] }).relays[0]
  assert.throws(() => relay('https://relay.example.net/?uuid=literal'), /by reference/)
  const options = relay('env:RELAY_URL')
  assert.ok(options !== undefined)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/send?uuid=1`
  const deps = { clock: createManualClock(), random: createSeededRandom(1), credential: undefined }
  using path = createHttpPath({ ...options, url }, deps)
  await new Promise((resolve) => path.send(JOB, resolve))
  assert.deepEqual(targets, ['/send?uuid=1'])
})

test('the upstream path keeps half of its calls for new transactions', () => {
  const forward = () => ({ abort() {} })
  const path = createUpstreamPath({ isAvailable: true, forward } as never, 4)
  for (const expected of [true, true, false]) {
    assert.equal(path.hasSpare, expected)
    path.send(JOB, () => assert.fail('no response was expected'))
  }
})

test('a credential that is no header value is refused with its path, and without quoting it', () => {
  const [options] = parseSenderOptions({ relays: [{ name: 'relay', url: 'https://relay.example.net' }] }).relays
  assert.ok(options !== undefined)
  const open = (text: string) =>
    createHttpPath(options, { clock: createManualClock(), random: createSeededRandom(1), credential: new Secret(text) })
  // A file that ends with a blank line: only its last line break is no part of the secret.
  for (const text of ['hunter2\n', 'hunter2\r\nx: y', ' hunter2', 'hünter2'])
    assert.throws(
      () => open(text),
      (error: Error) =>
        'code' in error &&
        error.code === 'secret-invalid' &&
        error.message === 'the credential of the path relay is not a valid header value',
    )
  using _path = open('hunter2 and a word')
})
