import type { ResponseRest } from '../platform/http/server/post.ts'

export type WholeResponseLimits = {
  readonly bytesMax: number
  /** Counts bytes that are held from now on; false where there is no room for them. Small responses arrive whole and are not counted. */
  hold?(bytes: number): boolean
}

/** The whole of a response that must be read in full, or why there is none: it broke off, is longer than allowed, or cannot be held. */
export function readWholeResponse(
  { body, rest }: { readonly body: Buffer; readonly rest?: ResponseRest | undefined },
  { bytesMax, hold = () => true }: WholeResponseLimits,
): Promise<Buffer | 'lost' | 'too-large' | 'no-room'> {
  if (rest === undefined) return Promise.resolve(body.length <= bytesMax ? body : 'too-large')
  return new Promise((resolve) => {
    const parts: Buffer[] = []
    let bytes = 0
    const add = (chunk: Buffer): boolean => {
      bytes += chunk.length
      const problem = bytes > bytesMax ? 'too-large' : hold(chunk.length) ? undefined : 'no-room'
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
