/**
 * The token of the user, where the service requires one. It is stored for the lifetime of the tab and sent in a header to the page's own
 * origin; it is in no URL, no persistent storage and no log.
 */
const KEY = 'sluice-token'

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
    // Without storage the token must be entered again after a reload.
  }
}
