import type { ResponseRest } from '../platform/http/response-rest.ts'

export type CompleteResponseLimits = {
  readonly bytesMax: number
  /** Charges bytes to a memory budget; false where it is used up. Small responses arrive in one piece and are not charged. */
  hold?(bytes: number): boolean
}

/** Reads a response completely, or returns why it cannot: it broke off, is too large, or exceeds the memory budget. */
export function readCompleteResponse(
  { body, rest }: { readonly body: Buffer; readonly rest?: ResponseRest | undefined },
  { bytesMax, hold = () => true }: CompleteResponseLimits,
): Promise<Buffer | 'lost' | 'too-large' | 'over-budget'> {
  if (rest === undefined) return Promise.resolve(body.length <= bytesMax ? body : 'too-large')
  return new Promise((resolve) => {
    const parts: Buffer[] = []
    let bytes = 0
    const add = (chunk: Buffer): boolean => {
      bytes += chunk.length
      const problem = bytes > bytesMax ? 'too-large' : hold(chunk.length) ? undefined : 'over-budget'
      if (problem === undefined) parts.push(chunk)
      else {
        rest.abort()
        resolve(problem)
      }
      return problem === undefined
    }
    if (!add(body)) return
    rest.start({
      onData: (chunk) => void add(chunk),
      onEnd: () => resolve(Buffer.concat(parts)),
      onFail: () => resolve('lost'),
    })
  })
}
