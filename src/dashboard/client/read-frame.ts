/** One text frame of the service: `seq`, and one message under the name of its type. */
export type Frame = { readonly seq: number; readonly type: string; readonly payload: unknown }

/** Undefined when the text is not a frame; the caller counts such a text as a broken connection. */
export function readFrame(text: unknown): Frame | undefined {
  if (typeof text !== 'string') return undefined
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const { seq, ...message } = value as Record<string, unknown>
  const [type, ...more] = Object.keys(message)
  if (type === undefined || more.length > 0) return undefined
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 0) return undefined
  return { seq, type, payload: message[type] }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
