import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPingReply } from './ping-reply.ts'

test('pings get no reply while the server does not read, and one each when it reads again', () => {
  const on = { written: 0, room: 3, drain: () => {} }
  const reply = createPingReply(
    {
      write: () => ++on.written < on.room,
      onWritable: (listener) => void (on.drain = listener),
    },
    new Uint8Array([1]),
  )
  for (let pings = 0; pings < 100; pings++) reply()
  assert.equal(on.written, 3)
  on.room = 1000
  on.drain()
  for (let pings = 0; pings < 100; pings++) reply()
  assert.equal(on.written, 103)
})
