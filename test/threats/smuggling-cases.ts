/** The bytes of one connection, and the expected response. */
export type SmugglingCase = {
  readonly name: string
  readonly bytes: string
  /** Status of the first response. */
  readonly status: number
  /** Calls that may reach the node; a call to `stolen` never may. */
  readonly forwarded: number
}

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance"}'
const HEX = CALL.length.toString(16)
const CHUNKS = `${HEX}\r\n${CALL}\r\n0\r\n\r\n`
const LENGTH = `Content-Length: ${CALL.length}\r\n`
const CHUNKED = 'Transfer-Encoding: chunked\r\n'

/**
 * Requests on which two parsers could disagree about where one ends (T5). Each hides a call to `stolen`, for which a parser that reads on at the
 * wrong place would fall; proxies in front refuse its address where they see it. 400 unless stated otherwise.
 */
export function smugglingCases(token: string): readonly SmugglingCase[] {
  const own = `Host: a\r\nContent-Type: application/json\r\nx-token: ${token}\r\n`
  const stolen = `POST /?stolen HTTP/1.1\r\n${own}Content-Length: 43\r\n\r\n{"jsonrpc":"2.0","id":2,"method":"stolen"}\n`
  const head = (fields: string, line = 'POST / HTTP/1.1') => `${line}\r\n${own}${fields}\r\n`
  const many = Array.from({ length: 64 }, (_, at) => `h${at}: v\r\n`).join('')
  const refused = (name: string, bytes: string, status = 400): SmugglingCase => ({
    name,
    bytes: bytes + stolen,
    status,
    forwarded: 0,
  })
  const unknown = (name: string, bytes: string): SmugglingCase => ({ name, bytes, status: 401, forwarded: 0 })
  const served = (name: string, bytes: string): SmugglingCase => ({ name, bytes, status: 200, forwarded: 1 })
  return [
    refused('length and chunks', head(`Content-Length: 5\r\n${CHUNKED}`) + CHUNKS),
    refused('chunks and length', head(`${CHUNKED}Content-Length: 5\r\n`) + CHUNKS),
    refused('two equal lengths', head(LENGTH + LENGTH) + CALL),
    refused('two lengths that differ', head(`${LENGTH}Content-Length: 0\r\n`) + CALL),
    refused('a list of lengths', head(`Content-Length: ${CALL.length}, ${CALL.length}\r\n`) + CALL),
    refused('a signed length', head(`Content-Length: +${CALL.length}\r\n`) + CALL),
    refused('a negative length', head('Content-Length: -1\r\n') + CALL),
    refused('a length in hex', head('Content-Length: 0x2e\r\n') + CALL),
    refused('a length of two numbers', head('Content-Length: 4 6\r\n') + CALL),
    refused('an empty length', head('Content-Length:\r\n') + CALL),
    refused('a length beyond 64 bits', head('Content-Length: 18446744073709551662\r\n') + CALL),
    refused('a space before the colon of the length', head(`Content-Length : ${CALL.length}\r\n`) + CALL),
    refused('a space before the colon of the coding', head('Transfer-Encoding : chunked\r\n') + CHUNKS),
    refused('an unknown coding', head('Transfer-Encoding: xchunked\r\n') + CHUNKS),
    refused('a coding besides chunks', head('Transfer-Encoding: gzip, chunked\r\n') + CHUNKS),
    refused('chunks that are not the last coding', head('Transfer-Encoding: chunked, identity\r\n') + CHUNKS),
    refused('the coding identity', head('Transfer-Encoding: identity\r\n') + CHUNKS),
    refused('two codings', head(CHUNKED + CHUNKED) + CHUNKS),
    refused('a vertical tab before the coding', head('Transfer-Encoding: \x0bchunked\r\n') + CHUNKS),
    refused('chunks in HTTP/1.0', head(CHUNKED, 'POST / HTTP/1.0') + CHUNKS),
    refused('a chunk whose size is no number', `${head(CHUNKED)}zz\r\n${CALL}\r\n0\r\n\r\n`),
    refused('a chunk size beyond 64 bits', `${head(CHUNKED)}1000000000000002e\r\n${CALL}\r\n0\r\n\r\n`),
    refused('a chunk size with 0x', `${head(CHUNKED)}0x${HEX}\r\n${CALL}\r\n0\r\n\r\n`),
    refused('a chunk longer than its size', `${head(CHUNKED)}3\r\n${CALL}\r\n0\r\n\r\n`),
    refused('a bare line feed behind a chunk size', `${head(CHUNKED)}${HEX}\n${CALL}\n0\n\n`),
    refused('a bare line feed in a chunk extension', `${head(CHUNKED)}${HEX};a\nb\r\n${CALL}\r\n0\r\n\r\n`),
    refused('a folded field', head(`x: a\r\n b\r\n${LENGTH}`) + CALL),
    refused('lines that end in a bare line feed', head(LENGTH).replaceAll('\r\n', '\n') + CALL),
    refused('a bare carriage return in a value', head(`x: a\rContent-Length: 0\r\n${LENGTH}`) + CALL),
    refused('a NUL in a value', head(`x: a\0b\r\n${LENGTH}`) + CALL),
    refused('a NUL in a name', head(`x\0y: a\r\n${LENGTH}`) + CALL),
    refused('a line without a colon', head(`content-length\r\n${LENGTH}`) + CALL),
    refused('a field without a name', head(`: a\r\n${LENGTH}`) + CALL),
    refused('a space before the first field', `POST / HTTP/1.1\r\n x: y\r\n${own}${LENGTH}\r\n${CALL}`),
    refused('two hosts', head(`Host: b\r\n${LENGTH}`) + CALL),
    refused('a host with a user', head(LENGTH).replace('Host: a\r\n', 'Host: b@a\r\n') + CALL),
    refused('a host with a path', head(LENGTH).replace('Host: a\r\n', 'Host: a/b\r\n') + CALL),
    refused('an unknown expectation', head(`Expect: more\r\n${LENGTH}`) + CALL, 417),
    refused(
      'an unknown expectation of an unknown coding',
      head('Expect: more\r\nTransfer-Encoding: gzip, chunked\r\n') + CHUNKS,
    ),
    refused('a tunnel', head('', 'CONNECT a:443 HTTP/1.1'), 501),
    refused('no host', head(LENGTH).replace('Host: a\r\n', '') + CALL),
    refused('another version', head(LENGTH, 'POST / HTTP/2.0') + CALL, 505),
    refused('too many fields', head(many + LENGTH) + CALL, 431),
    refused('a head that is too large', head(`x: ${'y'.repeat(17_000)}\r\n${LENGTH}`) + CALL, 431),
    unknown('the token under another name', head(LENGTH).replace('x-token', 'x_token') + CALL),
    unknown(
      'the token in a trailer',
      `${head(CHUNKED).replace(/x-token: .*\r\n/, '')}${HEX}\r\n${CALL}\r\n0\r\nx-token: ${token}\r\n\r\n`,
    ),
    served('the host of an absolute address', head(LENGTH, 'POST http://elsewhere/ HTTP/1.1') + CALL),
    served('chunks, plain and simple', head(CHUNKED) + CHUNKS),
    served('a request line inside a body', head(`Content-Length: ${CALL.length}\r\n`) + CALL),
    served('a field named by Connection', head(`Connection: x-token\r\n${LENGTH}`) + CALL),
  ]
}
