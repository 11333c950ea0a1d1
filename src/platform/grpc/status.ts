/** Status codes of gRPC (github.com/grpc/grpc, doc/statuscodes.md). */
export const GrpcCode = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const

export type GrpcStatus = {
  readonly code: number
  readonly message?: string
  /** Further trailers, names in lower case. */
  readonly metadata?: Readonly<Record<string, string>>
}

const PRINTABLE_ASCII = /^[\x20-\x24\x26-\x7e]*$/
/** No field value of HTTP/2 begins or ends with a space (RFC 9113 section 8.2.1): clients drop the field. */
const SPACE_AT_END = /^ | $/g

/** Percent-encodes `grpc-message`: the bytes of all but printable ASCII, the percent sign, and a space at either end. */
export function encodeGrpcMessage(message: string): string {
  if (PRINTABLE_ASCII.test(message)) return message.replace(SPACE_AT_END, '%20')
  let encoded = ''
  for (const byte of new TextEncoder().encode(message)) {
    encoded +=
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return encoded.replace(SPACE_AT_END, '%20')
}

/** Decodes `grpc-message`. A message with an invalid escape is returned as it is. */
export function decodeGrpcMessage(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return encoded
  }
}

/** Milliseconds of a `grpc-timeout` header; undefined when it is absent or malformed. */
export function parseGrpcTimeout(header: string | undefined): number | undefined {
  const match = header === undefined ? null : /^(\d{1,8})([HMSmun])$/.exec(header)
  if (!match) return undefined
  return Number(match[1]) * TIMEOUT_UNIT_MS[match[2] as keyof typeof TIMEOUT_UNIT_MS]
}

const TIMEOUT_UNIT_MS = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 0.001, n: 0.000_001 }
