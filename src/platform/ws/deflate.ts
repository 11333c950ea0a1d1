import { constants, deflateRawSync } from 'node:zlib'
import { framePayload, startTextFrame } from './frame.ts'

/**
 * The window of both directions, 4 KiB: messages are a few KiB and start with an empty window, so a larger one gains little, and a connection that
 * sends compressed messages holds a window for them. It is also what Python's `websockets` asks for.
 */
const WINDOW_BITS = 12
/** A smaller message does not become smaller by a packet. */
export const DEFLATE_BYTES_MIN = 512
/** A larger message is sent as it is: to compress it would hold the event loop for milliseconds. */
export const DEFLATE_BYTES_MAX = 256 * 1024

const OPTIONS = {
  level: constants.Z_BEST_SPEED,
  windowBits: WINDOW_BITS,
  memLevel: 5,
  finishFlush: constants.Z_SYNC_FLUSH,
}
/** The end of a sync flush, which is not sent (RFC 7692 section 7.2.1). */
const TAIL_BYTES = 4

/**
 * The frame of `encodeTextFrame` as a compressed message (RFC 7692), for clients that have negotiated permessage-deflate. It depends on no earlier
 * message, so one frame serves all of them. Undefined where the message is sent as it is: it is small or large, or does not shrink by half.
 */
export function deflateFrame(frame: Buffer, allocate?: (bytes: number) => Buffer): Buffer | undefined {
  const payload = framePayload(frame)
  if (payload.length < DEFLATE_BYTES_MIN || payload.length > DEFLATE_BYTES_MAX) return undefined
  const packed = deflateRawSync(payload, OPTIONS)
  const bytes = packed.length - TAIL_BYTES
  if (bytes > payload.length / 2) return undefined
  const deflated = startTextFrame(bytes, allocate, true)
  packed.copy(deflated.bytes, deflated.from, 0, bytes)
  return deflated.bytes
}

/** What the library is asked to accept: each message is compressed on its own, in both directions. */
export const DEFLATE_TERMS = { serverNoContextTakeover: true, clientNoContextTakeover: true } as const

/** An extension of a `Sec-WebSocket-Extensions` header with its parameters (RFC 6455 section 9.1): tokens, and values as tokens or quoted. */
const PARAMETER = /^([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"(\d{1,2})"|([\w!#$%&'*+.^`|~-]+)))?$/
const OFFERS_MAX = 16

/**
 * The first offer of permessage-deflate that can be honoured, in the form that the library accepts, or undefined. An offer with an unknown, repeated
 * or invalid parameter is declined (RFC 7692 section 7.1), and so is one that asks for a smaller window than the shared frames have. The connection
 * is then opened without compression.
 */
export function chooseDeflateOffer(header: string | undefined): string | undefined {
  for (const offer of header?.split(',', OFFERS_MAX) ?? []) {
    const [name, ...parameters] = offer.split(';').map((part) => part.trim())
    if (name?.toLowerCase() !== 'permessage-deflate') continue
    const accepted = acceptParameters(parameters)
    if (accepted !== undefined) return ['permessage-deflate', ...accepted].join('; ')
  }
  return undefined
}

function acceptParameters(parameters: readonly string[]): string[] | undefined {
  const accepted = new Map<string, string>()
  for (const parameter of parameters) {
    const match = PARAMETER.exec(parameter)
    const name = match?.[1]?.toLowerCase()
    if (match === null || name === undefined || accepted.has(name)) return undefined
    const value = match[2] ?? match[3]
    if (name === 'server_no_context_takeover' || name === 'client_no_context_takeover') {
      if (value !== undefined) return undefined
      accepted.set(name, name)
    } else if (name === 'server_max_window_bits') {
      const bits = windowBits(value)
      if (bits === undefined || bits < WINDOW_BITS) return undefined
      accepted.set(name, `${name}=${WINDOW_BITS}`)
    } else if (name === 'client_max_window_bits') {
      const bits = value === undefined ? WINDOW_BITS : windowBits(value)
      if (bits === undefined) return undefined
      accepted.set(name, `${name}=${Math.min(bits, WINDOW_BITS)}`)
    } else return undefined
  }
  return [...accepted.values()]
}

/** 8 to 15, without a leading zero (RFC 7692 section 7.1.2). */
function windowBits(value: string | undefined): number | undefined {
  return value !== undefined && /^([89]|1[0-5])$/.test(value) ? Number(value) : undefined
}
