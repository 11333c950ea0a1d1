import type { Random } from '../../core/random.ts'

/** A body of multipart/form-data (RFC 7578). */
export type Form = { readonly contentType: string; readonly body: Buffer }

/**
 * The server refuses a field of more than its `http_max_field_value_size`, 128 KiB unless configured. It joins the fields `query`, so a longer statement
 * is sent in several.
 */
const QUERY_PART_BYTES = 64 * 1024

/** A statement and its parameters for ClickHouse. The names of the parameters are identifiers. */
export function createForm(
  query: string,
  parameters: readonly (readonly [name: string, value: string])[],
  random: Random,
): Form {
  const statement = Buffer.from(query)
  const fields: [name: string, value: Buffer][] = []
  for (let at = 0; at < statement.length; at += QUERY_PART_BYTES)
    fields.push(['query', statement.subarray(at, at + QUERY_PART_BYTES)])
  for (const [name, value] of parameters) fields.push([`param_${name}`, Buffer.from(value)])
  const boundary = boundaryOutside(fields, random)
  const pieces = fields.flatMap(([name, value]) => [
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n`),
    value,
    Buffer.from('\r\n'),
  ])
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]),
  }
}

function boundaryOutside(fields: readonly (readonly [name: string, value: Buffer])[], random: Random): string {
  for (;;) {
    const boundary = Buffer.from(random.bytes(16)).toString('hex')
    if (!fields.some(([, value]) => value.includes(boundary))) return boundary
  }
}
