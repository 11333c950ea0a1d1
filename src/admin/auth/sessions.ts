import { hash, timingSafeEqual } from 'node:crypto'
import type { Admin } from '../../access/store/model.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'

const IDLE_MS = 30 * 60_000
const LIFETIME_MS = 12 * 3_600_000
/** Beyond these the oldest session ends. */
const SESSIONS_MAX = 1000
const SESSIONS_PER_ADMIN_MAX = 20

export type Session = {
  readonly adminId: string
  /** Hash of the token that opened it: with another token the session is over. */
  readonly tokenSha256: string
  readonly csrfToken: string
}

type Held = Session & { readonly openedMs: number; usedMs: number }

export type Sessions = {
  /** Returns the secret of the cookie and the session. */
  open(admin: Admin): { readonly id: string; readonly session: Session }
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
    open({ id: adminId, sha256: tokenSha256 }) {
      prune()
      const own = [...held].filter(([, session]) => session.adminId === adminId)
      if (own.length >= SESSIONS_PER_ADMIN_MAX) held.delete((own[0] as [string, Held])[0])
      if (held.size >= SESSIONS_MAX) held.delete(held.keys().next().value as string)
      const secret = (): string => Buffer.from(random.bytes(32)).toString('base64url')
      const id = secret()
      const now = clock.monotonicMs()
      const session: Held = { adminId, tokenSha256, csrfToken: secret(), openedMs: now, usedMs: now }
      held.set(keyOf(id), session)
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

function isOver({ openedMs, usedMs }: Held, nowMs: number): boolean {
  return nowMs - usedMs >= IDLE_MS || nowMs - openedMs >= LIFETIME_MS
}

function keyOf(id: string): string {
  return hash('sha256', id, 'hex')
}

/** Compares in constant time. */
export function isSameSecret(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(hash('sha256', given, 'hex')), Buffer.from(hash('sha256', expected, 'hex'))]
  return timingSafeEqual(a, b)
}
