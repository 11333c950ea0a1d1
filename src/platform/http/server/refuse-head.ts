import type { IncomingMessage } from 'node:http'
import { isHost } from '../request-headers.ts'
import { type RequestRefusal, requestRefusal } from './request-refusals.ts'

type HeadLimits = { readonly headerFieldsMax: number; readonly fieldBytesMax: number }

/** Refuses heads that node:http accepts and other parsers may read differently (T5). */
export function refuseHead(request: IncomingMessage, limits: HeadLimits): RequestRefusal | undefined {
  const { rawHeaders: fields, httpVersion, headers } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return requestRefusal('http-version')
  if (fields.length / 2 > limits.headerFieldsMax) return requestRefusal('too-many-headers')
  let hosts = 0
  let bytes = 0
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    const value = fields[i + 1] as string
    bytes += name.length + value.length
    if (bytes > limits.fieldBytesMax) return requestRefusal('headers-too-large')
    if (name.length === 4 && name.toLowerCase() === 'host') {
      hosts += 1
      if (!isHost(value)) return requestRefusal('invalid-host')
    }
    // Parsers disagree on codings other than chunked, and on chunked over HTTP/1.0 (RFC 9112 sections 6.1 and 7).
    if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      const isChunked = httpVersion === '1.1' && value.toLowerCase() === 'chunked'
      if (!isChunked) return requestRefusal('transfer-encoding')
    }
  }
  if (hosts > 1) return requestRefusal('several-hosts')
  if (hosts === 0 && httpVersion === '1.1') return requestRefusal('no-host')
  // RFC 9110 section 10.1.1 defines no other expectation, and has HTTP/1.0 ignore them.
  const isUnknown = httpVersion === '1.1' && headers.expect !== undefined && !CONTINUE.test(headers.expect)
  return isUnknown ? requestRefusal('expectation') : undefined
}

/** As the runtime reads it. */
const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i
