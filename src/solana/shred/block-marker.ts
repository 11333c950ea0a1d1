/**
 * A block marker, which Alpenglow puts between the entry batches of a slot (SIMD-0307, SIMD-0337): a batch with an entry count of zero.
 *
 * u64 0, u16 version, and in version 1: u8 kind, u16 length, body. A later version may have another layout. A body is written with a version byte in
 * front, a genesis certificate without. Validators read a body by its own fields: the length and the bytes behind the body have no meaning to them.
 */
export type BlockMarker = {
  readonly version: number
  /** The kind byte; undefined in a version whose layout is not known. */
  readonly kind: number | undefined
  readonly variant: MarkerVariant | 'unknown'
  /** As many bytes after the length as it names, or as there are; all after the version where the layout is not known. */
  readonly body: Uint8Array
  /** The decoded body; undefined where its form is not known. */
  readonly content: MarkerContent | undefined
}

export type MarkerVariant = (typeof VARIANTS)[number]

export type MarkerContent =
  | {
      readonly variant: 'block-footer'
      readonly bankHash: Uint8Array
      readonly producerTimeNanos: bigint
      /** Printable text of at most USER_AGENT_BYTES_MAX bytes. */
      readonly userAgent: string
    }
  /** After an update-parent the data before it in the slot is void. */
  | {
      readonly variant: 'block-header' | 'update-parent'
      readonly parentSlot: number
      readonly parentBlockId: Uint8Array
    }
  | { readonly variant: 'genesis-certificate'; readonly certificate: Uint8Array }

export type MarkerDecode =
  | { readonly ok: true; readonly marker: BlockMarker }
  | { readonly ok: false; readonly reason: 'truncated' }

/** By the kind byte. */
const VARIANTS = ['block-footer', 'block-header', 'update-parent', 'genesis-certificate'] as const
const VERSION = 1
const VERSION_AT = 8
const KIND_AT = 10
const LENGTH_AT = 11
const BODY_AT = 13
const BODY_BYTES_MAX = 0xffff
const HASH_BYTES = 32
const PARENT_BYTES = 8 + HASH_BYTES
/** Bank hash and time, before the length of the user agent. */
const FOOTER_HEAD_BYTES = HASH_BYTES + 8
const USER_AGENT_BYTES_MAX = 255
/** The first byte of a body. */
const BODY_VERSION = 1
/** A footer ends with three optional certificates; each takes at least its tag. */
const FOOTER_OPTIONS_BYTES = 3

/** The bytes of a batch that is a marker. */
export function encodeBlockMarker(content: MarkerContent): Uint8Array {
  return encodeOpaqueMarker({ version: VERSION, kind: VARIANTS.indexOf(content.variant), body: bodyOf(content) })
}

/** The bytes of a marker of any kind; without a kind the body follows the version. */
export function encodeOpaqueMarker({
  version,
  kind,
  body,
}: Pick<BlockMarker, 'version' | 'kind' | 'body'>): Uint8Array {
  if (kind !== undefined && body.length > BODY_BYTES_MAX)
    throw new RangeError(`the body of a marker has at most ${BODY_BYTES_MAX} bytes`)
  const bodyAt = kind === undefined ? KIND_AT : BODY_AT
  const bytes = new Uint8Array(bodyAt + body.length)
  const view = new DataView(bytes.buffer)
  view.setUint16(VERSION_AT, version, true)
  if (kind !== undefined) {
    view.setUint8(KIND_AT, kind)
    view.setUint16(LENGTH_AT, body.length, true)
  }
  bytes.set(body, bodyAt)
  return bytes
}

/**
 * Decodes a batch whose entry count is zero. Never throws. A marker of an unknown version or kind, or with a body of an unknown form, has no content;
 * only one that is cut is not decoded. The arrays of the result are views into `bytes`.
 */
export function decodeBlockMarker(bytes: Uint8Array): MarkerDecode {
  if (bytes.length < KIND_AT) return { ok: false, reason: 'truncated' }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const version = view.getUint16(VERSION_AT, true)
  if (version !== VERSION) {
    const body = bytes.subarray(KIND_AT)
    return { ok: true, marker: { version, kind: undefined, variant: 'unknown', body, content: undefined } }
  }
  if (bytes.length < BODY_AT) return { ok: false, reason: 'truncated' }
  const length = view.getUint16(LENGTH_AT, true)
  const rest = bytes.subarray(BODY_AT)
  const kind = bytes[KIND_AT] as number
  const variant = VARIANTS[kind]
  const content = variant === undefined ? undefined : contentOf(variant, rest, length)
  if (content === undefined && length > rest.length) return { ok: false, reason: 'truncated' }
  return {
    ok: true,
    marker: { version, kind, variant: variant ?? 'unknown', body: rest.subarray(0, length), content },
  }
}

