import pg from 'pg'
import { messageOf, ServiceError } from '../../core/error.ts'

/** SQLSTATE codes, appendix A of the PostgreSQL manual. */
const CODES: Readonly<Record<string, string>> = {
  '23505': 'already-exists', // unique_violation
  '40001': 'store-locked', // serialization_failure
  '40P01': 'store-locked', // deadlock_detected
  '42501': 'store-unavailable', // insufficient_privilege
  '53100': 'disk-full',
  '55P03': 'store-locked', // lock_not_available
  XX001: 'store-corrupt', // data_corrupted
  XX002: 'store-corrupt', // index_corrupted
}

/**
 * Classes of codes, the first two characters, for a server that cannot serve now, or not with these credentials: connection, session, read-only
 * or timed-out transaction, authorization, unknown database, resources, operator intervention, system error.
 */
const UNAVAILABLE_CLASSES: readonly string[] = ['08', '25', '28', '3D', '53', '57', '58']

const MESSAGES: Readonly<Record<string, string>> = {
  'store-locked': 'is being written by another process',
  'disk-full': 'has no space left on the disk of its server',
  'store-unavailable': 'cannot be used',
  'store-corrupt': 'is damaged',
}

/** The name of a database in messages, and the advice for a damaged one. */
export type StorePosition = { readonly name: string; readonly restoreAdvice: string }

export async function translatePostgresErrors<T>(position: StorePosition, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw postgresError(error, position)
  }
}

/** Translates errors of the driver and the server to ServiceError; returns a mistake in a statement unchanged. */
export function postgresError(error: unknown, position: StorePosition): unknown {
  const code = codeOf(error)
  if (code === undefined) return error
  const message = messageOf(error)
  return new ServiceError(code, code in MESSAGES ? `${position.name} ${MESSAGES[code]}: ${message}` : message, {
    fields: { store: position.name },
    cause: error,
    ...fixOf(code, message, position),
  })
}

function fixOf(code: string, message: string, position: { restoreAdvice: string }): { fix?: string } {
  if (code === 'store-corrupt') return { fix: position.restoreAdvice }
  // The driver's message when the server requires a password and none is configured.
  if (/SASL|password/i.test(message))
    return { fix: 'Set access.store.password = "file:PATH" or "env:NAME" to the password of this user.' }
  if (/does not support SSL/i.test(message))
    return {
      fix: 'Turn on ssl of the server: over a network its certificate is verified. In a trusted network add ?sslmode=disable to access.store.url.',
    }
  if (/certificate|altnames/i.test(message))
    return {
      fix: 'Add ?sslrootcert=FILE with the certificate of its CA to access.store.url, or ?sslmode=require to encrypt without verifying.',
    }
  return {}
}

function codeOf(error: unknown): string | undefined {
  // An error without SQLSTATE comes from the connection: sockets, TLS, timeouts of the driver.
  if (!(error instanceof pg.DatabaseError)) return 'store-unavailable'
  const state = error.code ?? ''
  return CODES[state] ?? (UNAVAILABLE_CLASSES.includes(state.slice(0, 2)) ? 'store-unavailable' : undefined)
}
