import { z } from 'zod'

/** What the clients of nodes and relays send themselves, or the protocols use for the connection: a second one would be refused, or would change what a call means. */
const RESERVED = new Set([
  ...['host', 'connection', 'keep-alive', 'proxy-connection', 'upgrade', 'te', 'trailer', 'expect', 'http2-settings'],
  ...['content-length', 'content-type', 'content-encoding', 'transfer-encoding', 'accept-encoding'],
])
const RESERVED_PREFIX = /^(grpc|sec-websocket)-/

/** The header that carries the credential of a node or a relay. */
export const credentialHeaderOption = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,62}$/, 'a header name in lower case')
  .refine((name) => !RESERVED.has(name) && !RESERVED_PREFIX.test(name), 'this header is reserved by the protocol')
