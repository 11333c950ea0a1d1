import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { testNames } from '../test-names.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Which test holds which row of the tables of threats and faults: file, and the beginning of the test's name. */
const HELD: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  T1: [
    ['test/threats/guesses.test.ts', 'T1: '],
    ['test/behaviours/late-refusals.test.ts', 'who tries tokens'],
  ],
  T2: [
    ['test/threats/token-timing.test.ts', 'T2: a near miss takes as long as any other unknown token'],
    ['src/access/admit.test.ts', 'every kind of bad token costs the same work'],
  ],
  T3: [
    ['test/threats/canaries.test.ts', 'T3: '],
    ['test/behaviours/token-shown-once.test.ts', ''],
  ],
  T4: [['test/threats/credentials.test.ts', 'T4: ']],
  T5: [
    ['test/threats/smuggling.test.ts', 'T5: request smuggling'],
    ['src/host/http-server.test.ts', 'hostile heads get their own answers'],
  ],
  T6: [
    ['test/threats/requests.test.ts', 'T6: '],
    ['src/host/client-address.test.ts', 'without trusted proxies the header is never believed'],
  ],
  T7: [['test/threats/requests.test.ts', 'T7: ']],
  T8: [['test/threats/requests.test.ts', 'T8: ']],
  T9: [
    ['test/threats/slow-clients.test.ts', 'T9: slow heads, slow bodies'],
    ['src/host/http-server.test.ts', 'a slow head, a silent socket and a slow body end with 408'],
  ],
  T10: [
    ['test/threats/stalled-readers.test.ts', 'T10: stalled WebSocket readers'],
    ['src/host/ws-server.test.ts', 'a client that reads nothing is cut'],
  ],
  T11: [['test/threats/ws-frames.test.ts', 'T11: ']],
  T12: [
    ['test/threats/grpc-flood.test.ts', 'T12: '],
    ['test/behaviours/grpc-gateway-hostile.test.ts', 'ten thousand streams opened and reset'],
  ],
  T13: [
    ['test/threats/quota.test.ts', 'T13: '],
    ['src/access/admit.model.test.ts', 'charged is admitted, to the call'],
  ],
  T17: [
    ['test/threats/upstream-address.test.ts', 'T17: '],
    ['src/host/pinned-address.test.ts', 'a name that is moved to a forbidden place'],
  ],
  F1: [
    ['test/faults/gateway-http.test.ts', 'F1: '],
    ['src/upstreams/faults.test.ts', 'F1: '],
  ],
  F2: [
    ['test/faults/gateway-http.test.ts', 'F2: '],
    ['src/upstreams/faults.test.ts', 'F2: '],
  ],
  F3: [
    ['test/faults/gateway-http.test.ts', 'F3: '],
    ['src/upstreams/faults.test.ts', 'F3: '],
  ],
  F4: [
    ['test/faults/gateway-http.test.ts', 'F4: '],
    ['src/upstreams/faults.test.ts', 'F4: '],
    ['src/host/ws-client.test.ts', 'F4: '],
    ['src/host/grpc-client.test.ts', 'F4: '],
  ],
  F5: [
    ['test/faults/gateway-http.test.ts', 'F5: '],
    ['src/upstreams/faults.test.ts', 'F5: '],
  ],
  F6: [
    ['test/faults/gateway-ws.test.ts', 'F6: '],
    ['src/upstreams/ws-links.test.ts', 'F6: '],
    ['test/behaviours/ws-gateway-loss.test.ts', 'loses none of several hundred'],
  ],
  F11: [['test/faults/gateway-leave.test.ts', 'F11: ']],
  F17: [
    ['test/faults/gateway-machine.test.ts', 'F17: '],
    ['src/host/listener.test.ts', 'out of descriptors'],
  ],
  F18: [['test/faults/gateway-leave.test.ts', 'F18: ']],
  F19: [
    ['test/faults/gateway-machine.test.ts', 'F19: '],
    ['test/faults/certificate-end.test.ts', 'F19: '],
    ['src/host/listener.test.ts', 'a renewed certificate is taken'],
  ],
  F21: [['test/faults/gateway-storm.test.ts', 'F21: ']],
}

const ROWS = [
  ...Array.from({ length: 13 }, (_, at) => `T${at + 1}`),
  'T17',
  ...Array.from({ length: 6 }, (_, at) => `F${at + 1}`),
  'F11',
  'F17',
  'F18',
  'F19',
  'F21',
]

test('every threat and fault of the bundle is held by a test that is there', () => {
  assert.deepEqual(
    ROWS.filter((row) => (HELD[row]?.length ?? 0) === 0),
    [],
  )
  const missing: string[] = []
  for (const [row, places] of Object.entries(HELD)) {
    for (const [file, name] of places) {
      if (!testNamesOf(file).some((known) => known.startsWith(name))) missing.push(`${row}: ${file}: ${name}`)
    }
  }
  assert.deepEqual(missing, [])
})

test('a test that is gone would be missed', () => {
  assert.ok(!testNamesOf('test/threats/quota.test.ts').some((name) => name.startsWith('T14: ')))
  assert.deepEqual(testNamesOf('test/threats/no-such-file.test.ts'), [])
})

function testNamesOf(file: string): string[] {
  try {
    return testNames(readFileSync(join(ROOT, file), 'utf8'))
  } catch {
    return []
  }
}
