import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { createFreeRefusals, FREE_REFUSALS } from '../../access/free-refusals.ts'
import { BUILT_IN_PLANS } from '../../access/plan.ts'
import { createManualClock } from '../../core/clock.ts'
import { createKeyedBuckets } from '../../core/keyed-buckets.ts'
import { createHeldBytes } from '../../platform/http/held-bytes.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import { framePayload } from '../../platform/ws/frame.ts'
import type { UpstreamFailure, UpstreamResponse } from '../../upstreams/response.ts'
import type { ForwardRequest } from '../rpc/forward.ts'
import { FREE_MESSAGES, PubSubClient } from './client.ts'
import { RESPONSE_BYTES_MAX } from './held-responses.ts'
import { PubSubRequestHandler } from './request-handler.ts'
import type { UpstreamSubscriptions } from './upstream-subscriptions.ts'

const CALLER = {
  subscription: { id: 'sub' },
  limits: BUILT_IN_PLANS.starter,
  nodeUser: { subscriptionId: 'sub', mayUseShared: true },
} as unknown as Caller
const CHARGED = { ok: true, cost: 1, limit: null, remaining: null, resetMs: 0 }
const OVER_LIMIT = { ok: false, limitName: 'unitsPerSecond', limitSize: 1, cost: 1, retryAfterMs: 500 }

type Item = {
  readonly id: number
  readonly result?: string
  readonly error?: { code: number; message: string; data: { limit: string; charged?: boolean } }
}

/** One client whose calls are responded to by the test, in any order. */
function serve({
  ownerBytesMax = 1e9,
  admission = () => CHARGED as object,
  clock = createManualClock(),
  freeMessages = createKeyedBuckets(FREE_MESSAGES, () => clock.monotonicMs()),
} = {}) {
  const heldBytes = createHeldBytes({ bytesMax: 1e9, ownerBytesMax, waitMs: 1000 }, clock)
  const frames: Buffer[] = []
  const unread = new DisposableStack()
  const refused: string[] = []
  const pauses: number[] = []
  const waiting = new Map<string, (response: UpstreamResponse) => void>()
  let refunds = 0
  let onMessage: ((text: string) => void | Promise<void>) | undefined
  const connection = {
    isOpen: true,
    close() {},
    sendFrame(frame: Buffer, held?: Disposable) {
      frames.push(frame)
      if (held !== undefined) unread.use(held)
    },
    pauseReading: (ms: number) => void pauses.push(ms),
    onMessage: (listener: typeof onMessage) => void (onMessage = listener),
    onClose() {},
  } as unknown as WsConnection
  const common = {
    access: {
      admit: admission,
      refund: () => void refunds++,
      permits: { acquire: () => ({ ok: false, limitName: 'wsSubscriptions', limitSize: 1 }) },
    } as unknown as Access,
    clock,
    meter: { request() {}, refused: (limit: string) => void refused.push(limit) },
  }
  const client = new PubSubClient(
    connection,
    { caller: CALLER, wantsGaps: false, requestId: 'r' },
    {
      ...common,
      requestHandler: new PubSubRequestHandler(common),
      upstreamSubscriptions: {} as UpstreamSubscriptions,
      forward: ({ methods: [method = ''] }: ForwardRequest, done) => void waiting.set(method, done),
      heldBytes,
      freeMessages,
      freeRefusals: createFreeRefusals(clock),
      log: silentLogger,
      gapsReported: { inc() {} },
      onRefused: undefined,
    },
  )
  return {
    clock,
    client,
    freeMessages,
    heldBytes,
    frames,
    readAll: () => unread.dispose(),
    refused,
    pauses,
    refunds: () => refunds,
    sendText: (text: string) => onMessage?.(text),
    send: (methods: readonly string[]) =>
      onMessage?.(JSON.stringify(methods.map((method, id) => ({ jsonrpc: '2.0', id, method, params: [] })))),
    /** Responds to the call of this method: with so many bytes, in pieces where they are many. */
    async respond(method: string, id: number, bytes: number) {
      const text = `{"jsonrpc":"2.0","result":"${'a'.repeat(Math.max(0, bytes - 36))}","id":${id}}`
      waiting.get(method)?.(nodeResponse(Buffer.from(text)))
      await turn()
    },
    /** It fails at the node. */
    async fail(method: string, failure: UpstreamFailure) {
      waiting.get(method)?.(failure)
      await turn()
    },
    /** Its response cannot be read. */
    async failNext(method: string) {
      const unreadable = {
        kind: 'responded',
        get rest() {
          throw new Error('unreadable')
        },
      }
      waiting.get(method)?.(unreadable as unknown as UpstreamResponse)
      await turn()
    },
    items: () => JSON.parse(framePayload(frames[0] as Buffer).toString()) as Item[],
  }
}

