/** Why a request is refused before a handler sees it, as the `error` of the response. */
const REFUSALS = {
  'http-version': [505, 'only HTTP/1.0 and HTTP/1.1 are supported'],
  'too-many-headers': [431, 'the request has too many header fields'],
  'headers-too-large': [431, 'the header fields of the request are too large'],
  'invalid-host': [400, 'the Host header is not a host with an optional port'],
  'several-hosts': [400, 'the request has more than one Host header'],
  'no-host': [400, 'the request has no Host header, which HTTP/1.1 requires'],
  'transfer-encoding': [400, 'Transfer-Encoding supports only chunked, over HTTP/1.1'],
  expectation: [417, 'Expect supports only 100-continue'],
  'malformed-request': [400, 'the request is not valid HTTP/1.1'],
  'body-too-large': [413, 'the chunk extensions of the body are too large'],
  'request-timeout': [408, 'the request did not arrive in time'],
} as const satisfies Record<string, readonly [number, string]>

export type RequestRefusal = {
  readonly status: number
  readonly body: { readonly error: keyof typeof REFUSALS; readonly message: string }
}

export function requestRefusal(error: keyof typeof REFUSALS): RequestRefusal {
  const [status, message] = REFUSALS[error]
  return { status, body: { error, message } }
}
