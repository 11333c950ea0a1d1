import { createHmac, timingSafeEqual } from 'node:crypto'

/** How long a ticket is valid; it may be used for several connections. */
export const TICKET_MS = 60_000

const PREFIX = 'wst_'
const KEY_BYTES = 32
const EXPIRY_BYTES = 6
const DIGEST_BYTES = 32
const MAC_BYTES = 32
const SIGNED_BYTES = EXPIRY_BYTES + DIGEST_BYTES
const TICKET_LENGTH = PREFIX.length + Math.ceil(((SIGNED_BYTES + MAC_BYTES) * 4) / 3)
const CONTEXT = 'sluice ws-ticket v1\0'

export type Ticket = { readonly ticket: string; readonly expiresAtMs: number }

export type CheckedTicket =
  | { readonly ok: true; readonly tokenSha256: string }
  | { readonly ok: false; readonly reason: 'malformed' | 'unknown' | 'expired' }

export type WsTickets = {
  issue(tokenSha256: string, nowMs: number): Ticket
  check(ticket: string, nowMs: number): CheckedTicket
}

/**
 * Tickets replace a token for clients that cannot set a header. A ticket contains its expiry and the digest of its token, authenticated by an HMAC
 * with a key that all processes of a store share: each of them accepts it without state. It refers to the token, so it becomes invalid with the
 * token; the token cannot be derived from it.
 *
 * Layout, base64url after the prefix: u48 expiry in unix milliseconds, 32 bytes SHA-256 of the token, 32 bytes HMAC-SHA-256.
 */
export function createWsTickets(key: Uint8Array): WsTickets {
  if (key.length !== KEY_BYTES) throw new RangeError(`a ticket key has ${KEY_BYTES} bytes`)
  const macOf = (signed: Uint8Array): Buffer => createHmac('sha256', key).update(CONTEXT).update(signed).digest()

  return {
    issue(tokenSha256, nowMs) {
      const expiresAtMs = Math.floor(nowMs) + TICKET_MS
      const signed = Buffer.alloc(SIGNED_BYTES)
      signed.writeUIntBE(expiresAtMs, 0, EXPIRY_BYTES)
      signed.write(tokenSha256, EXPIRY_BYTES, 'hex')
      return { ticket: PREFIX + Buffer.concat([signed, macOf(signed)]).toString('base64url'), expiresAtMs }
    },

    check(ticket, nowMs) {
      if (ticket.length !== TICKET_LENGTH || !ticket.startsWith(PREFIX)) return { ok: false, reason: 'malformed' }
      const bytes = Buffer.from(ticket.slice(PREFIX.length), 'base64url')
      if (bytes.length !== SIGNED_BYTES + MAC_BYTES) return { ok: false, reason: 'malformed' }
      const signed = bytes.subarray(0, SIGNED_BYTES)
      if (!timingSafeEqual(macOf(signed), bytes.subarray(SIGNED_BYTES))) return { ok: false, reason: 'unknown' }
      if (nowMs > signed.readUIntBE(0, EXPIRY_BYTES)) return { ok: false, reason: 'expired' }
      return { ok: true, tokenSha256: signed.toString('hex', EXPIRY_BYTES) }
    },
  }
}