function nodeResponse(body: Buffer): UpstreamResponse {
  const whole = { kind: 'responded', status: 200, body, rest: undefined, nodeName: 'a' } as const
  if (body.length <= 64 * 1024) return whole
  let isAborted = false
  const rest = {
    start(listener: { onData(piece: Buffer): void; onEnd(): void }) {
      for (let at = 0; at < body.length && !isAborted; at += 64 * 1024)
        listener.onData(body.subarray(at, at + 64 * 1024))
      if (!isAborted) listener.onEnd()
    },
    pause() {},
    resume() {},
    abort: () => void (isAborted = true),
  }
  return { ...whole, body: Buffer.alloc(0), rest }
}

describe('PubSubClient', () => {
  it('charges the responses of a batch to the memory budget until the client has read the reply', async () => {
    const { heldBytes, frames, readAll, send, respond } = serve()
    const sending = send(['getAccountInfo', 'getBalance', 'getProgramAccounts'])
    await respond('getAccountInfo', 0, 300_000)
    await respond('getBalance', 1, 5000)
    assert.equal(heldBytes.total, 305_000)
    assert.equal(frames.length, 0)
    await respond('getProgramAccounts', 2, 100)
    await sending
    assert.equal(frames.length, 1)
    assert.equal(heldBytes.total, 305_100)
    readAll()
    assert.equal(heldBytes.total, 0)
  })

  it('holds nothing more of a batch that has failed', async () => {
    const { heldBytes, send, respond, failNext } = serve()
    const sending = send(['getAccountInfo', 'getBalance', 'getProgramAccounts'])
    await respond('getAccountInfo', 0, 300_000)
    await failNext('getBalance')
    await sending
    assert.equal(heldBytes.total, 0)
    await respond('getProgramAccounts', 2, 300_000)
    assert.equal(heldBytes.total, 0)
  })

  it('refuses the responses of a batch that exceed the size of one response together', async () => {
    const { heldBytes, items, readAll, refused, refunds, send, respond } = serve()
    const sending = send(['getAccountInfo', 'getBlock', 'getBalance', 'getTransaction', 'getSlot'])
    await respond('getAccountInfo', 0, RESPONSE_BYTES_MAX - 10_000)
    await respond('getBlock', 1, 1_900_000)
    await respond('getBalance', 2, 10_000)
    await respond('getTransaction', 3, 100)
    assert.equal(heldBytes.total, RESPONSE_BYTES_MAX)
    await respond('getSlot', 4, 100)
    await sending
    readAll()
    assert.deepEqual(
      items().map(({ id, result, error }) => [id, result === undefined ? error?.data.limit : 'result']),
      [
        [0, 'result'],
        [1, 'answerBytes'],
        [2, 'result'],
        [3, 'answerBytes'],
        [4, 'answerBytes'],
      ],
    )
    const error = items()[1]?.error
    assert.deepEqual([error?.code, error?.data.charged], [-32513, true])
    assert.match(error?.message ?? '', /request it over HTTP; the call was forwarded and charged/)
    assert.deepEqual([refused, refunds(), heldBytes.total], [['answerBytes', 'answerBytes', 'answerBytes'], 0, 0])
  })

  it('refuses a response of a batch that exceeds the memory budget, and releases what it held of it', async () => {
    const { heldBytes, items, readAll, refused, send, respond } = serve({ ownerBytesMax: 400_000 })
    const sending = send(['getAccountInfo', 'getBlock', 'getSlot'])
    await respond('getAccountInfo', 0, 300_000)
    await respond('getBlock', 1, 200_000)
    assert.equal(heldBytes.total, 300_000)
    await respond('getSlot', 2, 100)
    await sending
    readAll()
    assert.deepEqual(
      items().map(({ error }) => [error?.data.limit, error?.data.charged]),
      [
        [undefined, undefined],
        ['heldBytesPerSubscription', true],
        [undefined, undefined],
      ],
    )
    assert.deepEqual([refused, heldBytes.total], [['heldBytesPerSubscription'], 0])
  })

  it('counts a small response to a single call too, which may wait with many others', async () => {
    const { heldBytes, refused, readAll, sendText, respond } = serve({ ownerBytesMax: 10_000 })
    for (const id of [1, 2, 3]) {
      const sending = sendText(`{"jsonrpc":"2.0","id":${id},"method":"getBalance"}`)
      await respond('getBalance', id, 5000)
      await sending
    }
    assert.deepEqual([heldBytes.total, refused], [10_000, ['heldBytesPerSubscription']])
    readAll()
    assert.equal(heldBytes.total, 0)
  })

  for (const [what, method, admission] of [
    ['over the quota', 'getSlot', () => OVER_LIMIT],
    ['over the subscriptions of the plan', 'slotSubscribe', () => CHARGED],
  ] as const) {
    it(`responds to calls ${what}, and reads no more than 500 of them a second`, async () => {
      const { clock, frames, pauses, send } = serve({ admission })
      const batch = Array.from({ length: 50 }, () => method)
      for (let sent = 0; sent < 20; sent++) await send(batch)
      assert.deepEqual(pauses, [])
      await send(batch)
      assert.equal(frames.length, 21)
      assert.equal(pauses.at(-1), 100)
      clock.advance(100)
      await send([method])
      assert.equal(pauses.at(-1), 2)
      clock.advance(102)
      const before = pauses.length
      await send(batch)
      assert.equal(pauses.length, before)
    })
  }

  it('refunds what a node has refused up to a rate, and what reached no node always', async () => {
    const { send, fail, refunds } = serve()
    const declined = { kind: 'declined', isSent: false, message: 'the node responded with HTTP 400' } as const
    for (let sent = 0; sent < FREE_REFUSALS.burst + 20; sent++) {
      const sending = send(['getSlot'])
      await fail('getSlot', declined)
      await sending
    }
    const refundedDeclined = refunds()
    assert.ok(
      refundedDeclined > FREE_REFUSALS.burst - 5 && refundedDeclined <= FREE_REFUSALS.burst,
      `${refundedDeclined}`,
    )
    const sending = send(['getSlot'])
    await fail('getSlot', { kind: 'no-upstream', isSent: false })
    await sending
    assert.equal(refunds(), refundedDeclined + 1)
  })

  it('pauses a new connection where its subscription is over the rate of free requests', async () => {
    const first = serve()
    const common = { clock: first.clock, freeMessages: first.freeMessages }
    const invalid = `[${Array.from({ length: 100 }, () => '1').join(',')}]`
    for (let sent = 0; sent < 10; sent++) await first.sendText(invalid)
    assert.deepEqual([first.pauses, serve(common).pauses], [[], []])
    await first.sendText(invalid)
    assert.equal(first.pauses.at(-1), 200)
    const again = serve(common)
    assert.deepEqual([again.pauses, again.refused], [[200], ['freeMessages']])
    first.clock.advance(200)
    assert.deepEqual(serve(common).pauses, [])
  })
})
