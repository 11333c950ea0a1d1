import type { SubscribeMessage } from '../../contract/stream-events.ts'

/** Names of kinds and events, or the extended form with filters. */
export type SubscribeRequest = SubscribeMessage['subscribe']

const WS_PATH = '/v1/ws'
const TO_WS: Readonly<Record<string, string>> = { 'http:': 'ws:', 'https:': 'wss:' }

/** The parts of the URL of one connection. */
export type UrlParts = {
  readonly base: string | URL
  readonly subscribe: SubscribeRequest | undefined
  readonly resumeFrom: number | undefined
  readonly ticket: string | undefined
}

/** `http://host:8443` and `ws://host:8443/v1/ws` are equivalent. A query in `base` is kept. */
export function streamUrl({ base, subscribe, resumeFrom, ticket }: UrlParts): string {
  const url = new URL(base)
  url.protocol = TO_WS[url.protocol] ?? url.protocol
  if (url.pathname === '/') url.pathname = WS_PATH
  url.hash = ''
  if (subscribe !== undefined) url.searchParams.set('subscribe', subscribeText(subscribe))
  if (resumeFrom !== undefined) url.searchParams.set('resume_from', String(resumeFrom))
  if (ticket !== undefined) url.searchParams.set('ticket', ticket)
  return url.href
}

/** The short form is a list of names, the long one JSON. */
function subscribeText(subscribe: SubscribeRequest): string {
  return 'join' in subscribe ? subscribe.join(',') : JSON.stringify(subscribe)
}

/** One text frame of the service: `seq`, and one message under the name of its kind. */
export type Frame = { readonly seq: number; readonly type: string; readonly payload: unknown }

/** Undefined when the text is not a frame of this protocol. */
export function readFrame(text: unknown): Frame | undefined {
  if (typeof text !== 'string') return undefined
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const { seq, ...message } = value as Record<string, unknown>
  const [type, ...more] = Object.keys(message)
  if (type === undefined || more.length > 0) return undefined
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 0) return undefined
  return { seq, type, payload: message[type] }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