function bodyOf(content: MarkerContent): Uint8Array {
  switch (content.variant) {
    case 'genesis-certificate':
      return content.certificate
    case 'block-header':
    case 'update-parent': {
      const body = new Uint8Array(1 + PARENT_BYTES)
      body[0] = BODY_VERSION
      viewOf(body).setBigUint64(1, BigInt(content.parentSlot), true)
      body.set(hashOf(content.parentBlockId), 9)
      return body
    }
    case 'block-footer': {
      const agent = Buffer.from(content.userAgent)
      if (agent.length > USER_AGENT_BYTES_MAX || !isPrintable(content.userAgent))
        throw new RangeError(`a user agent is printable text of at most ${USER_AGENT_BYTES_MAX} bytes`)
      const agentAt = 1 + FOOTER_HEAD_BYTES + 1
      const body = new Uint8Array(agentAt + agent.length + FOOTER_OPTIONS_BYTES)
      body[0] = BODY_VERSION
      body.set(hashOf(content.bankHash), 1)
      viewOf(body).setBigUint64(1 + HASH_BYTES, content.producerTimeNanos, true)
      body[agentAt - 1] = agent.length
      body.set(agent, agentAt)
      return body
    }
  }
}

/** Earlier localnets wrote bodies without a version byte. These are read too, where nothing follows them. */
function contentOf(variant: MarkerVariant, rest: Uint8Array, length: number): MarkerContent | undefined {
  const versioned = rest[0] === BODY_VERSION ? rest.subarray(1) : undefined
  const unversioned = rest.length === length ? rest : undefined
  switch (variant) {
    case 'genesis-certificate':
      return rest.length < length ? undefined : { variant, certificate: rest.subarray(0, length) }
    case 'block-header':
    case 'update-parent':
      if (versioned !== undefined && versioned.length >= PARENT_BYTES) return readParent(variant, versioned)
      return unversioned?.length === PARENT_BYTES ? readParent(variant, unversioned) : undefined
    case 'block-footer':
      return (versioned && readFooter(versioned, true)) ?? (unversioned && readFooter(unversioned, false))
  }
}

function readParent(variant: 'block-header' | 'update-parent', body: Uint8Array): MarkerContent | undefined {
  const slot = viewOf(body).getBigUint64(0, true)
  if (slot > BigInt(Number.MAX_SAFE_INTEGER)) return undefined
  return { variant, parentSlot: Number(slot), parentBlockId: body.subarray(8, PARENT_BYTES) }
}

/**
 * With options their tags follow the user agent, otherwise it ends the body. A body without options has text where a tag would be, so it is not read as
 * one with them.
 */
function readFooter(body: Uint8Array, hasOptions: boolean): MarkerContent | undefined {
  const agentAt = FOOTER_HEAD_BYTES + 1
  if (body.length < agentAt) return undefined
  const agentEnd = agentAt + (body[FOOTER_HEAD_BYTES] as number)
  const after = body.length - agentEnd
  if (hasOptions ? after < FOOTER_OPTIONS_BYTES || (body[agentEnd] as number) > 1 : after !== 0) return undefined
  const userAgent = printableText(body.subarray(agentAt, agentEnd))
  if (userAgent === undefined) return undefined
  return {
    variant: 'block-footer',
    bankHash: body.subarray(0, HASH_BYTES),
    producerTimeNanos: viewOf(body).getBigUint64(HASH_BYTES, true),
    userAgent,
  }
}

/** The user agent is shown on terminals, so it has no control characters. */
function printableText(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  return isPrintable(text) && Buffer.byteLength(text) === bytes.length ? text : undefined
}

function isPrintable(text: string): boolean {
  return !/[\p{C}\p{Zl}\p{Zp}\ufffd]/u.test(text)
}

function hashOf(bytes: Uint8Array): Uint8Array {
  if (bytes.length !== HASH_BYTES) throw new RangeError(`a hash has ${HASH_BYTES} bytes`)
  return bytes
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}
