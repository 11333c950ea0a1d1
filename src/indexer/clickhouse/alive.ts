import type { Clock, Timer } from '../../core/clock.ts'
import type { HttpClient } from '../../platform/http/client/client.ts'

/** Asks again so long after an answer, and waits so long for one: a server that is cut off is known after 7.5 s. */
const PING_EVERY_MS = 2_500
const PING_MS = 2_500
/** One may be lost by chance. */
const MISSED_MAX = 2

/** What the machine of a server says when nothing listens there: the connection under watch hears the same for itself. */
const REFUSED_CODES: readonly unknown[] = ['ECONNREFUSED', 'ECONNRESET']

/** How a server is asked for the first time: less patiently, where nothing is lost yet by giving up. */
export type FirstPing = { readonly afterMs: number; readonly withinMs: number }

/**
 * Asks the server now and then whether it is there while a statement runs: a statement may take minutes, and a connection that was cut says
 * nothing. The signal is aborted when the server is not. Needs a connection of its own.
 */
export function watchServer(
  client: Pick<HttpClient, 'send'>,
  clock: Clock,
  first?: FirstPing,
): Disposable & { readonly signal: AbortSignal } {
  const gone = new AbortController()
  let timer: Timer = clock.setTimer(first?.afterMs ?? PING_EVERY_MS, () => void look(first?.withinMs))
  let missed = 0
  let isOver = false

  async function look(firstMs?: number): Promise<void> {
    missed = (await isThere(firstMs ?? PING_MS)) ? 0 : missed + 1
    if (isOver) return
    if (missed >= (firstMs === undefined ? MISSED_MAX : 1)) gone.abort(new Error('it does not answer its ping'))
    else timer = clock.setTimer(missed === 0 ? PING_EVERY_MS : 0, () => void look())
  }

  async function isThere(withinMs: number): Promise<boolean> {
    const late = new AbortController()
    // In two halves: a loop that was held up for the whole time reads what came meanwhile before the second one is over.
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
    signal: gone.signal,
    [Symbol.dispose]() {
      isOver = true
      timer.cancel()
    },
  }
}
