import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FigureKind } from '../../contract/stream-events.ts'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { StreamHub } from './hub.ts'
import { createSeqCounter } from './seq-counter.ts'
import { StreamSession } from './session.ts'
import { parseSubscribeQuery } from './subscription.ts'

function createHub(
  clock: ManualClock,
  given: { defer?: (run: () => void) => void; snapshot?: (kind: FigureKind) => string[]; framesMax?: number } = {},
): StreamHub {
  return new StreamHub(
    {
      buffer: { entriesMax: 10_000, bytesMax: 2 ** 20 },
      client: { framesMax: given.framesMax ?? 100, bytesMax: 2 ** 20, dropsMax: 100 },
      rules: { itemsMax: 8, blocked: new Set() },
      lingerMs: 1000,
    },
    {
      clock,
      seq: createSeqCounter({
        store: { read: () => undefined, write() {} },
        nowMs: clock.nowMs,
        onFault: () => assert.fail('the store failed'),
      }),
      defer: given.defer ?? (() => {}),
      hello: () => ({}) as never,
      snapshot: given.snapshot ?? (() => []),
      onRawEventSelection() {},
      count: { published() {}, delivered() {}, dropped() {}, joined() {}, refused() {} },
    },
  )
}

const RULES = { itemsMax: 8, blocked: new Set<never>() }

test('a snapshot of many frames is written at once', () => {
  const payloads = Array.from({ length: 4096 }, (_, at) => `{"block_number":${at}}`)
  using hub = createHub(createManualClock(), { snapshot: (kind) => (kind === 'Lifecycle' ? payloads : []) })
  const written: Buffer[] = []
  const socket = {
    isClear: true,
    write: (bytes: Buffer) => void written.push(bytes),
    close: () => assert.fail('closed'),
  }
  const session = new StreamSession(hub, socket, { subscribe: parseSubscribeQuery('Lifecycle', RULES) })
  assert.equal(written.length, 2, 'Hello, and all frames of the snapshot')
  assert.equal(written[1]?.toString('latin1').split('"Lifecycle"').length, 1 + payloads.length)
  written.length = 0
  session.message('{"subscribe":["TPS"]}')
  session.message('{"subscribe":["TPS","Lifecycle"]}')
  assert.equal(written.length, 3, 'Subscribed twice, and all frames of the snapshot')
})

test('dropped frames are reported before a snapshot, whose number is above theirs', () => {
  using hub = createHub(createManualClock(), {
    framesMax: 16,
    snapshot: (kind) => (kind === 'TPS' ? ['777'] : []),
  })
  const written: Buffer[] = []
  const socket = {
    isClear: true,
    write: (bytes: Buffer) => void written.push(bytes),
    close: () => assert.fail('closed'),
  }
  const session = new StreamSession(hub, socket, { subscribe: parseSubscribeQuery('Lifecycle', RULES) })
  socket.isClear = false
  for (let number = 0; number < 20; number++) hub.publish('Lifecycle', `{"block_number":${number}}`)
  session.message('{"subscribe":["TPS","Lifecycle"]}')
  socket.isClear = true
  session.drained()
  const sent = Buffer.concat(written).toString('latin1')
  const places = ['"block_number":15', '"type":"backpressure","dropped":4', '"Subscribed"', '"TPS":777'].map((text) =>
    sent.indexOf(text),
  )
  assert.deepEqual(
    places,
    places.toSorted((a, b) => a - b),
  )
  assert.ok(!places.includes(-1))
})

test('a client that reads nothing is closed as slow, also where it only requests snapshots; one that sends too much is not', () => {
  const payload = JSON.stringify('x'.repeat(5 * 2 ** 20))
  using hub = createHub(createManualClock(), { snapshot: (kind) => (kind === 'Lifecycle' ? [payload] : []) })
  const closed: unknown[] = []
  const socket = { isClear: false, write() {}, close: (...given: unknown[]) => void closed.push(given) }
  const subscribe = parseSubscribeQuery('TPS', RULES)
  new StreamSession(hub, socket, { subscribe }).message('{"subscribe":["TPS","Lifecycle"]}')
  const sender = new StreamSession(hub, { ...socket, isClear: true }, { subscribe })
  for (let sent = 0; sent < 21; sent++) sender.message('{"subscribe":["TPS"]}')
  assert.deepEqual(closed, [
    [1008, 'too slow: replies wait unread', 'slow'],
    [1008, 'more than 5 messages a second', 'policy'],
  ])
})

test('frames in the resume buffer hold little more memory than it reports, whatever else is allocated meanwhile', () => {
  const clock = createManualClock()
  let flush = () => {}
  using hub = createHub(clock, { defer: (run) => (flush = run) })
  const written: Buffer[] = []
  new StreamSession(hub, { isClear: true, write: (bytes) => written.push(bytes), close: () => assert.fail('closed') })
  written.length = 0
  for (let n = 0; n < 1000; n++) {
    hub.publish('TPS', String(n))
    // One frame per flush: the buffer that is stored is also written. Other allocations come from Node's pool.
    clock.advance(1000)
    flush()
    Buffer.allocUnsafe(3000)
  }
  assert.equal(written.length, 1000)
  const held = [...new Set(written.map(({ buffer }) => buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0)
  assert.ok(held <= hub.window.bytes + 64 * 1024, `${held} bytes held, the buffer reports ${hub.window.bytes}`)
})
