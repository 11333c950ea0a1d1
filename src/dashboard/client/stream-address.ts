import type { SubscribeMessage } from '../../contract/stream-events.ts'

/** Names of kinds and events, or the extended form with filters. */
export type SubscribeRequest = SubscribeMessage['subscribe']

const WS_PATH = '/v1/ws'
const TO_WS: Readonly<Record<string, string>> = { 'http:': 'ws:', 'https:': 'wss:' }

/** What goes into the address of one connection. */
export type AddressParts = {
  readonly base: string | URL
  readonly subscribe: SubscribeRequest | undefined
  readonly resumeFrom: number | undefined
  readonly ticket: string | undefined
}

/** `http://host:8443` and `ws://host:8443/v1/ws` mean the same. A query of the given address is kept. */
export function streamAddress({ base, subscribe, resumeFrom, ticket }: AddressParts): string {
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
