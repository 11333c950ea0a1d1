import { JsonScanner } from '../../solana/json/scan.ts'

/** Deeper than any node answers; only guards the scanner's own recursion. */
const RESPONSE_DEPTH_MAX = 256

/**
 * Upstream answers are handled as text of one character per byte (latin1): whatever they hold leaves as the bytes it came in. Only the id
 * member is found and, where the client's id was not sent upstream as it is, put back.
 */
export type SplitResponse = {
  readonly id: string
  /** The response under another id, which is given as ordinary text. */
  readonly withId: (id: string) => string
  /** Where the id stands in the text. */
  readonly idFrom: number
  readonly idTo: number
  /** Whether it holds a result that is not null, and no error. */
  readonly hasResult: boolean
}

/** Takes one answer object apart; undefined when it is not an object with an id. */
export function splitResponse(text: string): SplitResponse | undefined {
  const scan = new JsonScanner(text, RESPONSE_DEPTH_MAX)
  scan.skipSpace()
  const response = readObject(scan, text)
  scan.expectEnd()
  return scan.fault === undefined ? response : undefined
}

/** The bytes of one response under the id of the client; undefined when they are no response with an id. */
export function responseUnderId(body: Buffer, id: string): Buffer | undefined {
  const response = splitResponse(body.toString('latin1'))
  return response && Buffer.from(response.withId(id), 'latin1')
}

function readObject(scan: JsonScanner, text: string): SplitResponse | undefined {
  if (scan.peek() !== '{') return undefined
  const from = scan.at
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
  if (scan.fault !== undefined || idFrom === -1) return undefined
  const to = scan.at
  const [head, id, tail] = [text.slice(from, idFrom), text.slice(idFrom, idTo), text.slice(idTo, to)]
  return {
    id,
    withId: (own) => head + Buffer.from(own).toString('latin1') + tail,
    idFrom,
    idTo,
    hasResult: hasResult && !hasError,
  }
}
