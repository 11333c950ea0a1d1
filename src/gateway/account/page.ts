import type { StaticFiles } from '../../platform/http/server/static-file.ts'

/** The files of the account page: `/account` and what is under it. Loaded with the first request. */
export type AccountPage = () => Promise<StaticFiles>

/** The page runs only its own scripts, connects only to its own origin, and is in no frame. */
export const ACCOUNT_PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

export function isAccountPagePath(path: string): boolean {
  return path === '/account' || path.startsWith('/account/')
}
