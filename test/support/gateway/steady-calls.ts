import { setTimeout as pause } from 'node:timers/promises'

/** The results of a customer that calls continuously. */
export type SteadyCalls = AsyncDisposable & {
  readonly responded: number
  /** Every result that was not a response with status 200. */
  readonly failed: readonly string[]
  stop(): Promise<void>
}

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'
const CALL_MS_MAX = 30_000
const FAILED_KEPT_MAX = 20

/** A customer that makes one call after the other until it is stopped. */
export function startSteadyCalls(url: string, token: string, everyMs = 5): SteadyCalls {
  const failed: string[] = []
  let responded = 0
  let isOver = false
  const headers = { 'content-type': 'application/json', 'x-token': token }

  async function callOnce(): Promise<string | undefined> {
    const response = await fetch(url, { method: 'POST', headers, body: CALL, signal: AbortSignal.timeout(CALL_MS_MAX) })
    const text = await response.text()
    return response.status === 200 && text.includes('"result"') ? undefined : `${response.status} ${text}`
  }
  async function goOn(): Promise<void> {
    while (!isOver) {
      const failure = await callOnce().catch(String)
      if (failure === undefined) responded += 1
      else if (failed.length < FAILED_KEPT_MAX) failed.push(failure)
      await pause(everyMs)
    }
  }
  const going = goOn()
  async function stop(): Promise<void> {
    isOver = true
    await going
  }
  return {
    get responded() {
      return responded
    },
    failed,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
