import type { IncomingMessage, ServerResponse } from 'node:http'
import type { SentBytes } from './fast-path-output.ts'
import { type HttpResponse, type PostHandler, piecesOf } from './post.ts'
import { readBody } from './read-body.ts'
import { leavesMuchUnread } from './reply.ts'

/** Passes a POST that node:http parsed to the handler of the fast path. */
export async function respondToPost(
  request: IncomingMessage,
  response: ServerResponse,
  handler: PostHandler,
): Promise<void> {
  const length = request.headers['content-length']
  const decision = handler.validate({
    target: request.url ?? '/',
    headers: request.rawHeaders,
    bodyBytes: length === undefined ? undefined : Number(length),
    connection: request.socket,
  })
  response.setHeader('x-request-id', decision.requestId)
  const send = (reply: HttpResponse, sent?: SentBytes) => sendResponse(response, reply, handler.headers, sent)
  if ('response' in decision) return send(await decision.response)
  let heldBytes = 0
  let refusal: HttpResponse | undefined
  const mayHold = (bytes: number): boolean => {
    refusal = decision.holdBody?.(bytes)
    if (refusal === undefined) heldBytes += bytes
    return refusal === undefined
  }
  try {
    const read = await readBody(request, { bodyBytesMax: decision.bodyBytesMax, mayHold })
    if (read.ok)
      send(await new Promise<HttpResponse>((respond, fail) => decision.onBody(read.body, { respond, fail })), decision)
    else if (refusal !== undefined) send(refusal)
    else if (read.reason === 'too-large') send(decision.tooLarge())
  } finally {
    decision.releaseBody?.(heldBytes)
  }
}

function sendResponse(
  response: ServerResponse,
  { status, headers, body, rest, closes }: HttpResponse,
  commonHeaders: Readonly<Record<string, string>>,
  sent: SentBytes | undefined,
): void {
  if (response.destroyed) return rest?.abort()
  if (closes === true || leavesMuchUnread(response)) response.shouldKeepAlive = false
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const fields = { ...headers, ...commonHeaders }
  const isSized = rest === undefined && status !== 204
  response.writeHead(status, isSized ? { ...fields, 'content-length': bytes.length } : fields)
  sent?.onBodySent?.(bytes.length)
  if (rest === undefined) {
    const pieces = piecesOf(bytes)
    const last = pieces.pop()
    for (const piece of pieces) response.write(piece)
    response.end(last)
    return
  }
  response.write(bytes)
  response.on('drain', () => rest.resume())
  response.on('close', () => rest.abort())
  rest.start({
    onData(chunk) {
      sent?.onBodySent?.(chunk.length)
      if (!response.write(chunk)) rest.pause()
    },
    onEnd: () => void response.end(),
    // The status has left already: only a closed connection shows that the body is incomplete.
    onFail: () => void response.destroy(),
  })
}
