import { constants, type ServerHttp2Session } from 'node:http2'
import type { Clock, Timer } from '../../core/clock.ts'

export type GrpcSessionOptions = {
  readonly firstBytesMs: number
  readonly keepAliveMs: number
  readonly keepAliveTimeoutMs: number
}

/** On a connection without data a client may not ping more often than this. */
const CLIENT_PING_INTERVAL_MS = 10_000
/** As in gRPC's core: the third ping too many ends the connection. */
const PING_STRIKES_MAX = 2

/**
 * Enforces the rules of one connection: it sends its settings soon after connecting, replies to pings, and does not ping too often. All timers end
 * with the connection.
 */
export function watchSession(
  session: ServerHttp2Session,
  { clock, options }: { readonly clock: Clock; readonly options: GrpcSessionOptions },
): void {
  const firstBytes = clock.setTimer(options.firstBytesMs, () => session.destroy())
  session.once('remoteSettings', () => firstBytes.cancel())

  let pingTimeout: Timer | undefined
  const keepAlive = clock.setRepeating(options.keepAliveMs, () => {
    if (session.closed || session.destroyed) return
    pingTimeout?.cancel()
    pingTimeout = clock.setTimer(options.keepAliveTimeoutMs, () => session.destroy())
    session.ping(() => pingTimeout?.cancel())
  })

  let strikes = 0
  let lastPingMs = Number.NEGATIVE_INFINITY
  let bytesWrittenAtPing = 0
  session.on('ping', () => {
    const nowMs = clock.monotonicMs()
    const bytesWritten = session.socket?.bytesWritten ?? 0
    // The reply to the previous ping does not count as data.
    const isIdle = bytesWritten - bytesWrittenAtPing <= PING_RESPONSE_BYTES
    strikes = isIdle && nowMs - lastPingMs < CLIENT_PING_INTERVAL_MS ? strikes + 1 : 0
    lastPingMs = nowMs
    bytesWrittenAtPing = bytesWritten
    if (strikes > PING_STRIKES_MAX) {
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from('too_many_pings'))
      session.close()
      clock.setTimer(options.keepAliveTimeoutMs, () => session.destroy()).unref?.()
    }
  })

  session.on('close', () => {
    firstBytes.cancel()
    keepAlive.cancel()
    pingTimeout?.cancel()
  })
}

const PING_RESPONSE_BYTES = 17
