import { QueryError } from './query/error.ts'

/** As many as a URL may have. */
const FIELDS_MAX = 256
/** RFC 2046, 5.1.1. The search for a longer one would take time that grows with its length. */
const BOUNDARY_LENGTH_MAX = 70
const CRLF = '\r\n'
/** Between the header lines of a part and its value. */
const BLANK_LINE = CRLF + CRLF
const BOUNDARY = /;\s*boundary=(?:"([^"]+)"|([^\s;"]+))/i
const DISPOSITION = /^content-disposition:\s*form-data\s*;.*/im
const NAME = /;\s*name=(?:"([^"]*)"|([^\s;"]+))/i
const FILE_NAME = /;\s*filename\*?=/i

/** The statement of a multipart body and its parameters by name. */
export type MultipartQuery = { readonly query: string; readonly parameters: Readonly<Record<string, string>> }

/**
 * Reads a body of multipart/form-data (RFC 7578), in which clients of ClickHouse send a statement with long parameters: URLs of that length do not
 * pass proxies. Throws QueryError.
 */
export function readMultipart(body: Buffer, contentType: string): MultipartQuery {
  const [, quoted, plain] = BOUNDARY.exec(contentType) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) throw malformed()
  if (boundary.length > BOUNDARY_LENGTH_MAX)
    throw new QueryError(
      'BAD_ARGUMENTS',
      `The boundary of the multipart body is too long. Maximum: ${BOUNDARY_LENGTH_MAX} characters.`,
    )
  const queries: string[] = []
  const parameters: Record<string, string> = {}
  let fields = 0
  for (const { head, value } of partsOf(body, boundary)) {
    fields += 1
    if (fields > FIELDS_MAX)
      throw new QueryError('BAD_ARGUMENTS', `Too many fields in the body. Maximum: ${FIELDS_MAX}.`)
    const name = fieldName(head)
    if (name === 'query') queries.push(value)
    else if (name.startsWith('param_')) parameters[name.slice('param_'.length)] = value
    else {
      const shown = name.replaceAll(/\W/g, '?').slice(0, 60)
      throw new QueryError('BAD_ARGUMENTS', `A multipart body has the fields query and param_NAME, not ${shown}.`)
    }
  }
  return { query: queries.join('\n'), parameters }
}

/** The parts between the delimiters; what comes before the first one and after the last one has no meaning. */
function* partsOf(body: Buffer, boundary: string): Generator<{ readonly head: string; readonly value: string }> {
  const delimiter = `${CRLF}--${boundary}`
  // The first delimiter may be at the very beginning.
  const bytes = Buffer.concat([Buffer.from(CRLF), body])
  let at = bytes.indexOf(delimiter)
  for (;;) {
    if (at === -1) throw malformed()
    const from = at + delimiter.length
    if (bytes.toString('latin1', from, from + 2) === '--') return
    const headEnd = bytes.indexOf(BLANK_LINE, from)
    if (headEnd === -1) throw malformed()
    const valueFrom = headEnd + BLANK_LINE.length
    at = bytes.indexOf(delimiter, valueFrom)
    if (at === -1) throw malformed()
    yield { head: bytes.toString('utf8', from, headEnd), value: bytes.toString('utf8', valueFrom, at) }
  }
}

function fieldName(head: string): string {
  const [disposition = ''] = DISPOSITION.exec(head) ?? []
  if (FILE_NAME.test(disposition))
    throw new QueryError('NOT_IMPLEMENTED', 'External tables are not supported: give the values as a parameter.')
  const [, quoted, plain] = NAME.exec(disposition) ?? []
  const name = quoted ?? plain
  if (name === undefined) throw malformed()
  return name
}

function malformed(): QueryError {
  return new QueryError('BAD_ARGUMENTS', 'The multipart body is malformed.')
}
