import type { Clock, Timer } from '../core/clock.ts'
import type { HttpClient } from '../host/http-client.ts'

/** Asks again so long after an answer, and waits so long for one: a server that is cut off is known after 7.5 s. */
const PING_EVERY_MS = 2_500
const PING_MS = 2_500
/** One may be lost by chance. */
const MISSED_MAX = 2

/**
 * Asks the server now and then whether it is there while a statement runs: a statement may take minutes, and a connection that was cut says
 * nothing. The signal is aborted when the server is not. Needs a connection of its own.
 */
export function watchServer(
  client: Pick<HttpClient, 'send'>,
  clock: Clock,
): Disposable & { readonly signal: AbortSignal } {
  const gone = new AbortController()
  let timer: Timer = clock.setTimer(PING_EVERY_MS, () => void look())
  let missed = 0
  let isOver = false

  async function look(): Promise<void> {
    missed = (await isThere()) ? 0 : missed + 1
    if (isOver) return
    if (missed >= MISSED_MAX) gone.abort(new Error('it does not answer its ping'))
    else timer = clock.setTimer(missed === 0 ? PING_EVERY_MS : 0, () => void look())
  }

  async function isThere(): Promise<boolean> {
    const late = new AbortController()
    const wait = clock.setTimer(PING_MS, () => late.abort())
    try {
      const { body } = await client.send({ method: 'GET', target: '/ping', headers: {}, signal: late.signal })
      body.on('error', () => {}).resume()
      return true
    } catch {
      return false
    } finally {
      wait.cancel()
    }
  }

  return {
    signal: gone.signal,
    [Symbol.dispose]() {
      isOver = true
      timer.cancel()
    },
  }
}
