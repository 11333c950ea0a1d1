import type { AnswerRest } from '../host/http-post.ts'

/** The whole of an answer that must be looked into, or why there is none: it broke off, or is longer than allowed. */
export function readWholeAnswer(
  { body, rest }: { readonly body: Buffer; readonly rest?: AnswerRest | undefined },
  bytesMax: number,
): Promise<Buffer | 'lost' | 'too-large'> {
  if (rest === undefined) return Promise.resolve(body.length <= bytesMax ? body : 'too-large')
  return new Promise((resolve) => {
    const parts = [body]
    let bytes = body.length
    rest.start({
      onData(chunk) {
        bytes += chunk.length
        if (bytes <= bytesMax) parts.push(chunk)
        else {
          rest.abort()
          resolve('too-large')
        }
      },
      onEnd: () => resolve(Buffer.concat(parts)),
      onFail: () => resolve('lost'),
    })
  })
}
