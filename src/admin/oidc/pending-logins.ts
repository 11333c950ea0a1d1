import { hash } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { isSameSecret } from '../auth/sessions.ts'

export const PENDING_MS = 10 * 60_000
/** Beyond it the oldest ends. */
const PENDING_MAX = 1000

export type PendingLogin = {
  readonly nonce: string
  /** The code verifier of PKCE (RFC 7636). */
  readonly codeVerifier: string
  readonly redirectUri: string
}

export type BegunLogin = PendingLogin & {
  readonly state: string
  /** The secret of the cookie that binds the login to the browser. */
  readonly browser: string
}

export type PendingLogins = {
  begin(redirectUri: string): BegunLogin
  /** The login of a state in the browser that began it, once. */
  take(state: string, browser: string): PendingLogin | undefined
  readonly size: number
}

/** Logins that people have begun and for which the issuer has not sent them back yet. */
export function createPendingLogins({ clock, random }: { clock: Clock; random: Random }): PendingLogins {
  /** By the hash of the state, in the order of their begin. */
  const pending = new Map<string, PendingLogin & { readonly browser: string; readonly begunMs: number }>()
  const secret = (): string => Buffer.from(random.bytes(32)).toString('base64url')
  const keyOf = (state: string): string => hash('sha256', state, 'hex')

  function prune(): void {
    const oldestMs = clock.monotonicMs() - PENDING_MS
    for (const [key, { begunMs }] of pending) {
      if (begunMs > oldestMs && pending.size <= PENDING_MAX) return
      pending.delete(key)
    }
  }

  return {
    begin(redirectUri) {
      const login = { nonce: secret(), codeVerifier: secret(), redirectUri, browser: secret() }
      const state = secret()
      pending.set(keyOf(state), { ...login, begunMs: clock.monotonicMs() })
      prune()
      return { ...login, state }
    },
    take(state, browser) {
      prune()
      const found = pending.get(keyOf(state))
      if (found === undefined || !isSameSecret(browser, found.browser)) return undefined
      pending.delete(keyOf(state))
      const { nonce, codeVerifier, redirectUri } = found
      return { nonce, codeVerifier, redirectUri }
    },
    get size() {
      prune()
      return pending.size
    },
  }
}
