import { STATUS_CODES } from 'node:http'
import type { Clock } from '../../../core/clock.ts'
import type { HttpResponse } from './post.ts'

export type FastPathResponseOptions = {
  /** Sent with every response. */
  readonly headers: Readonly<Record<string, string>>
  readonly keepAliveMs: number
  readonly requestsPerConnectionMax: number
}

export type FastPathResponses = {
  /** Status line and header fields, with the empty line. */
  head(
    response: Pick<HttpResponse, 'status' | 'headers' | 'lines' | 'rest'>,
    requestId: string,
    isLast: boolean,
    bodyBytes: number,
  ): string
}

/** Writes heads as node:http does, with the same fields in the same order: a client cannot see which parser read its request. */
export function createFastPathResponses(options: FastPathResponseOptions, clock: Clock): FastPathResponses {
  const common = fieldLines(options.headers)
  const { keepAliveMs, requestsPerConnectionMax } = options
  const keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}, max=${requestsPerConnectionMax}\r\n`
  const lengthName = flat(`${common}content-length: `)
  const statusLines = new Map(
    Object.entries(STATUS_CODES).map(([status, message]) => [Number(status), flat(statusLine(status, message))]),
  )
  /** The line of the current second; '' until it is rendered. */
  let dateLine = ''
  /** What follows the length of a response after which the connection stays open, as nearly all do. */
  let usualEnd = ''

  function refreshDate(): void {
    const nowMs = clock.nowMs()
    dateLine = `Date: ${new Date(nowMs).toUTCString()}\r\n`
    usualEnd = flat(`\r\n${dateLine}${keepAlive}\r\n`)
    const timer = clock.setTimer(1000 - (nowMs % 1000), () => {
      dateLine = ''
    })
    timer.unref?.()
  }

  return {
    head(response, requestId, isLast, bodyBytes) {
      if (dateLine === '') refreshDate()
      const { status, rest } = response
      const first = statusLines.get(status) ?? statusLine(status, 'Unknown')
      const own = `${first}${requestId}\r\n${response.lines ?? fieldLines(response.headers)}`
      const isSized = rest === undefined && status !== 204
      if (isSized && !isLast) return own + lengthName + bodyBytes + usualEnd
      const length = isSized ? `content-length: ${bodyBytes}\r\n` : ''
      const end = rest === undefined ? '\r\n' : 'Transfer-Encoding: chunked\r\n\r\n'
      return own + common + length + dateLine + (isLast ? 'Connection: close\r\n' : keepAlive) + end
    },
  }
}

function statusLine(status: number | string, message: string | undefined): string {
  return `HTTP/1.1 ${status} ${message}\r\nx-request-id: `
}

/** The values are made by Sluice: a line break in one is a programming error, not a caller's. */
export function fieldLines(headers: Readonly<Record<string, string>>): string {
  let lines = ''
  for (const name in headers) lines += `${name}: ${headers[name]}\r\n`
  return lines
}

/** The same text as one flat string: V8 keeps a concatenation as a tree and flattens it with every response. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
