import { QueryError } from './error.ts'

/** Settings of ClickHouse that a customer may give with a query, in the address or after SETTINGS, and what became of them. */
export type QuerySettings = {
  /** Asked for; the plan's own limit still holds. */
  readonly secondsMax: number | undefined
  readonly rowsMax: number | undefined
  readonly quote64: boolean
  /** Whether the answer may be compressed as the client's Accept-Encoding says. */
  readonly isCompressed: boolean
}

/** Taken and without effect here: an answer is whole before its first byte, and waits for nothing. */
const WITHOUT_EFFECT = new Set(['send_progress_in_http_headers', 'http_headers_progress_interval_ms', 'max_threads'])

/** Throws QueryError for a setting that is not offered: silence would mean something else than what was asked. */
export function readSettings(given: Iterable<readonly [name: string, value: string]>): QuerySettings {
  let secondsMax: number | undefined
  let rowsMax: number | undefined
  let quote64 = true
  let isCompressed = false
  for (const [name, value] of given) {
    if (name === 'max_execution_time') secondsMax = number(name, value) || undefined
    else if (name === 'max_result_rows') rowsMax = number(name, value) || undefined
    else if (name === 'output_format_json_quote_64bit_integers') quote64 = number(name, value) !== 0
    else if (name === 'enable_http_compression') isCompressed = number(name, value) !== 0
    else if (name === 'readonly') {
      // Some clients ask for what is the case anyway.
      if (number(name, value) === 0)
        throw new QueryError('READONLY', 'Setting readonly cannot be 0: only reading is offered here.')
    } else if (name === 'result_overflow_mode') {
      if (value !== 'throw')
        throw new QueryError(
          'BAD_ARGUMENTS',
          'result_overflow_mode can only be throw: an answer is never cut short here.',
        )
    } else if (!WITHOUT_EFFECT.has(name))
      throw new QueryError(
        'UNKNOWN_SETTING',
        `Setting ${name.replaceAll(/\W/g, '?').slice(0, 60)} is not offered here.`,
      )
  }
  return { secondsMax, rowsMax, quote64, isCompressed }
}

function number(name: string, value: string): number {
  const parsed = Number(value)
  if (!Number.isFinite(parsed) || parsed < 0 || value.trim() === '')
    throw new QueryError('BAD_ARGUMENTS', `Setting ${name} takes a number.`)
  return parsed
}
