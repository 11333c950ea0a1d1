import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { BillingSinkName } from '../../../src/admin/billing/options.ts'

const DAY_MS = 86_400_000

/** What happens to a request. `counted`: the sink has taken its events before it fails. */
export const SINK_FAULTS = [
  'none',
  'closed',
  'closed-counted',
  'error',
  'error-counted',
  'silent',
  'silent-counted',
  'limited',
] as const
export type SinkFault = (typeof SINK_FAULTS)[number]

export type SinkEvent = {
  readonly id: string
  readonly subject: string
  readonly name: string
  readonly value: number
  readonly timeMs: number
}

export type TestSink = AsyncDisposable & {
  readonly url: string
  /** Every event that was counted, also one that was counted twice. */
  readonly counted: SinkEvent[]
  requests(): number
  /** Resolves when no request is being read: one that its client gave up counts at the time at which it was sent. */
  idle(): Promise<void>
  sum(): number
  /** The headers of the last request. */
  headers(): IncomingMessage['headers']
}

export type TestSinkDeps = {
  fault(request: number): SinkFault
  nowMs(): number
  /** A request gets no response: the client's deadline has to pass. */
  onSilence?(): void
  /** Called after the events of a request were counted or not, before its response. */
  onRequest?(): Promise<void> | void
  /** Why an event is invalid. */
  refuse?(event: SinkEvent): string | undefined
}

/** A billing system over HTTP with the rule of the real one for repeated events. */
export async function startTestSink(kind: BillingSinkName, deps: TestSinkDeps): Promise<TestSink> {
  const counted: SinkEvent[] = []
  const seenAt = new Map<string, number>()
  /** Stripe gives every further request with an Idempotency-Key the response to the first, also if that was a 500. */
  const statusByKey = new Map<string, { status: number; body: string }>()
  let requests = 0
  let headers: IncomingMessage['headers'] = {}

  const isRepeated = ({ id }: SinkEvent) => {
    const at = seenAt.get(id)
    // Stripe recognizes an identifier for 24 hours; a later repetition counts again.
    return at !== undefined && (kind !== 'stripe' || deps.nowMs() - at < DAY_MS)
  }

  function take(events: readonly SinkEvent[]): { status: number; body: string } {
    const refused = events.map((event) => deps.refuse?.(event))
    if (kind === 'lago') {
      const details = Object.fromEntries(
        events.flatMap((event, at): [number, object][] => {
          if (isRepeated(event)) return [[at, { transaction_id: ['value_already_exist'] }]]
          return refused[at] === undefined ? [] : [[at, { code: [refused[at]] }]]
        }),
      )
      if (Object.keys(details).length > 0)
        return { status: 422, body: JSON.stringify({ status: 422, code: 'validation_errors', error_details: details }) }
    }
    const reason = refused.find((text) => text !== undefined)
    if (reason !== undefined) return { status: 400, body: JSON.stringify({ error: { message: reason } }) }
    const [first] = events
    if (kind === 'stripe' && first !== undefined) {
      if (isRepeated(first))
        return {
          status: 400,
          body: JSON.stringify({ error: { code: 'duplicate_meter_event', message: 'a repetition' } }),
        }
      if (deps.nowMs() - first.timeMs > 35 * DAY_MS)
        return { status: 400, body: JSON.stringify({ error: { code: 'timestamp_too_far_in_past' } }) }
    }
    for (const event of events) {
      if (isRepeated(event)) continue
      seenAt.set(event.id, deps.nowMs())
      counted.push(event)
    }
    return kind === 'openmeter' ? { status: 204, body: '' } : { status: 200, body: '{}' }
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const fault = deps.fault(requests)
    requests += 1
    headers = request.headers
    const pieces: Buffer[] = []
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece)
    const events = parseEvents(kind, request, Buffer.concat(pieces).toString())
    const isTaken = fault === 'none' || fault.endsWith('-counted')
    const key = kind === 'stripe' ? String(headers['idempotency-key']) : undefined
    const repeated = key === undefined ? undefined : statusByKey.get(key)
    const { status, body } = repeated ?? (isTaken ? take(events) : { status: 500, body: 'a fault' })
    const hasFailed = fault.startsWith('error')
    if (key !== undefined && (isTaken || hasFailed))
      statusByKey.set(key, hasFailed ? { status: 500, body: 'a fault' } : { status, body })
    await deps.onRequest?.()
    if (fault.startsWith('closed')) return void request.socket.destroy()
    if (fault.startsWith('silent')) return deps.onSilence?.()
    if (fault === 'limited') return void response.writeHead(429, { 'retry-after': '7' }).end()
    if (hasFailed) return void response.writeHead(500).end('a fault')
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  }

  const server = createServer(
    (request, response) => void serve(request, response).catch(() => request.socket.destroy()),
  )
  let active = 0
  server.prependListener('request', (request) => {
    active += 1
    request.once('close', () => {
      active -= 1
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counted,
    requests: () => requests,
    async idle() {
      for (let turns = 0; turns < 20 || (active > 0 && turns < 1000); turns++) await nextTurn()
    },
    headers: () => headers,
    sum: () => counted.reduce((sum, { value }) => sum + value, 0),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const PATHS = {
  openmeter: ['/api/v1/events', 'application/cloudevents-batch+json'],
  lago: ['/api/v1/events/batch', 'application/json'],
  stripe: ['/v1/billing/meter_events', 'application/x-www-form-urlencoded'],
} as const

/** Throws for a request that the real system would not understand. */
function parseEvents(kind: BillingSinkName, { method, url, headers }: IncomingMessage, text: string): SinkEvent[] {
  const [path, contentType] = PATHS[kind]
  if (method !== 'POST' || url !== path || headers['content-type'] !== contentType) throw new Error('a wrong request')
  if (kind === 'openmeter')
    return (JSON.parse(text) as CloudEvent[]).map(({ specversion, id, source, subject, type, time, data }) => {
      if (specversion !== '1.0') throw new Error('not a CloudEvent')
      return { id: `${source} ${id}`, subject, name: type, value: data.value, timeMs: Date.parse(time) }
    })
  if (kind === 'lago') {
    const { events } = JSON.parse(text) as { events: LagoEvent[] }
    if (events.length > 100) throw new Error('more than 100 events')
    return events.map((event) => ({
      id: event.transaction_id,
      subject: event.external_subscription_id,
      name: event.code,
      value: event.properties.value,
      timeMs: event.timestamp * 1000,
    }))
  }
  const form = new URLSearchParams(text)
  const of = (name: string) => form.get(name) ?? ''
  if (headers['idempotency-key'] === undefined) throw new Error('no idempotency key')
  return [
    {
      id: of('identifier'),
      subject: of('payload[stripe_customer_id]'),
      name: of('event_name'),
      value: Number(of('payload[value]')),
      timeMs: Number(of('timestamp')) * 1000,
    },
  ]
}

type CloudEvent = {
  specversion: string
  id: string
  source: string
  subject: string
  type: string
  time: string
  data: { value: number }
}

type LagoEvent = {
  transaction_id: string
  external_subscription_id: string
  code: string
  timestamp: number
  properties: { value: number }
}
