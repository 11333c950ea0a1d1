/** Close codes (RFC 6455 section 7.4 and its registry). Solana clients treat 1000 as intended and do not reconnect. */
export const WsCloseCode = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  unsupportedData: 1003,
  notUtf8: 1007,
  policyViolation: 1008,
  messageTooBig: 1009,
  internalError: 1011,
  serviceRestart: 1012,
  tryAgainLater: 1013,
} as const

/** The codes the library closes with (ws: lib/receiver.js); all others are 1002. */
const VIOLATIONS: Readonly<Record<string, number>> = {
  WS_ERR_INVALID_UTF8: WsCloseCode.notUtf8,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: WsCloseCode.policyViolation,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: WsCloseCode.messageTooBig,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: WsCloseCode.messageTooBig,
  // A compressed message that cannot be inflated.
  Z_DATA_ERROR: WsCloseCode.notUtf8,
  Z_BUF_ERROR: WsCloseCode.notUtf8,
}

/** The code of a protocol violation that the library has found. */
export function closeCodeOf({ code }: NodeJS.ErrnoException): number {
  return VIOLATIONS[code ?? ''] ?? WsCloseCode.protocolError
}

/** The reason that a client gets for a violation, with the limit that it reached. */
export function violationReason(code: number, messageBytesMax: number): string {
  switch (code) {
    case WsCloseCode.messageTooBig:
      return `limit reached: ${messageBytesMax} bytes per message (messageBytes)`
    case WsCloseCode.notUtf8:
      return 'not UTF-8, or compressed data that cannot be inflated'
    case WsCloseCode.policyViolation:
      return 'too many frames in one message'
    default:
      return 'invalid frame'
  }
}
