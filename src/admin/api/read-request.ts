import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { hasRevision } from '../../contract/admin-routes.ts'
import { ADMIN_BODIES } from '../../contract/schemas/admin.ts'
import {
  contentFieldsOf,
  ENCODING_REFUSED,
  isEncoded,
  isJsonRequest,
  JSON_REQUIRED,
} from '../../platform/http/request-headers.ts'
import { readBody } from '../../platform/http/server/read-body.ts'
import { AdminError } from './errors.ts'
import type { FoundRoute } from './find-route.ts'

/** Larger than any body of the routes. */
const BODY_BYTES_MAX = 64 * 1024
const FLAG = /^(true|false)$/
const ETAG = /^"(\d{1,15})"$/

export function isChange({ route }: Pick<FoundRoute, 'route'>): boolean {
  return route.method !== 'GET'
}

/** The query with the names of the route only; each at most once. */
export function readQuery(found: FoundRoute, text: string): { query: URLSearchParams; isDryRun: boolean } {
  const query = new URLSearchParams(text)
  const known = [...(found.route.query ?? []), ...(isChange(found) ? ['dry_run'] : [])]
  for (const name of query.keys()) {
    if (!known.includes(name))
      throw invalid(
        `unknown query parameter "${name.slice(0, 40)}"`,
        known.length === 0 ? 'This route has none.' : `Known: ${known.join(', ')}`,
      )
    if (query.getAll(name).length > 1) throw invalid(`query parameter "${name}" is given twice`, 'Give it once.')
  }
  const dryRun = query.get('dry_run')
  if (dryRun !== null && !FLAG.test(dryRun)) throw invalid('dry_run is not true or false', 'Write dry_run=true.')
  query.delete('dry_run')
  return { query, isDryRun: dryRun === 'true' }
}

/** The revision of `If-Match`. A change that cannot be conditional is refused with it, and not made unconditionally (RFC 9110 section 13.1.1). */
export function readIfMatch(request: Pick<IncomingMessage, 'headers'>, found: FoundRoute): number | undefined {
  const given = request.headers['if-match']
  if (given === undefined || given === '*') return undefined
  if (isChange(found) && !hasRevision(found.route))
    throw invalid('this route takes no If-Match: what it changes has no ETag', 'Send the request without If-Match.')
  const revision = ETAG.exec(given)?.[1]
  if (revision === undefined) throw invalid('If-Match is not an ETag of this API', 'Send the ETag of the record.')
  return Number(revision)
}

/** Reads the body of a request as JSON, at most `BODY_BYTES_MAX` bytes. Without a body both are empty. */
export async function readJson(request: IncomingMessage): Promise<{ bytes: Buffer; value: unknown }> {
  const read = await readBody(request, { bodyBytesMax: BODY_BYTES_MAX })
  if (!read.ok && read.reason === 'aborted')
    throw invalid('the body ended before its length', 'Send the whole body within the time of a request.')
  if (!read.ok)
    throw new AdminError('body-too-large', `the body exceeds BODY_BYTES_MAX, ${BODY_BYTES_MAX} bytes`, 'Send less.')
  if (read.body.length === 0) return { bytes: read.body, value: undefined }
  if (!isJsonRequest(contentFieldsOf(request.rawHeaders)))
    throw new AdminError('not-json', JSON_REQUIRED, 'Send JSON with Content-Type: application/json.')
  if (isEncoded(request))
    throw new AdminError('not-json', ENCODING_REFUSED, 'Send it without Content-Encoding.', {
      'accept-encoding': 'identity',
    })
  // Decoded as text, a name with other bytes would change on its way into the store.
  if (!isUtf8(read.body)) throw invalid('the body is not UTF-8', 'Send one JSON object in UTF-8.')
  try {
    return { bytes: read.body, value: JSON.parse(read.body.toString()) as unknown }
  } catch {
    // The parser's message may quote the body.
    throw invalid('the body is not valid JSON', 'Send one JSON object in UTF-8.')
  }
}

/** The body as the schema of the route has it. A route without a body takes none, or an empty object. */
export function validateBody(found: FoundRoute, value: unknown): unknown {
  const schemas: { readonly [id: string]: Schema<unknown> } = ADMIN_BODIES
  const schema = Object.hasOwn(schemas, found.id) ? schemas[found.id] : undefined
  if (schema === undefined) {
    const isEmpty = value === undefined || (isRecord(value) && Object.keys(value).length === 0)
    if (!isEmpty) throw invalid('this route takes no body', 'Send the request without a body.')
    return undefined
  }
  return parseWith(schema, value)
}

/** The part of a zod schema that is used. */
type Schema<T> = {
  safeParse(value: unknown):
    | { readonly success: true; readonly data: T }
    | {
        readonly success: false
        readonly error: {
          readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]
        }
      }
}

export function parseWith<T>(schema: Schema<T>, value: unknown): T {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  const faults = read.error.issues
    .slice(0, 5)
    .map(({ path, message }) => `${path.length === 0 ? 'the body' : path.join('.')}: ${message}`)
  throw invalid(faults.join('; '), 'docs/openapi/admin.json describes the body of each route.')
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function invalid(message: string, fix: string): AdminError {
  return new AdminError('invalid-value', message, fix)
}
