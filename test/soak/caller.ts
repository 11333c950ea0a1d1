import { type Client, pause } from './client.ts'

const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'getBalance',
  params: ['11111111111111111111111111111111'],
})
const RESPONSE_MS_MAX = 20_000

/**
 * Sends one JSON-RPC call after another and counts the cost that each response reports; a call without a response may have cost
 * one unit or none.
 */
export const caller: Client = async ({ service, random, isOver, reportViolation, count }) => {
  while (!isOver()) {
    try {
      const response = await fetch(`http://${service.at.rpc}/`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-token': service.token },
        body: BODY,
        signal: AbortSignal.timeout(RESPONSE_MS_MAX),
      })
      const text = await response.text()
      count('calls')
      count('reported units', Number(response.headers.get('x-ratelimit-cost') ?? 0))
      if (response.status === 200 && text.includes('"result"')) count('responses')
      else if ([429, 502, 503, 504].includes(response.status) || text.includes('"error"'))
        count(`refused ${response.status}`)
      else reportViolation(`a call got the response ${response.status} ${text.slice(0, 200)}`)
    } catch (error) {
      count('calls without response')
      if (!isExpected(error)) reportViolation(`a call failed with ${String(error)}`)
    }
    await pause(20 + random(200))
  }
}

/** The service was restarted, or the machine is busy. */
function isExpected(error: unknown): boolean {
  const cause = (error as { cause?: { code?: string } }).cause?.code ?? (error as { name?: string }).name
  return ['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET', 'EPIPE', 'TimeoutError'].includes(String(cause))
}
