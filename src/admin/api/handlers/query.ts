import { PAGE_LIMIT } from '../../../contract/admin-routes.ts'
import { ServiceError } from '../../../core/error.ts'
import type { AdminCall } from '../handler.ts'

const CURSOR_CHARACTERS_MAX = 400

/** `limit` and `cursor` of a list. A cursor is opaque to clients: it is what the last page returned. */
export function pageOf({ query }: AdminCall): { readonly limit: number; readonly after: string | undefined } {
  const text = query.get('limit')
  const limit = text === null ? PAGE_LIMIT.default : Number(text)
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > PAGE_LIMIT.max)
    throw new ServiceError('invalid-value', `limit must be a whole number from 1 to ${PAGE_LIMIT.max}`)
  const cursor = query.get('cursor')
  return { limit, after: cursor === null ? undefined : readCursor(cursor) }
}

export function cursorOf(next: string | number | null): string | null {
  return next === null ? null : Buffer.from(String(next)).toString('base64url')
}

function readCursor(text: string): string {
  const name = Buffer.from(text, 'base64url').toString()
  const isOurs = text !== '' && text.length <= CURSOR_CHARACTERS_MAX && cursorOf(name) === text && !name.includes('\0')
  if (isOurs) return name
  throw new ServiceError('invalid-value', 'the cursor is not one that this API has returned', {
    fix: 'Start again without cursor.',
  })
}

/** A query parameter; undefined where it is missing or empty. */
export function textOf({ query }: AdminCall, name: string): string | undefined {
  return query.get(name) || undefined
}

/** A parameter of the path. */
export function paramOf({ params }: AdminCall, name: string): string {
  return params[name] ?? ''
}

export function parseFlag({ query }: AdminCall, name: string): boolean {
  const text = query.get(name)
  if (text === null || text === 'false') return false
  if (text === 'true') return true
  throw new ServiceError('invalid-value', `${name} must be true or false`)
}
