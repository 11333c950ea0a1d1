import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openExecutionStream } from './stream-client.ts'
import type { Socket, StreamOptions } from './stream-options.ts'

/** A stream over a fake socket; `next` returns the kind of an event and the cursor after it. */
function createRig(options: Partial<StreamOptions> = {}) {
  let socket: Socket | undefined
  let reconnect = (): void => {}
  const deps = {
    random: () => 0,
    connect: (): Socket => (socket = { onmessage: null, onclose: null, onerror: null, close() {} }),
    setTimer(_delayMs: number, run: () => void) {
      reconnect = run
      return { cancel() {} }
    },
  }
  const stream = openExecutionStream({ url: 'http://service.test:8443', resumeFrom: 5, ...options }, deps)
  const frame = (seq: number, message: object): void =>
    socket?.onmessage?.({ data: JSON.stringify({ seq, ...message }) })
  return {
    frame,
    hello(newest_seqno: number, snapshot: number): void {
      frame(0, { Hello: { resumed: false, newest_seqno, snapshot, subscribed: { events: ['TPS'] } } })
      frame(0, { Warning: { type: 'resume_out_of_window', reason: 'too_old' } })
    },
    lose(): void {
      socket?.onclose?.({ code: 1006, reason: '' })
      reconnect()
    },
    async next() {
      const { value } = await stream.next()
      return [value?.kind, stream.cursor()]
    },
    async skip(events: number): Promise<void> {
      for (let at = 0; at < events; at++) await stream.next()
    },
  }
}

describe('the cursor of a client', () => {
  test('is that of a snapshot once its last frame is read', async () => {
    const { hello, frame, next, skip } = createRig()
    hello(90, 3)
    for (const kind of ['TPS', 'ContentionData', 'Lifecycle']) frame(90, { [kind]: {} })
    frame(91, { TPS: 8 })
    // Connecting, open, and the gap.
    await skip(3)
    assert.deepEqual(await next(), ['TPS', 5])
    assert.deepEqual(await next(), ['ContentionData', 5])
    assert.deepEqual(await next(), ['Lifecycle', 90])
    assert.deepEqual(await next(), ['TPS', 91])
  })

  test('is not that of a snapshot whose last frame has not arrived', async () => {
    const { hello, frame, lose, next, skip } = createRig()
    await skip(1)
    const open = skip(2)
    hello(90, 2)
    await open
    const first = next()
    frame(90, { TPS: 7 })
    assert.deepEqual(await first, ['TPS', 5])
    lose()
    hello(95, 1)
    frame(95, { TPS: 9 })
    // Waiting, connecting, open, and the gap.
    await skip(4)
    assert.deepEqual(await next(), ['TPS', 95])
  })
})
