import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { isServiceError, ServiceError } from '../../core/error.ts'
import { type ChannelMessage, type ChannelSide, createThreadChannel, type ThreadChannel } from './thread-channel.ts'

/** Two channels that post clones to each other, as two threads do. */
function pairOf<Methods extends ChannelSide['methods']>(
  methods: Methods,
  notifications: ChannelSide['notifications'] = {},
) {
  type Theirs = { methods: Methods & { unknown(): void }; notifications: Record<string, (value: string) => void> }
  const clock = createManualClock()
  const posted: ChannelMessage[] = []
  const ours: ThreadChannel<Theirs> = createThreadChannel<Theirs>({
    clock,
    methods: {},
    notifications: {},
    post(message) {
      posted.push(message)
      theirs.receive(structuredClone(message))
    },
  })
  const theirs = createThreadChannel({
    clock,
    methods,
    notifications,
    post: (message) => ours.receive(structuredClone(message)),
  })
  return { clock, ours, theirs, posted }
}

test('a call returns the result of the other thread, also where calls overlap', async () => {
  const first = Promise.withResolvers<number>()
  const { ours } = pairOf({ wait: () => first.promise, double: (value: number) => value * 2 })
  const waiting = ours.call('wait', undefined)
  assert.equal(await ours.call('double', 21), 42)
  first.resolve(7)
  assert.equal(await waiting, 7)
})

test('an error keeps its code, fix and fields; another error keeps its message', async () => {
  const { ours } = pairOf({
    refuse() {
      throw new ServiceError('address-in-use', 'port 1 is in use', { fix: 'stop it', fields: { port: 1 } })
    },
    fail: () => Promise.reject(new TypeError('no')),
  })
  await assert.rejects(ours.call('refuse', undefined), (error) => {
    assert(isServiceError(error, 'address-in-use'))
    assert.equal(error.message, 'port 1 is in use')
    assert.equal(error.fix, 'stop it')
    assert.deepEqual(error.fields, { port: 1 })
    return true
  })
  await assert.rejects(ours.call('fail', undefined), { message: 'no' })
  await assert.rejects(ours.call('unknown', undefined), /has no method unknown/)
})

test('a call ends after its time and when the other thread ends; a late result is ignored', async () => {
  const late = Promise.withResolvers<number>()
  const { clock, ours } = pairOf({ wait: () => late.promise })
  const timedOut = ours.call('wait', undefined, 100)
  clock.advance(99)
  const open = ours.call('wait', undefined)
  clock.advance(1)
  await assert.rejects(timedOut, /did not reply to wait in 100 ms/)
  ours.end(new Error('the thread has ended'))
  await assert.rejects(open, /has ended/)
  await assert.rejects(ours.call('wait', undefined), /has ended/)
  late.resolve(1)
  await late.promise
  assert.equal(clock.pendingTimers(), 0)
})

test('a notification has no reply, and one without a listener is ignored', () => {
  const seen: string[] = []
  const { ours, posted } = pairOf({}, { log: (line: string) => void seen.push(line) })
  ours.notify('log', 'one')
  ours.notify('unknown', 'two')
  assert.deepEqual(seen, ['one'])
  assert.equal(posted.length, 2)
})
