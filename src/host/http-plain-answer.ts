import { STATUS_CODES } from 'node:http'
import type { Clock } from '../core/clock.ts'
import type { HttpAnswer } from './http-post.ts'

export type PlainAnswerOptions = {
  /** Sent with every answer. */
  readonly headers: Readonly<Record<string, string>>
  readonly keepAliveMs: number
  readonly requestsPerConnectionMax: number
}

export type PlainAnswers = {
  /** All that stands before the body. */
  head(
    answer: Pick<HttpAnswer, 'status' | 'headers' | 'rest'>,
    requestId: string,
    isLast: boolean,
    bodyBytes: number,
  ): string
}

/** Writes heads as node:http does: the same fields in the same order, so that a client cannot tell which reader took its request. */
export function createPlainAnswers(options: PlainAnswerOptions, clock: Clock): PlainAnswers {
  const common = fieldLines(options.headers)
  const { keepAliveMs, requestsPerConnectionMax } = options
  const keeps = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}, max=${requestsPerConnectionMax}\r\n`
  let dateSecond = -1
  let dateLine = ''

  function date(): string {
    const second = Math.floor(clock.nowMs() / 1000)
    if (second !== dateSecond) {
      dateSecond = second
      dateLine = `Date: ${new Date(second * 1000).toUTCString()}\r\n`
    }
    return dateLine
  }

  return {
    head({ status, headers, rest }, requestId, isLast, bodyBytes) {
      const isSized = rest === undefined && status !== 204
      const own = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\nx-request-id: ${requestId}\r\n${fieldLines(headers)}`
      const length = isSized ? `content-length: ${bodyBytes}\r\n` : ''
      const end = rest === undefined ? '\r\n' : 'Transfer-Encoding: chunked\r\n\r\n'
      return own + common + length + date() + (isLast ? 'Connection: close\r\n' : keeps) + end
    },
  }
}

/** Field values are the house's own; a line break in one would be a mistake of the program, not of a caller. */
function fieldLines(headers: Readonly<Record<string, string>>): string {
  let lines = ''
  for (const name in headers) lines += `${name}: ${headers[name]}\r\n`
  return lines
}
