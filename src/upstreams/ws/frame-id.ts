/** A notification of a node: its subscription id, and the offsets of that id in the frame. */
export type Notification = {
  /** The id as text: it is a u64 and only compared. */
  readonly subscription: string
  readonly idFrom: number
  readonly idTo: number
}

/** Nodes write the id last; two closing braces after it mean that it is a member of `params`. */
const AT_END = /"subscription":\s*(\d{1,20})\s*\}\s*\}\s*$/
const TAIL_BYTES = 64
const METHOD = Buffer.from('"method"')
const SUBSCRIPTION = Buffer.from('"subscription"')
const HEAD_BYTES = 128

/** Reads the id without parsing the frame; undefined where it is no notification. */
export function readNotification(frame: Buffer): Notification | undefined {
  if (!frame.subarray(0, HEAD_BYTES).includes(METHOD)) return readSlowly(frame)
  const tailFrom = Math.max(0, frame.length - TAIL_BYTES)
  const match = AT_END.exec(frame.toString('latin1', tailFrom))
  if (match === null) return readSlowly(frame)
  const subscription = match[1] as string
  const idFrom = tailFrom + match.index + match[0].indexOf(subscription, SUBSCRIPTION.length)
  return { subscription, idFrom, idTo: idFrom + subscription.length }
}

/** For any other order of members: parses the frame for the id, then searches the text for its offset. */
function readSlowly(frame: Buffer): Notification | undefined {
  if (!frame.includes(METHOD) || !frame.includes(SUBSCRIPTION)) return undefined
  let value: unknown
  try {
    value = JSON.parse(frame.toString('utf8'))
  } catch {
    return undefined
  }
  const { method, params } = (value ?? {}) as { method?: unknown; params?: { subscription?: unknown } }
  const id = params?.subscription
  if (typeof method !== 'string' || typeof id !== 'number' || !Number.isSafeInteger(id)) return undefined
  const subscription = String(id)
  return findMember(frame.toString('latin1'), subscription)
}

/** The member `subscription` of the object `params`, which is at depth two. */
function findMember(text: string, subscription: string): Notification | undefined {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '{' || char === '[') depth += 1
    else if (char === '}' || char === ']') depth -= 1
    else if (char === '"') {
      const end = stringEnd(text, at)
      MEMBER.lastIndex = end
      const match = depth === 2 && text.slice(at, end) === '"subscription"' ? MEMBER.exec(text) : null
      if (match?.[1] === subscription)
        return { subscription, idFrom: MEMBER.lastIndex - subscription.length, idTo: MEMBER.lastIndex }
      at = end - 1
    }
  }
  return undefined
}

const MEMBER = /\s*:\s*(\d{1,20})/y

/** The offset after the closing quotation mark. */
function stringEnd(text: string, from: number): number {
  let at = from + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}
