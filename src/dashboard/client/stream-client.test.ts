import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Hello, StreamItem } from '../../contract/stream-events.ts'
import { openExecutionStream } from './stream-client.ts'
import type { StreamEvent } from './stream-event.ts'
import type { Socket, StreamOptions } from './stream-options.ts'

const URL_OF_SERVICE = 'http://service.test:8443'

const ringGap = (from_seqno: number) => ({ Warning: { type: 'ring_gap', from_seqno, to_seqno: 9, blocks_dropped: 1 } })

describe('the stream client', () => {
  test('returns connection, snapshot and live events, and updates the cursor', async () => {
    const world = createWorld()
    const { stream, read } = world.open()
    world.hello({ newest_seqno: 40, snapshot: 2 })
    world.frame(40, { TPS: 7 })
    world.frame(40, { Lifecycle: { block_number: 3 } })
    world.frame(42, { TPS: 8 })
    const events = await read(5)
    assert.deepEqual(events.map(nameOf), [
      'connecting',
      'open',
      'TPS snapshot 40',
      'Lifecycle snapshot 40',
      'TPS live 42',
    ])
    assert.equal(stream.cursor(), 42)
    assert.equal(world.urls[0], 'ws://service.test:8443/v1/ws')
  })

  test('resumes after the last event and returns no event twice', async () => {
    const world = createWorld()
    const { read } = world.open({ subscribe: ['TPS', 'Lifecycle'] })
    world.hello({ newest_seqno: 10 })
    world.frame(11, { TPS: 1 })
    world.drop(1006)
    await world.passDelay()
    assert.equal(world.urls[1], 'ws://service.test:8443/v1/ws?subscribe=TPS%2CLifecycle&resume_from=11')
    world.hello({ resumed: true, newest_seqno: 13 })
    world.frame(11, { TPS: 1 })
    world.frame(12, { TPS: 2 })
    world.frame(14, { TPS: 3 })
    assert.deepEqual((await read(8)).map(nameOf), [
      'connecting',
      'open',
      'TPS live 11',
      'waiting 1006',
      'connecting',
      'open resumed',
      'TPS replay 12',
      'TPS live 14',
    ])
  })

  test('a resumed connection does not report a gap of the source again, but a new one', async () => {
    const world = createWorld()
    const { stream } = world.open()
    world.hello({ newest_seqno: 10 })
    world.frame(11, { TPS: 1 })
    for (const from_seqno of [1, 5]) world.frame(0, ringGap(from_seqno))
    const resume = async (...gaps: number[]) => {
      world.drop(1006)
      await world.passDelay()
      world.hello({ resumed: true, newest_seqno: 13 })
      for (const from_seqno of gaps) world.frame(0, ringGap(from_seqno))
    }
    await resume(1, 5)
    await resume(1, 5, 8)
    world.frame(15, { TPS: 2 })
    await resume(1)
    stream.close()
    const names = (await Array.fromAsync(stream)).map(nameOf).filter((name) => /gap|TPS/.test(name))
    assert.deepEqual(names, ['TPS live 11', 'gap source', 'gap source', 'gap source', 'TPS live 15', 'gap source'])
  })

  test('a connection that fails is tried again, with and without the close event that Node 22 does not send', async () => {
    const world = createWorld()
    const { read } = world.open()
    world.fail()
    await world.passDelay()
    assert.equal(world.urls.length, 2)
    world.fail()
    world.drop(1006)
    await world.passDelay()
    assert.equal(world.urls.length, 3)
    const names = ['connecting', 'waiting 1006', 'connecting', 'waiting 1006', 'connecting']
    assert.deepEqual((await read(5)).map(nameOf), names)
  })

  test('a connection lost before any data resumes from the number in Hello', async () => {
    const world = createWorld()
    world.open()
    world.hello({ newest_seqno: 90 })
    world.drop(1006)
    await world.passDelay()
    assert.match(world.urls[1] ?? '', /resume_from=90/)
  })

  test('a connection lost within a snapshot does not advance the cursor', async () => {
    const world = createWorld()
    world.open({ resumeFrom: 5 })
    world.hello({ newest_seqno: 90, snapshot: 2 })
    world.frame(90, { TPS: 7 })
    world.drop(1006)
    await world.passDelay()
    assert.match(world.urls[1] ?? '', /resume_from=5$/)
  })

  test('a gap that was not reported before a disconnect is reported by the next connection', async () => {
    const world = createWorld()
    const { read } = world.open({ resumeFrom: 5 })
    world.hello({ newest_seqno: 90 })
    world.drop(1006)
    await world.passDelay()
    assert.match(world.urls[1] ?? '', /resume_from=5$/)
    world.hello({ newest_seqno: 95, snapshot: 1 })
    world.frame(0, { Warning: { type: 'resume_out_of_window', reason: 'too_old' } })
    world.frame(95, { TPS: 1 })
    world.frame(96, { TPS: 2 })
    const events = (await read(8)).slice(4)
    assert.deepEqual(events.map(nameOf), ['open', 'gap window', 'TPS snapshot 95', 'TPS live 96'])
    assert.equal(events[1]?.kind === 'gap' ? events[1].after : undefined, 5)
  })

  test('a cursor ahead of the service does not suppress its frames', async () => {
    const world = createWorld()
    const { stream, read } = world.open({ resumeFrom: 1_000_000 })
    world.hello({ newest_seqno: 3 })
    world.frame(4, { TPS: 1 })
    assert.deepEqual((await read(4)).map(nameOf), ['connecting', 'open', 'gap window', 'TPS live 4'])
    assert.equal(stream.cursor(), 4)
  })

  test('each warning about lost frames is a gap event with the warning', async () => {
    const world = createWorld()
    const { read } = world.open({ resumeFrom: 5 })
    world.hello({ newest_seqno: 90 })
    const away = { type: 'resume_out_of_window', requested: '5', oldest_seqno: 50, newest_seqno: 90, reason: 'too_old' }
    world.frame(0, { Warning: away })
    world.frame(0, ringGap(1))
    world.frame(0, { Warning: { type: 'backpressure', dropped: 1000, drop_limit: 10_000, from_seq: 91, to_seq: 1090 } })
    world.frame(0, {
      Warning: { type: 'backpressure', dropped: 1200, drop_limit: 10_000, from_seq: 1091, to_seq: 1290 },
    })
    world.frame(0, { Warning: { type: 'news_of_tomorrow' } })
    const events = (await read(7)).slice(2)
    assert.deepEqual(events.map(nameOf), ['gap window', 'gap source', 'gap slow', 'gap slow', 'warning'])
    assert.deepEqual(
      events.flatMap((event) => (event.kind === 'gap' ? [event.frames] : [])),
      [undefined, undefined, 1000, 200],
    )
    assert.deepEqual(events[0]?.kind === 'gap' ? events[0].warning : undefined, away)
  })

  test('reconnect delays grow to the maximum, half of each random, and are reset by Hello', async () => {
    const world = createWorld({ random: 0.5 })
    world.open({ firstDelayMs: 100, maxDelayMs: 400 })
    const delays: number[] = []
    for (let attempt = 0; attempt < 4; attempt++) {
      world.drop(1006)
      delays.push(await world.passDelay())
    }
    assert.deepEqual(delays, [75, 150, 300, 300])
    // A subscription may have no frame for hours.
    world.hello({ newest_seqno: 1 })
    world.drop(1012)
    assert.equal(await world.passDelay(), 75)
  })

  test('a subscription without a kind that comes with every block may be silent', async () => {
    const world = createWorld()
    world.open({ subscribe: ['TxnLog', 'ContentionData'] })
    assert.equal(world.timers(), 1, 'Hello has to come in time')
    world.hello({ newest_seqno: 1, subscribed: subscribed('TxnLog', 'ContentionData') })
    assert.equal(world.timers(), 0)
    world.frame(2, { Events: [] })
    assert.equal(world.timers(), 0)
  })

  test('a limit of silence that is given applies to every subscription', () => {
    const world = createWorld()
    world.open({ subscribe: ['TxnLog'], silenceMs: 5000 })
    world.hello({ newest_seqno: 1, subscribed: subscribed('TxnLog') })
    world.runTimer(5000)
    assert.deepEqual(world.closes, [4002])
  })

  test('closes a silent connection', async () => {
    const world = createWorld()
    const { read } = world.open()
    world.hello({ newest_seqno: 1 })
    world.runTimer(60_000)
    assert.deepEqual(world.closes, [4002])
    assert.deepEqual((await read(3)).map(nameOf), ['connecting', 'open', 'waiting 4002'])
    await world.passDelay()
    assert.equal(world.urls.length, 2)
  })

  for (const text of [
    '{',
    '[]',
    '{"seq":1}',
    '{"seq":-1,"TPS":1}',
    '{"seq":1,"TPS":1,"More":2}',
    '{"seq":"1","TPS":1}',
  ])
    test(`closes the connection on an invalid frame: ${text}`, () => {
      const world = createWorld()
      world.open()
      world.text(text)
      assert.deepEqual(world.closes, [4001])
    })

  test('a full buffer disconnects, resumes when half is read, and loses nothing', async () => {
    const world = createWorld()
    const { stream, read } = world.open({ bufferedEventsMax: 10 })
    await read(1)
    world.hello({ newest_seqno: 0 })
    for (let seq = 1; seq <= 50; seq++) world.frame(seq, { TPS: seq })
    assert.deepEqual(world.closes, [4000])
    assert.equal(stream.buffered(), 11)
    assert.equal(world.urls.length, 1)
    const first = await read(6)
    await settle()
    assert.match(world.urls[1] ?? '', /resume_from=9$/)
    world.hello({ resumed: true, newest_seqno: 12 })
    for (let seq = 10; seq <= 12; seq++) world.frame(seq, { TPS: seq })
    const events = [...first, ...(await read(10))]
    assert.deepEqual(
      events.flatMap((event) => (event.kind === 'TPS' ? [event.seq] : [])),
      range(1, 12),
    )
    assert.ok(events.some((event) => event.kind === 'connection' && event.state === 'full'))
  })

  test('a full buffer drops the oldest with drop-oldest and reports how many', async () => {
    const world = createWorld()
    const { read } = world.open({ bufferedEventsMax: 10, whenFull: 'drop-oldest' })
    await read(1)
    world.hello({ newest_seqno: 0 })
    for (let seq = 1; seq <= 50; seq++) world.frame(seq, { TPS: seq })
    assert.deepEqual(world.closes, [])
    const events = await read(11)
    const [gap] = events
    assert.deepEqual(gap?.kind === 'gap' ? [gap.reason, gap.frames] : gap, ['buffer', 40])
    assert.deepEqual(
      events.flatMap((event) => (event.kind === 'TPS' ? [event.seq] : [])),
      range(41, 50),
    )
  })

  test('buffers a snapshot larger than the limit completely', async () => {
    const world = createWorld()
    const { read } = world.open({ bufferedEventsMax: 4 })
    world.hello({ newest_seqno: 7, snapshot: 9 })
    for (let at = 0; at < 9; at++) world.frame(7, { Lifecycle: { block_number: at } })
    assert.equal((await read(11)).filter((event) => event.kind === 'Lifecycle').length, 9)
  })

  test('leaving the loop closes the connection; an unknown kind is passed on', async () => {
    const world = createWorld()
    const { stream } = world.open()
    world.hello({ newest_seqno: 1 })
    world.frame(2, { Tomorrow: { x: 1 } })
    for await (const event of stream) {
      if (event.kind !== 'other') continue
      assert.deepEqual(event, { kind: 'other', seq: 2, type: 'Tomorrow', data: { x: 1 } })
      break
    }
    assert.deepEqual(world.closes, [1000])
    assert.deepEqual(await stream.next(), { done: true, value: undefined })
  })

  test('an aborted signal ends the loop of a waiting reader and cancels all timers', async () => {
    const world = createWorld()
    const abort = new AbortController()
    const { stream } = world.open({ signal: abort.signal })
    await stream.next()
    const waiting = stream.next()
    world.drop(1006)
    await waiting
    const ended = stream.next()
    abort.abort()
    assert.deepEqual(await ended, { done: true, value: undefined })
    assert.equal(world.timers(), 0)
  })

  test('requests a ticket before each connection', async () => {
    const world = createWorld()
    let asked = 0
    world.open({ ticket: async () => `t${(asked += 1)}` })
    await settle()
    world.drop(4401)
    await world.passDelay()
    assert.deepEqual(
      world.urls.map((url) => new URL(url).searchParams.get('ticket')),
      ['t1', 't2'],
    )
  })
})

