import type { Clock, Timer } from '../../core/clock.ts'
import type { HttpClient } from '../../platform/http/client/client.ts'

/** Interval and timeout of pings: an unreachable server is detected after 7.5 s. */
const PING_EVERY_MS = 2_500
const PING_MS = 2_500
/** A single ping may be lost by chance. */
const MISSED_MAX = 2

/** The server's machine is reachable and refuses the connection: the watched connection gets the same error itself. */
const REFUSED_CODES: readonly unknown[] = ['ECONNREFUSED', 'ECONNRESET']

/** A first ping with a shorter timeout, for callers that lose nothing by a retry. */
export type FirstPing = { readonly afterMs: number; readonly withinMs: number }

/**
 * Pings the server while a statement runs: a statement may take minutes, and a broken connection reports nothing. Aborts the signal when the server
 * does not respond. Needs a connection that no query uses.
 */
export function watchServer(
  client: Pick<HttpClient, 'send'>,
  clock: Clock,
  first?: FirstPing,
): Disposable & { readonly signal: AbortSignal } {
  const unreachable = new AbortController()
  let timer: Timer = clock.setTimer(first?.afterMs ?? PING_EVERY_MS, () => void ping(first?.withinMs))
  let missed = 0
  let isOver = false

  async function ping(firstMs?: number): Promise<void> {
    missed = (await responds(firstMs ?? PING_MS)) ? 0 : missed + 1
    if (isOver) return
    if (missed >= (firstMs === undefined ? MISSED_MAX : 1))
      unreachable.abort(new Error('the server does not respond to its ping'))
    else timer = clock.setTimer(missed === 0 ? PING_EVERY_MS : 0, () => void ping())
  }

  async function responds(withinMs: number): Promise<boolean> {
    const late = new AbortController()
    // In two halves: an event loop that was blocked for the whole time reads the response before the second half ends.
    let wait = clock.setTimer(withinMs / 2, () => {
      wait = clock.setTimer(withinMs / 2, () => late.abort())
    })
    try {
      const { body } = await client.send({ method: 'GET', target: '/ping', headers: {}, signal: late.signal })
      body.on('error', () => {}).resume()
      return true
    } catch (error) {
      return REFUSED_CODES.includes(((error as Error).cause as NodeJS.ErrnoException | undefined)?.code)
    } finally {
      wait.cancel()
    }
  }

  return {
    signal: unreachable.signal,
    [Symbol.dispose]() {
      isOver = true
      timer.cancel()
    },
  }
}
