/** Exit codes of the command line. Help text, docs and tests read this table. */
export const EXIT_CODES = {
  0: { meaning: 'success', retryable: false },
  1: { meaning: 'the operation failed; the message gives the reason', retryable: false },
  2: { meaning: 'wrong usage', retryable: false },
  69: { meaning: 'a required service is unavailable', retryable: true },
  75: { meaning: 'temporary: store locked, second instance, busy', retryable: true },
  77: { meaning: 'permission denied', retryable: false },
  130: { meaning: 'Ctrl-C before the start was complete', retryable: true },
  78: { meaning: 'configuration, file modes or store integrity', retryable: false },
} as const

export type ExitCode = keyof typeof EXIT_CODES
