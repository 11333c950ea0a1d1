import type { CallOutcome } from './http-call.ts'

/** The whole of an answer that must be looked into. Undefined when it breaks off, or is longer than allowed. */
export function readWholeAnswer(
  { body, rest }: Pick<Extract<CallOutcome, { kind: 'answered' }>, 'body' | 'rest'>,
  bytesMax: number,
): Promise<Buffer | undefined> {
  if (rest === undefined) return Promise.resolve(body.length <= bytesMax ? body : undefined)
  return new Promise((resolve) => {
    const parts = [body]
    let bytes = body.length
    rest.start({
      onData(chunk) {
        bytes += chunk.length
        if (bytes <= bytesMax) parts.push(chunk)
        else {
          rest.abort()
          resolve(undefined)
        }
      },
      onEnd: () => resolve(Buffer.concat(parts)),
      onFail: () => resolve(undefined),
    })
  })
}
