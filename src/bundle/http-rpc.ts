import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { gunzipBytes } from '../host/gzip.ts'
import type { HttpAnswer, PostHandler, PostHead } from '../host/http-post.ts'
import { createRequestIds } from '../host/request-id.ts'
import { encodeAnswer } from './answer-encoding.ts'
import { refuseSize } from './refusal.ts'
import { type Rpc, refuse } from './rpc.ts'

export type RpcPostsDeps = { readonly rpc: Rpc; readonly clock: Clock; readonly random: Random }

/** JSON-RPC by POST, for whichever reader took the request: token by the head alone, then the body, unpacked where it came packed. */
export function createRpcPosts(
  commonHeaders: Readonly<Record<string, string>>,
  { rpc, clock, random }: RpcPostsDeps,
): PostHandler {
  const requestIdOf = createRequestIds({ clock, random })
  return {
    headers: commonHeaders,
    judge(head) {
      const requestId = requestIdOf(head.headers)
      const query = queryOf(head.target)
      const { remoteAddress } = head.connection
      const caller = rpc.authenticate({ headers: head.headers, query, requestId, remoteAddress })
      if (!('subscription' in caller)) return { requestId, answer: caller.answer }
      const { contentType, contentEncoding, acceptEncoding } = contentFieldsOf(head)
      if (!isJson(contentType)) return { requestId, answer: NOT_JSON }
      const isPacked = contentEncoding !== undefined && contentEncoding !== 'identity'
      if (isPacked && contentEncoding !== 'gzip') return { requestId, answer: UNKNOWN_ENCODING }
      const { requestBytes } = caller.limits
      const tooLarge = () => refuse(refuseSize('requestBytes', requestBytes), { requestId })
      if ((head.bodyBytes ?? 0) > requestBytes) return { requestId, answer: tooLarge() }
      const { headers, connection } = head
      const answer = (body: Buffer) =>
        rpc
          .answer(caller, { headers, query, body, requestId, connection })
          .then((made) => encodeAnswer(made, acceptEncoding))
      return {
        requestId,
        bodyBytesMax: requestBytes,
        tooLarge,
        onBody: isPacked ? (packed) => unpacked(packed, requestBytes, tooLarge, answer) : answer,
      }
    },
  }
}

async function unpacked(
  packed: Buffer,
  bodyBytesMax: number,
  tooLarge: () => HttpAnswer,
  answer: (body: Buffer) => Promise<HttpAnswer>,
): Promise<HttpAnswer> {
  const outcome = await gunzipBytes(packed, { bodyBytesMax })
  if (outcome.ok) return answer(outcome.body)
  // What cannot be unpacked holds no JSON, and is answered so.
  return outcome.reason === 'too-large' ? tooLarge() : answer(NOTHING)
}

const NOTHING = Buffer.alloc(0)
const TEXT = { 'content-type': 'text/plain; charset=utf-8' }
const NOT_JSON: HttpAnswer = { status: 415, headers: TEXT, body: 'Content-Type: application/json is required' }
const UNKNOWN_ENCODING: HttpAnswer = {
  status: 415,
  headers: { ...TEXT, 'accept-encoding': 'gzip' },
  body: 'Content-Encoding: only gzip is understood',
}

type ContentFields = {
  contentType: string | undefined
  /** In lower case. */
  contentEncoding: string | undefined
  acceptEncoding: string | undefined
}

function contentFieldsOf({ headers }: PostHead): ContentFields {
  const fields: ContentFields = { contentType: undefined, contentEncoding: undefined, acceptEncoding: undefined }
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string
    const value = headers[at + 1] as string
    // Lengths first: most headers are told apart without a look at their letters.
    if (name.length === 12 && name.toLowerCase() === 'content-type') fields.contentType ??= value
    else if (name.length === 16 && name.toLowerCase() === 'content-encoding') {
      // Two encodings one over the other, in whichever way they are written, are none of those understood.
      const value = (headers[at + 1] as string).trim().toLowerCase()
      fields.contentEncoding = fields.contentEncoding === undefined ? value : `${fields.contentEncoding},${value}`
    } else if (name.length === 15 && name.toLowerCase() === 'accept-encoding') {
      fields.acceptEncoding = fields.acceptEncoding === undefined ? value : `${fields.acceptEncoding},${value}`
    }
  }
  return fields
}

function queryOf(target: string): string {
  const mark = target.indexOf('?')
  return mark === -1 ? '' : target.slice(mark + 1)
}

function isJson(contentType: string | undefined): boolean {
  return contentType === 'application/json' || /^application\/json *(;|$)/i.test(contentType ?? '')
}
