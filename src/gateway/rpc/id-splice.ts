import type { ResponseRest } from '../../platform/http/server/post.ts'
import { ResponseScan } from './response-scan.ts'

/** A large response on its way to the client, with the client's id in place of the one it was sent under. Nothing of it is held. */
export function spliceId(
  { body, rest }: { readonly body: Buffer; readonly rest: ResponseRest },
  id: string,
): ResponseRest {
  const scan = new ResponseScan({ isBatch: false })
  const idBytes = Buffer.from(id)
  let isReadable = true

  /** What does not read as a response passes as it is: it is the node's own, and no id is known in it. */
  function splice(piece: Buffer): Buffer {
    const kept: Buffer[] = []
    let from = 0
    scan.at = 0
    for (;;) {
      const wasInId = isReadable && scan.isInId
      const event = isReadable ? scan.next(piece) : 'more'
      const at = event === 'more' ? piece.length : scan.at
      if (event === 'id-end') kept.push(idBytes)
      else if (!wasInId || event === 'fault') kept.push(piece.subarray(from, at))
      from = at
      if (event === 'fault') isReadable = false
      if (event === 'more') return kept.length === 1 ? (kept[0] as Buffer) : Buffer.concat(kept)
    }
  }

  return {
    start(listener) {
      listener.onData(splice(body))
      rest.start({ ...listener, onData: (piece) => listener.onData(splice(piece)) })
    },
    pause: () => rest.pause(),
    resume: () => rest.resume(),
    abort: () => rest.abort(),
  }
}
