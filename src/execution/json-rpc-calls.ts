/** The calls in a request body. `id` is the text of the id as it was sent: numbers are neither rounded nor rewritten. */
export type RpcCalls =
  | { readonly ok: true; readonly isBatch: boolean; readonly calls: readonly RpcCall[] }
  | { readonly ok: false }

export type RpcCall = { readonly call: unknown; readonly id: string | undefined }

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Reads a body, or nothing where it is not JSON in UTF-8. */
export function readCalls(body: Buffer): RpcCalls {
  /** Texts of members called `id`, by the object they stand in. */
  const ids = new Map<unknown, string>()
  let parsed: unknown
  try {
    parsed = JSON.parse(
      utf8.decode(body),
      function (this: unknown, key: string, value: unknown, ...[context]: [Source?]) {
        if (key === 'id' && context?.source !== undefined) ids.set(this, context.source)
        return value
      },
    )
  } catch {
    return { ok: false }
  }
  const isBatch = Array.isArray(parsed)
  const calls = (isBatch ? (parsed as unknown[]) : [parsed]).map((call) => ({ call, id: ids.get(call) }))
  return { ok: true, isBatch, calls }
}

/** The third argument of a reviver (ECMAScript, JSON.parse source text access): the text of a value that is no object. */
type Source = { readonly source?: string }
