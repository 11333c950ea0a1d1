/**
 * The token of whoever looks, where the service asks for one. It lives as long as the tab and is sent in a header to the page's own
 * origin; no address, no storage that outlives the tab and no log holds it.
 */
const KEY = 'sluice-token'
/** Far more than a token has. */
export const TOKEN_CHARS_MAX = 256

export function readToken(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined
  } catch {
    return undefined
  }
}

export function keepToken(token: string | undefined): void {
  try {
    if (token === undefined) sessionStorage.removeItem(KEY)
    else sessionStorage.setItem(KEY, token)
  } catch {
    // A browser that keeps nothing asks again after a reload.
  }
}
