import { hash, timingSafeEqual } from 'node:crypto'
import { setBounded } from '../../core/bounded-map.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { OidcPerson } from '../oidc/person.ts'

export const SESSION_COOKIE = 'sluice_admin'
const IDLE_MS = 30 * 60_000
const LIFETIME_MS = 12 * 3_600_000
/** Beyond these the oldest session ends. */
const SESSIONS_MAX = 1000
const SESSIONS_PER_ADMIN_MAX = 20

export type SessionOwner =
  /** With the hash of the token that opened it: with another token the session is over. */
  | { readonly kind: 'token'; readonly adminId: string; readonly tokenSha256: string }
  | { readonly kind: 'oidc'; readonly person: OidcPerson }

export type Session = { readonly owner: SessionOwner; readonly csrfToken: string }

type Held = Session & { readonly ownerId: string; readonly endsMs: number; usedMs: number }

export type Sessions = {
  /** Returns the secret of the cookie and the session. */
  open(owner: SessionOwner, lifetimeMs?: number): { readonly id: string; readonly session: Session }
  /** The session of a cookie; undefined if there is none or it has ended. */
  use(id: string): Session | undefined
  end(id: string): void
  readonly size: number
}

/** Sessions of browsers, in memory: a restart of the process ends them. */
export function createSessions({ clock, random }: { clock: Clock; random: Random }): Sessions {
  /** By the hash of the id, in the order of opening. */
  const held = new Map<string, Held>()

  function prune(): void {
    const now = clock.monotonicMs()
    for (const [key, session] of held) if (isOver(session, now)) held.delete(key)
  }

  return {
    open(owner, lifetimeMs = LIFETIME_MS) {
      prune()
      const ownerId = owner.kind === 'token' ? owner.adminId : owner.person.id
      const own = [...held].filter(([, session]) => session.ownerId === ownerId)
      if (own.length >= SESSIONS_PER_ADMIN_MAX) held.delete((own[0] as [string, Held])[0])
      const secret = (): string => Buffer.from(random.bytes(32)).toString('base64url')
      const id = secret()
      const now = clock.monotonicMs()
      const times = { endsMs: now + lifetimeMs, usedMs: now }
      const session: Held = { owner, ownerId, csrfToken: secret(), ...times }
      setBounded(held, keyOf(id), session, SESSIONS_MAX)
      return { id, session }
    },
    use(id) {
      const session = held.get(keyOf(id))
      if (session === undefined) return undefined
      const now = clock.monotonicMs()
      if (isOver(session, now)) {
        held.delete(keyOf(id))
        return undefined
      }
      session.usedMs = now
      return session
    },
    end: (id) => void held.delete(keyOf(id)),
    get size() {
      prune()
      return held.size
    },
  }
}

function isOver({ endsMs, usedMs }: Held, nowMs: number): boolean {
  return nowMs - usedMs >= IDLE_MS || nowMs >= endsMs
}

function keyOf(id: string): string {
  return hash('sha256', id, 'hex')
}

/** The header value that gives a browser its session, or ends it. */
export function sessionCookie(
  value: string,
  { isSecure, isEnded = false }: { isSecure: boolean; isEnded?: boolean },
): string {
  return `${SESSION_COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}${isEnded ? '; Max-Age=0' : ''}`
}

/** Compares in constant time. */
export function isSameSecret(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(hash('sha256', given, 'hex')), Buffer.from(hash('sha256', expected, 'hex'))]
  return timingSafeEqual(a, b)
}
