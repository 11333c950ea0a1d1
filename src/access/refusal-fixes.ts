import type { TokenRefusal } from '../contract/errors.ts'
import type { TokenInterface } from './credentials.ts'
import { TICKET_MS } from './ws-ticket.ts'

/** Causes of a refusal: the reasons of `data.reason`, and finer ones that need another way out. */
export type RefusalCause =
  | TokenRefusal
  /** An api-key in a query that is not read. */
  | 'query-key'
  /** The header x-api-key, which only RPC reads. */
  | 'api-key-header'
  /** An Authorization header without the Bearer scheme. */
  | 'not-bearer'
  /** Authorization: Bearer where the header carries the database login. */
  | 'bearer-header'
  /** A credential without a value. */
  | 'empty'
  /** The same credential source twice. */
  | 'repeated'
  /** Both forms of the database login. */
  | 'two-logins'
  | 'ticket-malformed'
  | 'ticket-unknown'
  | 'ticket-expired'
  | 'ticket-and-token'
  /** A ticket on an interface that is not a WebSocket. */
  | 'ticket-not-read'

const TICKET_SECONDS = TICKET_MS / 1000

/** How a ticket is used, for clients that cannot set headers. */
const BUNDLE_TICKET = `A client that cannot set headers (browser, web3.js, @solana/kit) requests a ticket with POST /v1/ws-ticket at the RPC address, the token in the header x-token, and connects to /?ticket=TICKET within ${TICKET_SECONDS} s (web3.js: wsEndpoint).`
const EXECUTION_TICKET = `A client that cannot set headers, such as a browser, requests a ticket with POST /v1/ws-ticket at this address, the token in the header x-token, and connects to /v1/ws?ticket=TICKET within ${TICKET_SECONDS} s.`

const HEADERS = 'Send the token in the header x-token or Authorization: Bearer'

/** How the token is sent. */
const SEND: Readonly<Record<TokenInterface, string>> = {
  rpc: 'Send the token in the header x-token, Authorization: Bearer or x-api-key, or in the query as api-key.',
  ws: `${HEADERS} of the handshake. ${BUNDLE_TICKET}`,
  wsWithQuery: `${HEADERS} of the handshake, or in the query as api-key. ${BUNDLE_TICKET}`,
  grpc: 'Send the token in the metadata x-token, or in authorization with the scheme Bearer.',
  execution: `${HEADERS}.`,
  executionWs: `${HEADERS} of the handshake. ${EXECUTION_TICKET}`,
  indexer:
    'Send the database user and password (Authorization: Basic, or X-ClickHouse-User and X-ClickHouse-Key), and the token of the same subscription in the header x-token.',
}

const NEW_TICKET = 'Request a new one with POST /v1/ws-ticket for each connection'

/** The way out of each cause on each interface; null where the cause cannot occur. `{sources}` stands for the credential sources found. */
export const REFUSAL_FIXES: Readonly<Record<RefusalCause, Fixes>> = {
  missing: SEND,
  'query-key': {
    ...before('The query has an api-key, which this interface does not read.'),
    rpc: null,
    ws: `The query has an api-key, which WebSockets do not accept here. ${SEND.ws} The operator can accept it with bundle.ws.queryToken = true.`,
    wsWithQuery: null,
    grpc: null,
  },
  'api-key-header': { ...before('The header x-api-key is read on RPC only.'), rpc: null },
  'not-bearer': { ...before('The Authorization header does not have the form "Bearer TOKEN".'), indexer: null },
  'bearer-header': { ...nowhere(), indexer: `Authorization: Bearer is not read here. ${SEND.indexer}` },
  empty: {
    ...all('The token is empty: check that the variable it comes from is set.'),
    indexer: null,
  },
  malformed: {
    ...all('This is not a complete token: slc_ and 38 letters and digits. Copy it again from the handover card.'),
    // A missing and a wrong half of the credentials look the same there.
    indexer: SEND.indexer,
  },
  unknown: {
    ...all('The token was not issued here: check that it belongs to this address, or ask the operator for a new one.'),
    indexer: SEND.indexer,
  },
  revoked: {
    ...all('The token was revoked or replaced: use the new token, or ask the operator for one.'),
    indexer: 'The token or the database password was revoked or replaced: use the new one, or ask the operator for it.',
  },
  expired: all(
    'The subscription, or the grace period of a replaced token, has ended: use the new token, or ask the operator to extend the subscription.',
  ),
  suspended: all('The subscription is suspended; nothing is wrong with the token. Ask the operator to resume it.'),
  cancelled: all('The subscription was cancelled: ask the operator for a new one.'),
  conflicting: {
    ...all('{sources} have different tokens: send one token in one place.'),
    indexer: null,
  },
  repeated: all('{sources} occurs more than once: send it once.'),
  'two-logins': {
    ...nowhere(),
    indexer:
      'The database login occurs more than once: send Authorization: Basic, or X-ClickHouse-User and X-ClickHouse-Key.',
  },
  'not-in-plan': {
    ...all('The subscription does not include this product: ask the operator to add it. The token itself is valid.'),
    execution: null,
    executionWs: null,
  },
  'ticket-malformed': onWs(`The ticket is incomplete. ${NEW_TICKET}.`),
  'ticket-unknown': onWs(`The ticket was not issued here. ${NEW_TICKET}.`),
  'ticket-expired': onWs(
    `The ticket has expired; it is valid for ${TICKET_SECONDS} s. ${NEW_TICKET}; a client that reconnects to the same URL, such as web3.js, needs a new connection object.`,
  ),
  'ticket-and-token': onWs('The request has a ticket and a token that do not belong together: send one of them.'),
  'ticket-not-read': {
    ...before('A ticket opens WebSockets only.'),
    ws: null,
    wsWithQuery: null,
    grpc: null,
    executionWs: null,
  },
}

type Fixes = Readonly<Record<TokenInterface, string | null>>

/** A sentence before how the token is sent. */
function before(sentence: string): Fixes {
  return mapInterfaces((at) => `${sentence} ${SEND[at]}`)
}

function all(sentence: string): Fixes {
  return mapInterfaces(() => sentence)
}

function nowhere(): Fixes {
  return mapInterfaces(() => null)
}

function onWs(sentence: string): Fixes {
  return { ...nowhere(), ws: sentence, wsWithQuery: sentence, executionWs: sentence }
}

function mapInterfaces(textOf: (at: TokenInterface) => string | null): Fixes {
  return {
    rpc: textOf('rpc'),
    ws: textOf('ws'),
    wsWithQuery: textOf('wsWithQuery'),
    grpc: textOf('grpc'),
    execution: textOf('execution'),
    executionWs: textOf('executionWs'),
    indexer: textOf('indexer'),
  }
}
