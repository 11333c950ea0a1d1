import type { ResponseRest } from '../../platform/http/response-rest.ts'
import { JsonScanner } from '../../solana/json/scan.ts'
import { ResponseScan } from './response-scan.ts'

/** Deeper than any node nests a response; only bounds the scanner's recursion. */
const RESPONSE_DEPTH_MAX = 256

export type ResponseParts = {
  /** Byte offsets of the id's value. */
  readonly idFrom: number
  readonly idTo: number
  /** It has a result that is not null, and no error. */
  readonly hasResult: boolean
}

/** Finds the id in one response object; undefined for anything else, and for an object without an id. */
export function findResponseId(body: Buffer): ResponseParts | undefined {
  // One character per byte, so that offsets in the text are offsets in the body.
  const text = body.toString('latin1')
  const scan = new JsonScanner(text, RESPONSE_DEPTH_MAX)
  scan.skipSpace()
  if (scan.peek() !== '{') return undefined
  let idFrom = -1
  let idTo = -1
  let hasResult = false
  let hasError = false
  scan.eachMember((name) => {
    scan.skipSpace()
    const valueFrom = scan.at
    scan.skipValue()
    if (name === 'id') {
      idFrom = valueFrom
      idTo = scan.at
    } else if (name === 'result') hasResult = !text.startsWith('null', valueFrom)
    else if (name === 'error') hasError = true
  })
  scan.expectEnd()
  if (scan.fault !== undefined || idFrom === -1) return undefined
  return { idFrom, idTo, hasResult: hasResult && !hasError }
}

/** The response with the client's id, all other bytes as the node wrote them; undefined where it has no id. */
export function replaceId(body: Buffer, id: string): Buffer | undefined {
  const found = findResponseId(body)
  return found && Buffer.concat([body.subarray(0, found.idFrom), Buffer.from(id), body.subarray(found.idTo)])
}

/** The same for a large response while it is sent. Nothing of it is held. */
export function replaceIdInStream(
  { body, rest }: { readonly body: Buffer; readonly rest: ResponseRest },
  id: string,
): ResponseRest {
  const scan = new ResponseScan({ isBatch: false })
  const idBytes = Buffer.from(id)
  let isReadable = true

  /** Bytes that are no response pass unchanged. */
  function replaceIn(piece: Buffer): Buffer {
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
      listener.onData(replaceIn(body))
      rest.start({ ...listener, onData: (piece) => listener.onData(replaceIn(piece)) })
    },
    pause: () => rest.pause(),
    resume: () => rest.resume(),
    abort: () => rest.abort(),
  }
}