/** A fake service with a manual clock and random source. */
function createWorld({ random = 0 }: { random?: number } = {}) {
  const urls: string[] = []
  const closes: number[] = []
  const timers = new Map<() => void, number>()
  let socket: Socket | undefined

  const deps = {
    random: () => random,
    connect(url: string): Socket {
      urls.push(url)
      socket = { onmessage: null, onclose: null, onerror: null, close: (code = 1005) => void closes.push(code) }
      return socket
    },
    setTimer(delayMs: number, run: () => void) {
      timers.set(run, delayMs)
      return { cancel: () => void timers.delete(run) }
    },
  }
  const text = (data: string): void => socket?.onmessage?.({ data })
  const frame = (seq: number, message: object): void => text(JSON.stringify({ seq, ...message }))
  return {
    urls,
    closes,
    text,
    frame,
    timers: () => timers.size,
    hello: (hello: Partial<Hello>) =>
      frame(0, { Hello: { resumed: false, snapshot: 0, subscribed: subscribed('TPS', 'Lifecycle'), ...hello } }),
    fail: () => socket?.onerror?.({} as never),
    drop: (code: number) => socket?.onclose?.({ code, reason: '' }),
    runTimer(delayMs: number): void {
      const [run] = [...timers].find(([, delay]) => delay === delayMs) ?? []
      assert.ok(run, `no timer of ${delayMs} ms`)
      timers.delete(run)
      run()
    },
    /** Lets the one pending delay pass and returns it. */
    async passDelay(): Promise<number> {
      await settle()
      const [[run, delayMs] = []] = timers
      assert.ok(run !== undefined && delayMs !== undefined && timers.size === 1, `${timers.size} timers`)
      timers.delete(run)
      run()
      await settle()
      return delayMs
    },
    open(options: Partial<StreamOptions> = {}) {
      const stream = openExecutionStream({ url: URL_OF_SERVICE, ...options }, deps)
      return {
        stream,
        async read(count: number): Promise<StreamEvent[]> {
          const events: StreamEvent[] = []
          while (events.length < count) {
            const { done, value } = await stream.next()
            assert.ok(done !== true, 'the stream ended')
            events.push(value as StreamEvent)
          }
          return events
        },
      }
    },
  }
}

function subscribed(...events: StreamItem[]): Hello['subscribed'] {
  return { events, filters: [], correlate: false, min_stage: 'Proposed' }
}

function nameOf(event: StreamEvent): string {
  switch (event.kind) {
    case 'connection':
      return event.state === 'open'
        ? `open${event.resumed ? ' resumed' : ''}`
        : event.state === 'waiting'
          ? `waiting ${event.code}`
          : event.state
    case 'gap':
      return `gap ${event.reason}`
    case 'warning':
    case 'refused':
    case 'other':
      return event.kind
    default:
      return `${event.kind} ${event.origin} ${event.seq}`
  }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at)
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}
