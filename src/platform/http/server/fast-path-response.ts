import { STATUS_CODES } from 'node:http'
import type { Clock } from '../../../core/clock.ts'
import type { HttpResponse } from './post.ts'

export type FastPathResponseOptions = {
  /** Sent with every answer. */
  readonly headers: Readonly<Record<string, string>>
  readonly keepAliveMs: number
  readonly requestsPerConnectionMax: number
}

export type FastPathResponses = {
  /** All that stands before the body. */
  head(
    response: Pick<HttpResponse, 'status' | 'headers' | 'lines' | 'rest'>,
    requestId: string,
    isLast: boolean,
    bodyBytes: number,
  ): string
}

/** Writes heads as node:http does: the same fields in the same order, so that a client cannot tell which reader took its request. */
export function createFastPathResponses(options: FastPathResponseOptions, clock: Clock): FastPathResponses {
  const common = fieldLines(options.headers)
  const { keepAliveMs, requestsPerConnectionMax } = options
  const keeps = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}, max=${requestsPerConnectionMax}\r\n`
  const lengthName = flat(`${common}content-length: `)
  const statusLines = new Map(
    Object.entries(STATUS_CODES).map(([status, message]) => [Number(status), flat(statusLine(status, message))]),
  )
  /** Of this second; nothing when it is over. */
  let dateLine = ''
  /** Behind the length of an answer after which the connection stays: nearly all are that. */
  let usualEnd = ''

  function lookAtClock(): void {
    const nowMs = clock.nowMs()
    dateLine = `Date: ${new Date(nowMs).toUTCString()}\r\n`
    usualEnd = flat(`\r\n${dateLine}${keeps}\r\n`)
    const timer = clock.setTimer(1000 - (nowMs % 1000), () => {
      dateLine = ''
    })
    timer.unref?.()
  }

  return {
    head(response, requestId, isLast, bodyBytes) {
      if (dateLine === '') lookAtClock()
      const { status, rest } = response
      const first = statusLines.get(status) ?? statusLine(status, 'Unknown')
      const own = `${first}${requestId}\r\n${response.lines ?? fieldLines(response.headers)}`
      const isSized = rest === undefined && status !== 204
      if (isSized && !isLast) return own + lengthName + bodyBytes + usualEnd
      const length = isSized ? `content-length: ${bodyBytes}\r\n` : ''
      const end = rest === undefined ? '\r\n' : 'Transfer-Encoding: chunked\r\n\r\n'
      return own + common + length + dateLine + (isLast ? 'Connection: close\r\n' : keeps) + end
    },
  }
}

function statusLine(status: number | string, message: string | undefined): string {
  return `HTTP/1.1 ${status} ${message}\r\nx-request-id: `
}

/** Field values are the house's own; a line break in one would be a mistake of the program, not of a caller. */
export function fieldLines(headers: Readonly<Record<string, string>>): string {
  let lines = ''
  for (const name in headers) lines += `${name}: ${headers[name]}\r\n`
  return lines
}

/** The same text in one piece: the runtime keeps a joined one as its parts, to be joined anew with every answer. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
